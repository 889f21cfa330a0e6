import { Group, SegmentedControl } from "@mantine/core";
import type { ReactNode } from "react";

import { StateBadge, stateWord, Tag } from "../../ui/badges.tsx";
import { Copy } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { counted, duration, number, sentence } from "../../ui/format.ts";
import { CellText, Dimmed, Panel, PageLink } from "../../ui/layout.tsx";
import { rowsOf, TableList } from "../../ui/list.tsx";
import { useNow } from "../../ui/time.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { usePartnerName } from "../companies/data.ts";
import { DisableSubscription, EnableSubscription } from "../webhooks/operator-actions.tsx";
import { DISABLED_AFTER } from "../webhooks/data/subscription-words.ts";
import { ATTEMPTS, diagnosisOf } from "../webhooks/deliveries/attempt-words.ts";
import { lettersOf, outageText, PANELS, targetOf } from "./problems.ts";
import { type Backlog, type DispatcherState, useBacklogs } from "./data.ts";

interface Rows<List extends keyof DispatcherState> {
  readonly rows: DispatcherState[List];
}

/**
 * Shows only the oldest blocking event of each subscription, because a failing receiver may block hundreds of events.
 */
export function BlockedHeads({ rows }: Rows<"blocked_heads">) {
  const partner = usePartnerName();
  const labels = new Map(rowsOf(useBacklogs().list).map((one) => [one.subscription_id, one.label]));
  if (rows.length === 0) return <Dimmed size="sm">No event is waiting for a retry.</Dimmed>;
  const bySubscription = Map.groupBy(rows, (one) => one.subscription_id);
  return (
    <>
      <Dimmed size="sm" mb="sm">
        If attempt {ATTEMPTS} of {ATTEMPTS} fails as well, the event counts as failed and the next
        one is sent. {DISABLED_AFTER} failed events in a row disable the subscription.
      </Dimmed>
      <DataTable
        caption="Subscriptions with a failed event that blocks later events"
        rows={[...bySubscription.values()].flatMap(([one, ...others]) =>
          one === undefined ? [] : [{ ...one, others: others.length }],
        )}
        rowKey={(one) => one.subscription_id}
        end="Actions"
        columns={(one) => ({
          Subscription: (
            <>
              <SubscriptionLink partnerId={one.partner_id} id={one.subscription_id}>
                {labels.get(one.subscription_id) ?? `…${one.subscription_id.slice(-8)}`}
              </SubscriptionLink>
              <Dimmed>{partner(one.partner_id)}</Dimmed>
            </>
          ),
          Event: (
            <>
              <PageLink
                href={`/companies/${one.partner_id}/webhooks/${one.subscription_id}/deliveries/${one.event_id}`}
              >
                {one.event}
              </PageLink>
              <Id id={one.event_id} label="Copy the event ID" />
              {one.others > 0 && <Dimmed>and {counted(one.others, "other event")}</Dimmed>}
            </>
          ),
          "Next attempt": `${one.attempt} of ${ATTEMPTS}`,
          Due: <Time at={one.due_at} mayBeAhead />,
          Recorded: <Time at={one.recorded_at} />,
          Actions: (
            <DisableSubscription
              partnerId={one.partner_id}
              id={one.subscription_id}
              name={`the subscription of ${partner(one.partner_id)}`}
            />
          ),
        })}
      />
    </>
  );
}

const DISABLED_REASONS: Readonly<Record<string, string>> = {
  consecutive_failures: "Too many consecutive failures",
  manual: "Disabled by hand",
  operator: "Disabled by an operator",
  suspended: "The partner is suspended",
};

export function DisabledSubscriptions({ rows }: Rows<"disabled_subscriptions">) {
  const partner = usePartnerName();
  if (rows.length === 0) return <Dimmed size="sm">Every subscription is active.</Dimmed>;
  return (
    <DataTable
      caption="Disabled subscriptions, most recently disabled first"
      rows={rows}
      rowKey={(one) => one.id}
      end="Actions"
      columns={(one) => ({
        Label: (
          <SubscriptionLink partnerId={one.partner_id} id={one.id}>
            {one.label}
          </SubscriptionLink>
        ),
        Partner: partner(one.partner_id),
        Why: `${DISABLED_REASONS[one.disabled_reason] ?? sentence(one.disabled_reason)}${one.consecutive_failure_count > 0 ? ` (${one.consecutive_failure_count})` : ""}`,
        Since: <ExactTime at={one.disabled_at} />,
        // Omits the button for the subscription of a suspended partner, because only the activation of the partner
        // enables this subscription (contract 10.1).
        Actions: one.disabled_reason !== "suspended" && (
          <EnableSubscription
            partnerId={one.partner_id}
            id={one.id}
            name={`“${one.label}” of ${partner(one.partner_id)}`}
          />
        ),
      })}
    />
  );
}

export function Dispatchers({ rows }: Rows<"dispatchers">) {
  const letters = lettersOf(rows);
  if (rows.length === 0)
    return (
      <Dimmed size="sm">
        No dispatcher is running. Start one with <code>bun run dispatcher</code>. It claims the
        shards within seconds.
      </Dimmed>
    );
  return (
    <DataTable
      caption="Running dispatchers"
      rows={rows}
      rowKey={(one) => one.id}
      columns={(one) => ({
        Dispatcher: (
          <CellText title={letters.get(one.id)}>
            {one.outage !== null && (
              <>
                {outageText(one.outage)} Since <Time at={one.outage_since} />.
              </>
            )}
          </CellText>
        ),
        ID: <Id id={one.id} label="Copy the dispatcher's ID" />,
        "Running since": <ExactTime at={one.started_at} />,
        "Last heartbeat": `${duration(one.silent_ms / 1_000)} ago`,
        Holds: (
          <>
            {counted(one.shards, "shard")}
            <Dimmed>
              {one.subscriptions === 0
                ? "nothing queued"
                : `${counted(one.subscriptions, "subscription")} with events`}
            </Dimmed>
          </>
        ),
        Delay: duration(one.lag_s),
        Memory: one.memory_mb === null ? "Unknown" : `${number(one.memory_mb)} MiB`,
      })}
    />
  );
}

const QUARANTINE_WORDS: Readonly<Record<string, string>> = {
  history_missing: "The event is missing in the history",
  unreadable: "Its events cannot be read",
  unrecordable: "The result of an attempt cannot be stored",
  secret_unreadable: "No master key opens its secret or headers",
  locked: "Another database session holds a lock",
};

/** Lists the lanes that wait because of a failure of this service, not of the receiver. */
export function QuarantinedLanes({ rows }: Rows<"quarantined_lanes">) {
  return (
    <DataTable
      caption="Quarantined lanes"
      rows={rows}
      rowKey={(one) => `${one.subscription_id} ${one.event_id} ${one.review_id}`}
      columns={(one) => ({
        Subscription: <Id id={one.subscription_id} label="Copy the subscription's ID" />,
        Why: QUARANTINE_WORDS[one.reason] ?? sentence(one.reason),
        Review: one.review_id ?? "All",
        "First event":
          one.event_id === null ? "Unknown" : <Id id={one.event_id} label="Copy the event ID" />,
        Since: <Time at={one.since} />,
      })}
    />
  );
}

interface SubscriptionLinkProps {
  readonly partnerId: number;
  readonly id: string;
  readonly children: ReactNode;
}

/** Links to a subscription's page as its partner sees it. The tooltip shows the subscription id. */
function SubscriptionLink({ partnerId, id, children }: SubscriptionLinkProps) {
  return (
    <PageLink href={`/companies/${partnerId}/webhooks/${id}`} fw={600} title={id}>
      {children}
    </PageLink>
  );
}

function Id({ id, label }: { readonly id: string; readonly label: string }) {
  return (
    <Group gap={2} wrap="nowrap">
      {/* Shows the last 8 characters of the id. Ids begin with a timestamp, so the first characters of many
          ids are equal. */}
      <Dimmed ff="monospace" title={id} className="one-line">
        …{id.slice(-8)}
      </Dimmed>
      <Copy value={id} label={label} />
    </Group>
  );
}

/** Interval in ms after which the queue ages are rendered again. The ages grow even when no new data arrives. */
const TICK_MS = 5_000;

/** Largest queue length that the server counts exactly. It estimates the length of longer queues. */
const MAX_COUNTED = 1_000;

function queuedInWords(queued: number): string {
  return queued > MAX_COUNTED ? `about ${number(queued)}` : number(queued);
}

/**
 * Lists the subscriptions that have queued events, with the number of events, the age of the oldest event, and
 * a link to the subscription.
 */
export function Backlogs({ dispatchers }: Pick<DispatcherState, "dispatchers">) {
  const { order, setOrder, list } = useBacklogs();
  const letters = lettersOf(dispatchers);
  const now = useNow(TICK_MS);
  return (
    <Panel title={PANELS.backlogs} id={targetOf(PANELS.backlogs)}>
      <Group justify="space-between" mb="sm" gap="sm">
        <Dimmed size="sm">Subscriptions with queued events.</Dimmed>
        <SegmentedControl
          size="xs"
          aria-label="Order"
          value={order}
          onChange={setOrder}
          data={[
            { value: "depth", label: "Most events" },
            { value: "age", label: "Longest wait" },
          ]}
        />
      </Group>
      <TableList
        list={list}
        noun={["subscription", "subscriptions"]}
        empty={<Dimmed size="sm">No event is queued.</Dimmed>}
        table={{
          caption: "Subscriptions with queued events, largest backlog first",
          columns: (one) => ({
            Subscription: (
              <>
                <SubscriptionLink partnerId={one.partner_id} id={one.subscription_id}>
                  {one.label}
                </SubscriptionLink>
                <Dimmed>{one.partner_name}</Dimmed>
              </>
            ),
            Queued: <span className="tabular">{queuedInWords(one.queued)}</span>,
            "Oldest event": `${duration(Math.max(0, now - Date.parse(one.oldest_recorded_at)) / 1_000)} old`,
            State: <State backlog={one} />,
            "Last error": <LastError error={one.last_error} />,
            Shard: `${one.shard}, ${holderOf(one, letters)}`,
          }),
        }}
      />
    </Panel>
  );
}

interface BacklogProps {
  readonly backlog: Backlog;
}

function State({ backlog: { is_active: isActive, due_at: dueAt } }: BacklogProps) {
  if (!isActive) return <StateBadge state="disabled" />;
  if (dueAt === null) return <StateBadge state="pending" />;
  return (
    <Tag color="yellow">
      {stateWord("waiting")} <Time at={dueAt} mayBeAhead />
    </Tag>
  );
}

function LastError({ error }: { readonly error: Backlog["last_error"] }) {
  if (error === null) return "None";
  const { title } = diagnosisOf({ outcome: "retry", ...error });
  return (
    <>
      {title}
      <Dimmed>
        <Time at={error.at} />
      </Dimmed>
    </>
  );
}

function holderOf({ dispatcher_id: id }: Backlog, letters: ReadonlyMap<string, string>): string {
  if (id === null) return "no dispatcher";
  return `dispatcher ${letters.get(id) ?? "that just started"}`;
}
