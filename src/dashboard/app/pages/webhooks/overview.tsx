import {
  Alert,
  Anchor,
  Group,
  Paper,
  SegmentedControl,
  Skeleton,
  Stack,
  Text,
} from "@mantine/core";
import { Link, useSearchParams } from "wouter";

import { Countdown } from "../../ui/countdown.tsx";
import { milliseconds, number } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { NamedValue } from "../../ui/named-value.tsx";
import { Loaded } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { useDelivery, useHealth, useStats } from "./data/data.ts";
import type { Health, Subscription } from "./data/reads.ts";
import { rangeOf, STATS_RANGES } from "./data/stats-range.ts";
import { IncidentCard } from "./incident-card.tsx";
import { HealthSummary } from "./stats/health-summary.tsx";
import { StatsCharts } from "./stats/stats-charts.tsx";
import { withPresent } from "./stats/stats-series.ts";

export function Overview({ subscription }: { readonly subscription: Subscription }) {
  const { id, is_active: isActive } = subscription;
  const health = useHealth(id);
  return (
    <Stack gap="lg">
      <IncidentCard subscription={subscription} />
      <Loaded query={health}>
        {(now) => (
          <>
            {isActive && now.blocked_by !== null && (
              <Blocked subscription={subscription} eventId={now.blocked_by} health={now} />
            )}
            <Paper withBorder p="lg">
              <Stack gap="lg">
                <HealthSummary health={now} isActive={isActive} />
                <HealthDetails subscription={subscription} health={now} />
              </Stack>
            </Paper>
          </>
        )}
      </Loaded>
      <Charts id={id} queued={queuedOf(health.data)} />
    </Stack>
  );
}

/** Counts what is in the queue; of a disabled subscription that is held. */
const queuedOf = (health: Health | undefined) =>
  health === undefined ? 0 : health.pending + health.held;

interface HealthProps {
  readonly subscription: Subscription;
  readonly health: Health;
}

function HealthDetails({ subscription, health }: HealthProps) {
  const { p50, p99 } = health.latency_ms_24h;
  return (
    <dl className="value-grid">
      <NamedValue name="Answer time, 24 h" hint="half of all answers are faster">
        {milliseconds(p50)}
      </NamedValue>
      <NamedValue name="Slowest 1 %, 24 h" hint="the limit is 15 s">
        {milliseconds(p99)}
      </NamedValue>
      <NamedValue name="Failed in a row" hint="disabled at 20">
        {number(subscription.consecutive_failure_count)}
      </NamedValue>
      {subscription.delivery_kind === "batch" ? (
        <NextBatch subscription={subscription} />
      ) : (
        <NamedValue name="Expired, 24 h" hint="held for over 30 days">
          {number(health.expired_24h)}
        </NamedValue>
      )}
    </dl>
  );
}

function NextBatch({ subscription }: Pick<HealthProps, "subscription">) {
  const { next_batch_at: next, last_batch_dispatched_at: last, is_active: isActive } = subscription;
  return (
    <NamedValue
      name="Next batch"
      hint={
        <>
          Last: <Time at={last} />
        </>
      }
    >
      {next === null || !isActive ? "–" : <Countdown to={next} />}
    </NamedValue>
  );
}

/** Says that the head of the queue waits for its retry, and everything behind it, too. */
function Blocked({ subscription, eventId, health }: HealthProps & { readonly eventId: string }) {
  const next = useDelivery(subscription.id, eventId).data?.attempts.at(-1)?.next_attempt_at ?? null;
  const href = `/webhooks/${subscription.id}/deliveries/${eventId}`;
  const isPerReview = subscription.ordering === "review";
  const title = isPerReview ? "One event holds back its review" : "One event holds back the others";
  return (
    <Alert color="yellow" icon={<Icon name="clock" />} title={title}>
      <Text size="sm">
        <Anchor component={Link} href={href} inherit underline="always">
          Event {eventId}
        </Anchor>{" "}
        failed <Time at={health.blocked_since} /> and waits for its retry
        {next !== null && (
          <>
            , <Countdown to={next} />
          </>
        )}
        {isPerReview
          ? ". Later events of its review follow in order; other reviews go on."
          : ". Those behind it follow in order."}
        {!isPerReview &&
          subscription.delivery_kind === "immediate" &&
          " If order matters only within one review, choose “Strict per review” in the settings."}
      </Text>
    </Alert>
  );
}

function Charts({ id, queued }: { readonly id: string; readonly queued: number }) {
  const [params, setParams] = useSearchParams();
  const range = rangeOf(params.get("range"));
  const stats = useStats(id, range);
  return (
    <section aria-label="Over time">
      <Group justify="space-between" mb="sm">
        <Text fw={650} component="h2" size="lg" m={0}>
          Over time
        </Text>
        <SegmentedControl
          aria-label="Range"
          value={range}
          onChange={(next) => setParams(next === "24h" ? {} : { range: next }, { replace: true })}
          data={Object.entries(STATS_RANGES).map(([value, { label }]) => ({ value, label }))}
        />
      </Group>
      {stats.isPending ? (
        <Skeleton height={620} />
      ) : (
        <Loaded query={stats}>
          {(shown) => <StatsCharts stats={withPresent(shown, queued)} />}
        </Loaded>
      )}
    </section>
  );
}
