import { Alert, Anchor, Paper, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";

import { Countdown, Time } from "../../ui/time.tsx";
import { milliseconds, number } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { NamedValue } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { useReader } from "./data/data.ts";
import {
  deliveryOptions,
  type Health,
  healthOptions,
  incidentOptions,
  type Subscription,
} from "./data/reads.ts";
import { IncidentCard } from "./incident-card.tsx";
import { OverTime } from "./stats/over-time.tsx";
import { HealthSummary } from "./stats/health-summary.tsx";
import { isRetryShown, stateInWord } from "./data/subscription-words.ts";

export function Overview({ subscription }: { readonly subscription: Subscription }) {
  const { id, is_active: isActive } = subscription;
  const health = useQuery(healthOptions(useReader(), id));
  const since = useQuery(incidentOptions(useReader(), id)).data?.since ?? null;
  const isIncident = since !== null && stateInWord(subscription, health.data) !== "active";
  const retry = isActive && health.data !== undefined && (
    <Retry subscription={subscription} health={health.data} />
  );
  return (
    <Stack gap="lg">
      {isIncident ? <IncidentCard subscription={subscription}>{retry}</IncidentCard> : retry}
      <Loaded query={health}>
        {(now) => (
          <Paper withBorder p="lg">
            <HealthSummary health={now} isActive={isActive} isQueueSaid={isIncident}>
              <HealthDetails subscription={subscription} health={now} isIncident={isIncident} />
            </HealthSummary>
          </Paper>
        )}
      </Loaded>
      <OverTime subscription={subscription} />
    </Stack>
  );
}

interface HealthProps {
  readonly subscription: Subscription;
  readonly health: Health;
}

interface HealthDetailsProps extends HealthProps {
  /** True if the page shows an incident card, which already contains the number of failures. */
  readonly isIncident: boolean;
}

function HealthDetails({ subscription, health, isIncident }: HealthDetailsProps) {
  const { p50, p99 } = health.latency_ms_24h;
  return (
    <>
      <NamedValue name="Answer time, 24 h" hint="half of all answers are faster">
        {milliseconds(p50)}
      </NamedValue>
      <NamedValue name="Slowest 1 %, 24 h" hint="the limit is 15 s">
        {milliseconds(p99)}
      </NamedValue>
      {!isIncident && (
        <NamedValue name="Consecutive failures" hint="disabled at 20">
          {number(subscription.consecutive_failure_count)}
        </NamedValue>
      )}
      {subscription.delivery_kind === "batch" ? (
        <NextBatch subscription={subscription} />
      ) : (
        <NamedValue name="Expired, 24 h" hint="held for over 30 days">
          {number(health.expired_24h)}
        </NamedValue>
      )}
    </>
  );
}

function NextBatch({ subscription }: Pick<HealthProps, "subscription">) {
  const { next_batch_at: next, last_batch_dispatched_at: last, is_active: isActive } = subscription;
  return (
    <NamedValue
      name="Next batch"
      hint={
        last === null ? (
          "the first one"
        ) : (
          <>
            the last was <Time at={last} />
          </>
        )
      }
    >
      {next === null || !isActive ? "–" : <Countdown to={next} />}
    </NamedValue>
  );
}

function Retry({ subscription, health }: HealthProps) {
  const { blocked_by: eventId } = health;
  if (eventId === null || !isRetryShown(subscription, health)) return null;
  return <Blocked {...{ subscription, health, eventId }} />;
}

/** Explains that the first event in the queue waits for its retry and blocks the events behind it. */
function Blocked({ subscription, eventId, health }: HealthProps & { readonly eventId: string }) {
  const next =
    useQuery(deliveryOptions(useReader(), subscription.id, eventId)).data?.attempts.at(-1)
      ?.next_attempt_at ?? null;
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
