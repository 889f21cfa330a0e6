import { Alert, Paper, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { Sparkline } from "../../ui/chart/sparkline.tsx";
import { CodeBlock } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { counted, number, duration } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { NamedValue, TextLink, Dimmed, Panel } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { Countdown, ExactTime, Time } from "../../ui/time.tsx";
import { alertPhrase } from "./alert-data.ts";
import { useIsReadOnly, useReader } from "./data/data.ts";
import {
  deliveryOptions,
  type Health,
  healthOptions,
  type Incident,
  incidentOptions,
  type SubscriptionProps,
  type PastIncident,
  pastIncidentsOptions,
} from "./data/reads.ts";
import { conditionOf, isRetryShown } from "./data/subscription-words.ts";
import { diagnosisOf } from "./deliveries/attempt-words.ts";
import { HealthSummary } from "./stats/health-summary.tsx";
import { OverTime } from "./stats/over-time.tsx";

export function Overview({ subscription }: SubscriptionProps) {
  const { id, is_active: isActive } = subscription;
  const health = useQuery(healthOptions(useReader(), id));
  const since = useQuery(incidentOptions(useReader(), id)).data?.since ?? null;
  const isIncident = since !== null && isTrouble(conditionOf(subscription, health.data));
  const retry = isActive && health.data !== undefined && (
    <Retry subscription={subscription} health={health.data} />
  );
  return (
    <Stack gap="lg">
      {isIncident ? <IncidentCard subscription={subscription}>{retry}</IncidentCard> : retry}
      <Loaded query={health}>
        {(now) => (
          <Paper withBorder p="lg">
            <HealthSummary health={now} isActive={isActive} />
            <HealthDetails subscription={subscription} health={now} />
          </Paper>
        )}
      </Loaded>
      <OverTime subscription={subscription} />
      <PastIncidents id={id} />
    </Stack>
  );
}

const isTrouble = (condition: string) => condition === "failing" || condition === "disabled";

interface HealthProps extends SubscriptionProps {
  readonly health: Health;
}

/** Shows further figures about the deliveries of a subscription in one line. */
function HealthDetails({ subscription, health }: HealthProps) {
  return (
    <Text size="sm" c="dimmed" mt="sm">
      Consecutive failures: {number(subscription.consecutive_failure_count)} of 20 ·{" "}
      {subscription.delivery_kind === "batch" ? (
        <NextBatch subscription={subscription} />
      ) : (
        `Events expired in 24 h: ${number(health.expired_24h)}`
      )}
    </Text>
  );
}

function NextBatch({ subscription }: SubscriptionProps) {
  const { next_batch_at: next, last_batch_dispatched_at: last, is_active: isActive } = subscription;
  return (
    <>
      Next batch: {next === null || !isActive ? "–" : <Countdown to={next} />},{" "}
      {last === null ? (
        "no batch sent yet"
      ) : (
        <>
          last batch: <Time at={last} />
        </>
      )}
    </>
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
  const isReadOnly = useIsReadOnly();
  const isPerReview = subscription.ordering === "review";
  const title = isPerReview
    ? "An event is blocking later events of its review"
    : "An event is blocking later events";
  return (
    <Alert color="yellow" icon={<Icon name="clock" />} title={title}>
      <Text size="sm">
        <TextLink href={href}>Event {eventId}</TextLink> failed <Time at={health.blocked_since} />{" "}
        and waits for a retry
        {next !== null && (
          <>
            , <Countdown to={next} />
          </>
        )}
        {isPerReview
          ? ". Later events of its review are sent after it, in order. Events of other reviews are sent as usual."
          : ". Later events are sent after it, in order."}
        {!isReadOnly &&
          !isPerReview &&
          subscription.delivery_kind === "immediate" &&
          " If order matters only within one review, choose “Strict per review” in the settings."}
      </Text>
    </Alert>
  );
}

/** Maximum number of attempts of which the server counts the causes (contract 6.17). */
const MAX_COUNTED = 1_000;

interface IncidentCardProps extends SubscriptionProps {
  /** Next steps for the user, shown below the facts of the incident. */
  readonly children: ReactNode;
}

/**
 * Describes an ongoing delivery failure: its start, the last response of the receiver, the number of attempts
 * per cause, and the number of queued events.
 */
function IncidentCard({ subscription, children }: IncidentCardProps) {
  const { id, is_active: isActive } = subscription;
  const incident = useQuery(incidentOptions(useReader(), id)).data;
  const health = useQuery(healthOptions(useReader(), id)).data;
  if (incident === undefined || incident.since === null) return children;
  const failed = incident.causes.reduce((sum, cause) => sum + cause.attempts, 0);
  const queued = isActive ? health?.pending : health?.held;
  return (
    <Panel title="Problem">
      <Stack gap="md">
        <dl className="value-grid">
          <NamedValue name="Since" hint={<ExactTime at={incident.since} />}>
            <Time at={incident.since} />
          </NamedValue>
          <NamedValue name="Failed attempts" hint="since then">
            {failed < MAX_COUNTED ? number(failed) : `${number(MAX_COUNTED)} or more`}
          </NamedValue>
          <NamedValue
            name={isActive ? "Pending" : "Held"}
            hint={isActive ? "events in the queue" : "for up to 30 days"}
          >
            {queued === undefined ? "–" : number(queued)}
          </NamedValue>
        </dl>
        {children}
        {incident.last_answer !== null && <LastAnswer id={id} answer={incident.last_answer} />}
        {incident.causes.length > 0 && <Causes incident={incident} />}
        <SentAlerts alerts={incident.alerts} />
      </Stack>
    </Panel>
  );
}

interface LastAnswerProps {
  readonly id: string;
  readonly answer: NonNullable<Incident["last_answer"]>;
}

function LastAnswer({ id, answer }: LastAnswerProps) {
  const { title, advice } = diagnosisOf({ outcome: "failed", ...answer });
  const said = answer.response_excerpt ?? "";
  return (
    <Stack gap="sm">
      <Text size="sm">
        Last response <Time at={answer.at} />, to{" "}
        <TextLink href={`/webhooks/${id}/deliveries/${answer.event_id}`}>this event</TextLink>:{" "}
        <b>{title}</b>. {advice}
      </Text>
      {said !== "" && <CodeBlock label="Response body" isJson code={said} wraps />}
    </Stack>
  );
}

/** Lists the causes of failed attempts with their numbers. The bars repeat the numbers graphically. */
function Causes({ incident }: { readonly incident: Incident }) {
  return (
    <DataTable
      caption="Failed attempts by cause"
      rows={incident.causes}
      rowKey={(cause) => `${cause.status_code} ${cause.error_code} ${cause.tls_reason}`}
      columns={(cause) => ({
        Cause: diagnosisOf({ outcome: "failed", ...cause }).title,
        Attempts: number(cause.attempts),
        "Over time": (
          <Sparkline
            bars={cause.counts.map((bad) => ({ good: 0, bad }))}
            label={`From ${number(Math.min(...cause.counts))} to ${number(Math.max(...cause.counts))} per interval`}
          />
        ),
        Last: <Time at={cause.last_at} />,
      })}
    />
  );
}

/** Lists the alerts that an incident has raised. */
function SentAlerts({ alerts }: Pick<Incident, "alerts">) {
  const [first] = alerts;
  return (
    <Dimmed size="sm">
      {first === undefined ? (
        "No alert has been sent yet. "
      ) : (
        <>
          {counted(alerts.length, "alert")}, the first <Time at={first.raised_at} />:{" "}
          {alerts.map(({ kind }) => alertPhrase(kind)).join(", ")}.{" "}
        </>
      )}
      {!useIsReadOnly() && <TextLink href="/webhooks/alerts">Alert settings</TextLink>}
    </Dimmed>
  );
}

/** Lists the past incidents of a subscription. Renders nothing while there are none. */
function PastIncidents({ id }: { readonly id: string }) {
  const { incidents = [] } = useQuery(pastIncidentsOptions(useReader(), id)).data ?? {};
  if (incidents.length === 0) return null;
  return (
    <Panel title="Past incidents">
      <DataTable
        caption="Past incidents, newest first"
        rows={incidents}
        rowKey={(one) => one.id}
        columns={(one) => ({
          Began: <ExactTime at={one.began_at} />,
          Duration: duration((Date.parse(one.ended_at) - Date.parse(one.began_at)) / 1_000),
          Cause: causeOf(one),
          "Failed attempts": number(one.failed_attempts),
          Outcome: outcomeOf(one),
        })}
      />
    </Panel>
  );
}

function causeOf({ failed_attempts: failed, ...cause }: PastIncident): string {
  return failed === 0 ? "Backlog" : diagnosisOf({ outcome: "failed", ...cause }).title;
}

function outcomeOf({ disabled_at: disabledAt, ended_by: endedBy }: PastIncident): string {
  const end = endedBy === "recovered" ? "recovered" : "enabled";
  return disabledAt === null ? `Not disabled, ${end}` : `Disabled, then ${end}`;
}
