import { Group, Paper, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { useSession } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { Sparkline } from "../../ui/chart/sparkline.tsx";
import { CodeBlock } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { counted, duration, number, percent, sentence } from "../../ui/format.ts";
import { Dimmed, NamedValue, PageLink, Panel, TextLink, useIsNarrow } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { Countdown, ExactTime, Time, useNow } from "../../ui/time.tsx";
import { alertPhrase } from "./alert-data.ts";
import { Blocked } from "./blocked.tsx";
import { useIsReadOnly, useReader } from "./data/data.ts";
import {
  type Health,
  healthOptions,
  type Incident,
  incidentOptions,
  MAX_RESENT_EVENTS,
  type ListedDelivery,
  type SubscriptionProps,
  type PastIncident,
  pastIncidentsOptions,
  readDeliveries,
  STATS,
  subscriptionKey,
} from "./data/reads.ts";
import {
  DISABLED_AFTER,
  lastFailure,
  problemOf,
  RECOVERED,
  type TroublePeriod,
} from "./data/subscription-words.ts";
import { diagnosisOf } from "./deliveries/attempt-words.ts";
import { useUndelivered } from "./data/use-subscription-actions.ts";
import { ResendButton } from "./deliveries/resend-dialog.tsx";
import { WaitingEvents } from "./deliveries/waiting-events.tsx";
import { BatchWait } from "./stats/batch-wait.tsx";
import { HealthSummary, useCondition } from "./stats/health-summary.tsx";
import { OverTime } from "./stats/over-time.tsx";

const MINUTE_MS = 60_000;
const TICK_MS = 10_000;

export function Overview({ subscription }: SubscriptionProps) {
  const { id, is_active: isActive } = subscription;
  const health = useQuery(healthOptions(useReader(), id));
  const incident = useQuery(incidentOptions(useReader(), id)).data;
  const condition = useCondition(subscription);
  const now = useNow(MINUTE_MS);
  const isReadOnly = useIsReadOnly();
  const retry = isActive && health.data !== undefined && (
    <Blocked subscription={subscription} health={health.data} />
  );
  const problem =
    incident && health.data && problemOf(condition, incident, { health: health.data, now });
  return (
    <Stack gap="lg">
      {incident && problem ? (
        <Problem
          subscription={subscription}
          incident={incident}
          problem={problem}
          isOver={condition === "recovered"}
          blockedBy={isActive ? (health.data?.blocked_by ?? null) : null}
        >
          {retry}
          {isActive && !isReadOnly && <Resend subscription={subscription} />}
        </Problem>
      ) : (
        retry
      )}
      <Loaded query={health}>
        {(present) => (
          <Paper withBorder p="lg">
            <HealthSummary subscription={subscription} health={present}>
              <Further subscription={subscription} health={present} />
            </HealthSummary>
          </Paper>
        )}
      </Loaded>
      {subscription.delivery_kind === "batch" && <WaitingEvents subscription={subscription} />}
      <OverTime subscription={subscription} />
      <LatestEvents id={id} />
      <PastIncidents id={id} />
    </Stack>
  );
}

interface HealthProps extends SubscriptionProps {
  readonly health: Health;
}

/** Figures that only some subscriptions have: the next batch, failures in a row, and events that expired. */
function Further({ subscription, health }: HealthProps) {
  const { consecutive_failure_count: failures, is_active: isActive } = subscription;
  const { next_batch_at: next, last_batch_dispatched_at: last, delivery_kind: kind } = subscription;
  return (
    <>
      {kind === "batch" && isActive && (
        <NamedValue
          name="Next batch"
          hint={
            <>
              <BatchWait subscription={subscription} />{" "}
              {last === null ? (
                "No batch has been sent yet."
              ) : (
                <>
                  The last one was sent <Time at={last} />.
                </>
              )}
            </>
          }
        >
          {next === null ? "–" : <Countdown to={next} />}
        </NamedValue>
      )}
      {failures > 0 && isActive && (
        <NamedValue name="Failures in a row" hint={`disabled after ${DISABLED_AFTER}`}>
          {number(failures)}
        </NamedValue>
      )}
      {health.expired_24h > 0 && (
        <NamedValue name="Expired (24 h)" hint="held for more than 30 days">
          {number(health.expired_24h)}
        </NamedValue>
      )}
    </>
  );
}

/** Maximum number of attempts of which the server counts the causes (contract 6.17). */
const MAX_COUNTED = 1_000;

interface ProblemProps extends SubscriptionProps {
  readonly incident: Incident;
  readonly problem: TroublePeriod;
  /** True if nothing fails any more, but the success rate of the last hour is still low. */
  readonly isOver: boolean;
  /** Id of the event that `children` tell of, which waits for its retry; null without one. */
  readonly blockedBy: string | null;
  /** Next steps for the user, shown below the facts of the incident. */
  readonly children: ReactNode;
}

/**
 * Describes a present problem of the deliveries: its start or the success rate, the last response of the receiver, the
 * number of failed attempts by cause, and the alerts.
 */
function Problem({ subscription, incident, problem, isOver, ...rest }: ProblemProps) {
  const { blockedBy, children } = rest;
  const { id, disabled_at: disabledAt } = subscription;
  const now = useNow(TICK_MS);
  // Nothing is sent to a disabled subscription, so nothing fails any more.
  const end = disabledAt === null ? now : Date.parse(disabledAt);
  const failed = incident.causes.reduce((sum, cause) => sum + cause.attempts, 0);
  const { since, rate } = problem;
  const isOfHour = since === null || incident.causes.some(({ first_at: at }) => at < since);
  return (
    <Panel title={isOver ? "Recovered" : "Problem"}>
      <Stack gap="md">
        {isOver && <Recovery causes={incident.causes} />}
        <dl className="value-grid">
          {since !== null && (
            <NamedValue
              name={failingWords(rate, disabledAt)}
              hint={
                <>
                  {disabledAt === null ? "since" : "until it was disabled, since"}{" "}
                  <ExactTime at={since} />
                </>
              }
            >
              {duration(Math.max(0, end - Date.parse(since)) / 1_000)}
            </NamedValue>
          )}
          {rate !== null && (
            <NamedValue name="Success rate (1 h)" hint="healthy again at 98% for 15 minutes">
              {percent(rate)}
            </NamedValue>
          )}
          <NamedValue name="Failed attempts" hint={isOfHour ? "in the last hour" : "since then"}>
            {failed < MAX_COUNTED ? number(failed) : `${number(MAX_COUNTED)} or more`}
          </NamedValue>
        </dl>
        {children}
        {incident.last_answer !== null && !isOver && (
          <LastAnswer id={id} answer={incident.last_answer} blockedBy={blockedBy} />
        )}
        {incident.causes.length > 0 && <Causes incident={incident} />}
        <SentAlerts alerts={incident.alerts} />
      </Stack>
    </Panel>
  );
}

/** Tells that the problem is over, and when the last attempt failed. */
function Recovery({ causes }: Pick<Incident, "causes">) {
  const failed = lastFailure(causes);
  return (
    <Text size="sm">
      {RECOVERED}{" "}
      {failed !== undefined && (
        <>
          The last attempt failed <Time at={new Date(failed).toISOString()} />.
        </>
      )}
    </Text>
  );
}

/** Offers to resend the events that were not delivered. Renders nothing while there are none. */
function Resend({ subscription }: SubscriptionProps) {
  const count = useUndelivered(subscription);
  if (count === 0) return null;
  return (
    <Group justify="space-between" gap="sm">
      <Text size="sm" className="grows section-words">
        {count >= MAX_RESENT_EVENTS && "At least "}
        {counted(count, "event", "events")} of the last 30 days {count === 1 ? "was" : "were"} not
        delivered. Once your endpoint works, you can resend {count === 1 ? "it" : "them"}.
      </Text>
      <ResendButton subscription={subscription} />
    </Group>
  );
}

function failingWords(rate: number | null, disabledAt: string | null): string {
  if (rate !== null) return "Partly failing for";
  return disabledAt === null ? "Failing for" : "Failed for";
}

interface LastAnswerProps extends Pick<ProblemProps, "blockedBy"> {
  readonly id: string;
  readonly answer: NonNullable<Incident["last_answer"]>;
}

function LastAnswer({ id, answer, blockedBy }: LastAnswerProps) {
  const { title, advice } = diagnosisOf({ outcome: "failed", ...answer });
  const said = answer.response_excerpt ?? "";
  return (
    <Stack gap="sm">
      <Text size="sm">
        Last failed response <Time at={answer.at} />
        {answer.event_id !== blockedBy && (
          <>
            , to{" "}
            <TextLink href={`/webhooks/${id}/deliveries/${answer.event_id}`}>this event</TextLink>:{" "}
            <b>{title}</b>
          </>
        )}
        . {advice}
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
            label={`${rangeOf(cause.counts)} in each ${duration(incident.step)}`}
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
  // Neither operators nor portal links have the page of alerts.
  const { portal } = useSession();
  const hasAlerts = !useIsReadOnly() && portal === undefined;
  return (
    <Dimmed size="sm">
      {first === undefined ? (
        "No alert is open. "
      ) : (
        <>
          Alerts sent: {[...new Set(alerts.map(({ kind }) => alertPhrase(kind)))].join(", ")} (the
          first <Time at={first.raised_at} />
          ).{" "}
        </>
      )}
      {hasAlerts && <TextLink href="/webhooks/alerts">Alert settings</TextLink>}
    </Dimmed>
  );
}

const LATEST_EVENTS = 5;
/** Number of the latest events in narrow windows, where each is a card. */
const LATEST_ON_PHONES = 3;

/** Lists the newest events with their results. Renders nothing while there are none. */
function LatestEvents({ id }: { readonly id: string }) {
  const reader = useReader();
  const { data: events = [] } = useQuery({
    // Begins like the key of the charts, so that a new attempt updates both.
    queryKey: subscriptionKey(id, STATS, "latest"),
    queryFn: async () => (await readDeliveries(reader, id, {}, { limit: LATEST_EVENTS })).data,
  });
  const isNarrow = useIsNarrow("md");
  if (events.length === 0) return null;
  return (
    <Panel title="Latest events">
      <DataTable
        caption="Latest events"
        rows={isNarrow ? events.slice(0, LATEST_ON_PHONES) : events}
        rowKey={(one) => one.event_id}
        columns={(one) => ({
          Event: (
            <PageLink href={`/webhooks/${id}/deliveries/${one.event_id}`}>{one.event}</PageLink>
          ),
          State: <StateBadge state={one.state} />,
          Response: responseOf(one),
          Happened: <Time at={one.created_at} />,
        })}
      />
      <PageLink href={`/webhooks/${id}?tab=deliveries`} display="inline-block" mt="lg">
        All deliveries
      </PageLink>
    </Panel>
  );
}

function responseOf({ attempts }: ListedDelivery): string {
  const last = attempts.at(-1);
  return last === undefined ? "–" : diagnosisOf(last).title;
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
  return failed === 0
    ? "Events waited too long"
    : diagnosisOf({ outcome: "failed", ...cause }).title;
}

function outcomeOf({ disabled_at: disabledAt, ended_by: endedBy }: PastIncident): string {
  const end = endedBy === "recovered" ? "recovered" : "enabled";
  return disabledAt === null ? sentence(end) : `Disabled, then ${end}`;
}

/** Returns the least and the most of some numbers, or one number if they are equal. */
const rangeOf = (counts: readonly number[]) =>
  [...new Set([Math.min(...counts), Math.max(...counts)])].map(number).join(" to ");
