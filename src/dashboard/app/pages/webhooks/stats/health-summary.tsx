import { Text, type TextProps } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { BreakableText, stateColor, Tag } from "../../../ui/badges.tsx";
import { Sparkline } from "../../../ui/chart/sparkline.tsx";
import { counted, duration, number, percent, sentence } from "../../../ui/format.ts";
import { NamedValue, TextLink } from "../../../ui/layout.tsx";
import { Time, useNow } from "../../../ui/time.tsx";
import { useMayEnable, useReader } from "../data/data.ts";
import {
  type Health,
  healthOptions,
  incidentOptions,
  type Subscription,
  subscriptionOptions,
  type SubscriptionProps,
} from "../data/reads.ts";
import { conditionOf, hasRecovered, wayOut } from "../data/subscription-words.ts";
import { attemptsInWords, latency as inWords, type ShownStats } from "./stats-series.ts";

const MINUTE_MS = 60_000;

/** Returns the state of a subscription, which is the same on each page. */
export function useCondition(subscription: Subscription) {
  const reader = useReader();
  const { id } = subscription;
  const now = useNow(MINUTE_MS);
  const health = useQuery(healthOptions(reader, id)).data;
  const condition = conditionOf(subscription, health);
  const enabled = condition === "degraded";
  const causes = useQuery({ ...incidentOptions(reader, id), enabled }).data?.causes ?? [];
  const isOver = enabled && health && hasRecovered({ health, causes, now });
  return isOver ? "recovered" : condition;
}

/** Shows the state of a subscription, and the success rate while some of its deliveries fail. */
export function ConditionBadge({ subscription }: SubscriptionProps) {
  const health = useQuery(healthOptions(useReader(), subscription.id)).data;
  const condition = useCondition(subscription);
  const rate = condition === "degraded" ? health?.success_rate_1h : null;
  return (
    <Tag color={stateColor(condition)}>
      {sentence(condition)}
      {typeof rate === "number" && (
        <span className="unseen-on-phones">&nbsp;· {percent(rate)}</span>
      )}
    </Tag>
  );
}

/** Shows a URL, which breaks after a slash or a dot where it does not fit into a line. */
export function UrlText({ url }: { readonly url: string }) {
  return (
    <span className="mono">
      <BreakableText text={url} />
    </span>
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

interface HealthSummaryProps extends SubscriptionProps {
  readonly health: Health;
  /** Further figures. */
  readonly children?: ReactNode;
}

/**
 * Shows the success rate of a subscription, its latency, and the number of events that wait. The number of a disabled
 * subscription is left out, because the banner above has it.
 */
export function HealthSummary({ subscription, health, children }: HealthSummaryProps) {
  const { is_active: isActive, delivery_kind: kind } = subscription;
  const { success_rate_24h: rate, oldest_pending_age_s: age, latency_ms_24h: latency } = health;
  return (
    <dl className="value-grid">
      <NamedValue
        name="Success rate (24 h)"
        hint={
          health.last_success_at === null ? (
            "nothing delivered yet"
          ) : (
            <>
              without tests · last 2xx response <Time at={health.last_success_at} />
            </>
          )
        }
      >
        {rate === null ? "–" : percent(rate)}
      </NamedValue>
      <NamedValue
        name="p95 latency (24 h)"
        hint={`median ${inWords(latency.p50)} · p99 ${inWords(latency.p99)} · limit 15 s`}
      >
        {inWords(latency.p95)}
      </NamedValue>
      {isActive && (
        <NamedValue
          name={kind === "batch" ? "Being sent" : "Queued"}
          hint={
            health.outage_since === null ? (
              (quarantineHint(health.quarantined) ?? queueHint(age, kind))
            ) : (
              <>
                not sent: we have an outage, which began <Time at={health.outage_since} />
              </>
            )
          }
        >
          {number(health.pending)}
        </NamedValue>
      )}
      {children}
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
      not sent: {lane}
      {event !== null && ` from event ${event} on`}, because of a problem on our side (
      {reason.replaceAll("_", " ")}) that began <Time at={since} />
      {others.length > 0 && `, and ${counted(others.length, "other lane")}`}
    </>
  );
}

function queueHint(ageS: number | null, kind: Subscription["delivery_kind"]): string {
  if (ageS !== null) return `the oldest for ${duration(ageS)}`;
  return kind === "batch" ? "of the last batch" : "no event waits";
}

/** Shows the reason that an operator gave for disabling a subscription, in the operator's own words. */
export function OperatorNote({ subscription }: SubscriptionProps) {
  const { disabled_reason: reason, disabled_note: note } = subscription;
  if (reason !== "operator" || note === null) return null;
  return (
    <Text size="sm" component="blockquote" m="6px 0" pl={10} style={{ borderLeft: "3px solid" }}>
      {note}
    </Text>
  );
}

/** Text in place of controls that send events, because the API rejects their requests for a disabled subscription. */
export function NothingSent({ id }: { readonly id: string }) {
  const subscription = useQuery(subscriptionOptions(useReader(), id)).data;
  return subscription === undefined ? null : <NothingSentBy subscription={subscription} />;
}

function NothingSentBy({ subscription }: SubscriptionProps) {
  const mayEnable = useMayEnable(subscription);
  return (
    <Text size="sm" inherit>
      The subscription is disabled and sends nothing.{" "}
      {mayEnable ? (
        <TextLink href={`/webhooks/${subscription.id}`}>Enable it first.</TextLink>
      ) : (
        wayOut(subscription, false)
      )}
    </Text>
  );
}
