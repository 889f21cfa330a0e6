import { Text, type TextProps } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { stateColor, Tag } from "../../../ui/badges.tsx";
import { Sparkline } from "../../../ui/chart/sparkline.tsx";
import { counted, duration, milliseconds, number, percent, sentence } from "../../../ui/format.ts";
import { NamedValue } from "../../../ui/layout.tsx";
import { Time } from "../../../ui/time.tsx";
import { useReader } from "../data/data.ts";
import { type Health, healthOptions, type SubscriptionProps } from "../data/reads.ts";
import { conditionOf } from "../data/subscription-words.ts";
import { attemptsInWords, type ShownStats } from "./stats-series.ts";

/** Shows the state of a subscription, and the success rate while some of its deliveries fail. */
export function ConditionBadge({ subscription }: SubscriptionProps) {
  const health = useQuery(healthOptions(useReader(), subscription.id)).data;
  const condition = conditionOf(subscription, health);
  const rate = condition === "degraded" ? health?.success_rate_1h : null;
  return (
    <Tag color={stateColor(condition)}>
      {sentence(condition)}
      {typeof rate === "number" && ` · ${percent(rate)}`}
    </Tag>
  );
}

interface AttemptsSparklineProps extends TextProps {
  readonly stats: Pick<ShownStats, "points">;
  readonly period: string;
}

/** Shows the delivery attempts of a period as a small bar chart, and their numbers as text. */
export function AttemptsSparkline({ stats, period, ...text }: AttemptsSparklineProps) {
  const bars = stats.points.map(({ successes, failures }) => ({ good: successes, bad: failures }));
  const words = `${period}: ${attemptsInWords(stats)}`;
  return (
    <>
      <Sparkline bars={bars} label={words} />
      <Text size="xs" c="dimmed" {...text} aria-hidden>
        {words}
      </Text>
    </>
  );
}

interface HealthSummaryProps {
  readonly health: Health;
  readonly isActive: boolean;
}

/** Shows three figures of a subscription: its success rate, its latency, and the number of events that wait. */
export function HealthSummary({ health, isActive }: HealthSummaryProps) {
  const { success_rate_24h: rate, oldest_pending_age_s: age, latency_ms_24h: latency } = health;
  return (
    <dl className="value-grid">
      <NamedValue
        name="Success rate (24 h)"
        hint={
          health.last_success_at === null ? (
            "no success yet"
          ) : (
            <>
              last success <Time at={health.last_success_at} />
            </>
          )
        }
      >
        {rate === null ? "–" : percent(rate)}
      </NamedValue>
      <NamedValue
        name="p95 latency (24 h)"
        hint={`median ${milliseconds(latency.p50)} · p99 ${milliseconds(latency.p99)} · limit 15 s`}
      >
        {milliseconds(latency.p95)}
      </NamedValue>
      <NamedValue
        name={isActive ? "Pending" : "Held"}
        hint={
          health.outage_since === null ? (
            (quarantineHint(health.quarantined) ?? queueHint(age))
          ) : (
            <>
              not sent: we have had an outage since <Time at={health.outage_since} />
            </>
          )
        }
      >
        {number(health.pending + health.held)}
      </NamedValue>
    </dl>
  );
}

/** Names the first quarantined lane with the reason, and the number of other quarantined lanes. */
function quarantineHint([first, ...others]: Health["quarantined"]) {
  if (first === undefined) return undefined;
  const { event_id: event, review_id: review, reason, since } = first;
  const lane = review === null ? "all events" : `review ${review}`;
  return (
    <>
      not sent: {lane} {event !== null && `behind event ${event} `}since <Time at={since} />,
      because of a problem on our side ({reason.replaceAll("_", " ")})
      {others.length > 0 && `, and ${counted(others.length, "other lane")}`}
    </>
  );
}

function queueHint(ageS: number | null): string {
  return ageS === null ? "the queue is empty" : `oldest ${duration(ageS)}`;
}
