import { Alert, Paper, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { useSession } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { Sparkline } from "../../ui/chart/sparkline.tsx";
import { CodeBlock } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { duration, number, percent, sentence } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Dimmed, NamedValue, PageLink, Panel, TextLink, useIsNarrow } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { Countdown, ExactTime, Time, useNow } from "../../ui/time.tsx";
import { alertPhrase } from "./alert-data.ts";
import { useIsReadOnly, useReader } from "./data/data.ts";
import {
  deliveryOptions,
  type Health,
  healthOptions,
  type Incident,
  incidentOptions,
  type ListedDelivery,
  type SubscriptionProps,
  type PastIncident,
  pastIncidentsOptions,
  readDeliveries,
  STATS,
  subscriptionKey,
} from "./data/reads.ts";
import {
  conditionOf,
  DISABLED_AFTER,
  isRetryShown,
  problemOf,
  type TroublePeriod,
} from "./data/subscription-words.ts";
import { diagnosisOf } from "./deliveries/attempt-words.ts";
import { HealthSummary } from "./stats/health-summary.tsx";
import { OverTime } from "./stats/over-time.tsx";

const MINUTE_MS = 60_000;
const TICK_MS = 10_000;

export function Overview({ subscription }: SubscriptionProps) {
  const { id, is_active: isActive } = subscription;
  const health = useQuery(healthOptions(useReader(), id));
  const incident = useQuery(incidentOptions(useReader(), id)).data;
  const condition = conditionOf(subscription, health.data);
  const now = useNow(MINUTE_MS);
  const retry = isActive && health.data !== undefined && (
    <Retry subscription={subscription} health={health.data} />
  );
  const problem =
    incident && health.data && problemOf(condition, incident, { health: health.data, now });
  return (
    <Stack gap="lg">
      {incident && problem ? (
        <Problem id={id} incident={incident} problem={problem}>
          {retry}
        </Problem>
      ) : (
        retry
      )}
      <Loaded query={health}>
        {(present) => (
          <Paper withBorder p="lg">
            <HealthSummary health={present} isActive={isActive}>
              <Further subscription={subscription} health={present} />
            </HealthSummary>
          </Paper>
        )}
      </Loaded>
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
            last === null ? (
              "no batch sent yet"
            ) : (
              <>
                last batch <Time at={last} />
              </>
            )
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
        <TextLink href={href}>Event {eventId}</TextLink> {timesInWords(health)}{" "}
        <Time at={health.blocked_since} />.
        {next !== null && (
          <>
            {" "}
            The next attempt is <Countdown to={next} />.
          </>
        )}
        {isPerReview
          ? " Later events of its review are sent after it, in order. Events of other reviews are sent as usual."
          : " Later events are sent after it, in order."}
        {!isReadOnly &&
          !isPerReview &&
          subscription.delivery_kind === "immediate" &&
          " If order matters only within one review, choose “Strict per review” in the settings."}
      </Text>
    </Alert>
  );
}

const timesInWords = ({ blocked_attempts: failed }: Health) =>
  failed === 1 ? "failed" : `has failed ${number(failed)} times, first`;

/** Maximum number of attempts of which the server counts the causes (contract 6.17). */
const MAX_COUNTED = 1_000;

interface ProblemProps {
  readonly id: string;
  readonly incident: Incident;
  readonly problem: TroublePeriod;
  /** Next steps for the user, shown below the facts of the incident. */
  readonly children: ReactNode;
}

/**
 * Describes a present problem of the deliveries: its start or the success rate, the last response of the receiver, the
 * number of failed attempts by cause, and the alerts.
 */
function Problem({ id, incident, problem, children }: ProblemProps) {
  const now = useNow(TICK_MS);
  const failed = incident.causes.reduce((sum, cause) => sum + cause.attempts, 0);
  const { since, rate } = problem;
  return (
    <Panel title="Problem">
      <Stack gap="md">
        <dl className="value-grid">
          {since !== null && (
            <NamedValue
              name={rate === null ? "Failing for" : "Partly failing for"}
              hint={
                <>
                  since <ExactTime at={since} />
                </>
              }
            >
              {duration(Math.max(0, now - Date.parse(since)) / 1_000)}
            </NamedValue>
          )}
          {rate !== null && (
            <NamedValue name="Success rate (1 h)" hint="healthy again from 98%">
              {percent(rate)}
            </NamedValue>
          )}
          <NamedValue
            name="Failed attempts"
            hint={since === null ? "in the last hour" : "since then"}
          >
            {failed < MAX_COUNTED ? number(failed) : `${number(MAX_COUNTED)} or more`}
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
            label={`${number(Math.min(...cause.counts))} to ${number(Math.max(...cause.counts))} in each ${duration(incident.step)}`}
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
        "No alert has been sent yet. "
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
          Time: <Time at={one.attempts.at(-1)?.started_at ?? one.created_at} />,
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
