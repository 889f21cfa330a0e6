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
import { Figure } from "../../ui/figure.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Loaded } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { milliseconds, number } from "../../ui/words.ts";
import { useDelivery, useHealth, useStats } from "./data.ts";
import type { Health, Subscription } from "./model.ts";
import { HealthFigures } from "./health-figures.tsx";
import { rangeOf, STATS_RANGES } from "./stats-range.ts";
import { StatsCharts } from "./stats-charts.tsx";
import { withPresent } from "./stats-series.ts";

export function Overview({ subscription }: { readonly subscription: Subscription }) {
  const { id, is_active: isActive } = subscription;
  const health = useHealth(id);
  return (
    <Stack gap="lg">
      <Loaded query={health}>
        {(now) => (
          <>
            {isActive && now.blocked_by !== null && (
              <Blocked subscription={subscription} eventId={now.blocked_by} health={now} />
            )}
            <Paper withBorder p="lg">
              <Stack gap="lg">
                <HealthFigures health={now} isActive={isActive} />
                <MoreFigures subscription={subscription} health={now} />
              </Stack>
            </Paper>
          </>
        )}
      </Loaded>
      <Charts id={id} pending={health.data?.pending ?? 0} />
    </Stack>
  );
}

function MoreFigures({
  subscription,
  health,
}: {
  readonly subscription: Subscription;
  readonly health: Health;
}) {
  const { latency_ms_24h: latency, expired_24h: expired } = health;
  const { consecutive_failure_count: failures } = subscription;
  return (
    <dl className="figure-grid">
      <Figure name="Answer time, 24 h" hint="half of all answers are faster">
        {milliseconds(latency.p50)}
      </Figure>
      <Figure name="Slowest 1 %, 24 h" hint="the limit is 15 s">
        {milliseconds(latency.p99)}
      </Figure>
      <Figure name="Failed in a row" hint="disabled at 20">
        {number(failures)}
      </Figure>
      {subscription.delivery_kind === "batch" ? (
        <Figure
          name="Next batch"
          hint={
            <>
              Last: <Time at={subscription.last_batch_dispatched_at} />
            </>
          }
        >
          {subscription.next_batch_at === null || !subscription.is_active ? (
            "–"
          ) : (
            <Countdown to={subscription.next_batch_at} />
          )}
        </Figure>
      ) : (
        <Figure name="Expired, 24 h" hint="held for over 30 days">
          {number(expired)}
        </Figure>
      )}
    </dl>
  );
}

/** The head of the queue waits for its retry, and everything behind it with it. */
function Blocked({
  subscription,
  eventId,
  health,
}: {
  readonly subscription: Subscription;
  readonly eventId: string;
  readonly health: Health;
}) {
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

function Charts({ id, pending }: { readonly id: string; readonly pending: number }) {
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
          {(shown) => <StatsCharts stats={withPresent(shown, pending)} />}
        </Loaded>
      )}
    </section>
  );
}
