import type { RawDb } from "../../db/client.ts";
import {
  bySequence,
  inOrder,
  type AttemptEntry,
  type EndedEntry,
  type QueuedEntry,
  type SubscriptionState,
  type TablesState,
} from "./tables.ts";
import type { Names } from "./tested-store.ts";

interface Context {
  readonly subscriptions: Names<string>;
  readonly events: Names<string>;
  readonly reviews: Names<number>;
  readonly startMs: number;
}

type Of<Row> = Row & { readonly subscriptionId: string };

interface QueuedRow {
  readonly sequence: number;
  readonly isLogged: boolean;
  readonly eventId: string;
  readonly isTest: boolean;
  readonly reviewId: number | null;
  readonly round: number;
  readonly attempt: number;
  readonly dueAt: Date | null;
  readonly recordedAt: Date;
}

interface SkippedRow {
  readonly sequence: number;
  readonly eventId: string;
  readonly round: number;
  readonly reason: "deleted" | "skipped";
  readonly at: Date;
}

interface AttemptRow {
  readonly sequence: number;
  readonly eventId: string;
  readonly round: number;
  readonly attempt: number;
  readonly outcome: AttemptEntry["outcome"];
  readonly nextAttemptAt: Date | null;
  /** The attempt has ended its entry. */
  readonly ends: boolean;
}

/** Reads the tables of the outbox, with the names of the test in place of ids. */
export async function postgresTables(db: RawDb, names: Context): Promise<TablesState> {
  const [subscriptions, queued, skipped, attempts, waiting, leases] = await Promise.all([
    subscriptionRows(db),
    queuedRows(db),
    skippedRows(db),
    attemptRows(db),
    waitingRows(db),
    leaseRows(db),
  ]);
  const states = subscriptions.map(
    ({ id, nextBatchAt, lastBatchAt, ...row }): SubscriptionState => {
      const own = <Row>(rows: readonly Of<Row>[]) =>
        rows.filter((one) => one.subscriptionId === id);
      const ended = [
        ...own(skipped).map((one) => skippedEntry(one, names)),
        ...own(attempts).flatMap((one) => endedEntry(one, names)),
      ];
      const tried = own(attempts).map((one) => attemptEntry(one, names));
      return {
        ...row,
        name: names.subscriptions.nameOf(id),
        nextBatchAtMs: since(nextBatchAt, names),
        lastBatchAtMs: since(lastBatchAt, names),
        queued: own(queued).map((one) => queuedEntry(one, names)),
        ended: inOrder(ended, bySequence),
        attempts: inOrder(tried, bySequence),
        waiting: own(waiting).map(({ eventId }) => names.events.nameOf(eventId)),
      };
    },
  );
  return { ...leases, subscriptions: inOrder(states, ({ name }) => name) };
}

function since(at: Date | null, { startMs }: Context): number | null {
  return at === null ? null : at.getTime() - startMs;
}

function queuedEntry(row: QueuedRow, names: Context): QueuedEntry {
  const { sequence, isLogged, eventId, isTest, reviewId, round, attempt, dueAt, recordedAt } = row;
  return {
    sequence,
    isLogged,
    event: names.events.nameOf(eventId),
    isTest,
    review: reviewId === null ? null : names.reviews.nameOf(reviewId),
    round,
    attempt,
    dueAtMs: since(dueAt, names),
    recordedAtMs: recordedAt.getTime() - names.startMs,
  };
}

function skippedEntry({ sequence, eventId, round, reason, at }: SkippedRow, names: Context) {
  const event = names.events.nameOf(eventId);
  const entry: EndedEntry = {
    sequence,
    event,
    round,
    state: "skipped",
    reason,
    skippedAtMs: since(at, names),
  };
  return entry;
}

/** Returns the entry that an attempt has ended, if it has. */
function endedEntry({ sequence, eventId, round, outcome, ends }: AttemptRow, names: Context) {
  if (!ends || outcome === "retry" || outcome === "interrupted") return [];
  const event = names.events.nameOf(eventId);
  const entry: EndedEntry = {
    sequence,
    event,
    round,
    state: outcome,
    reason: null,
    skippedAtMs: null,
  };
  return [entry];
}

function attemptEntry(row: AttemptRow, names: Context): AttemptEntry {
  const { sequence, round, attempt, outcome, nextAttemptAt } = row;
  return { sequence, round, attempt, outcome, nextAttemptAtMs: since(nextAttemptAt, names) };
}

function subscriptionRows({ sql }: RawDb) {
  return sql<
    (Pick<
      SubscriptionState,
      "state" | "failures" | "ordering" | "lastSequence" | "settledThrough" | "skippedThrough"
    > & {
      readonly id: string;
      readonly nextBatchAt: Date | null;
      readonly lastBatchAt: Date | null;
    })[]
  >`
    select s.id, s.state, s.consecutive_failure_count as failures, s.ordering, s.next_batch_at as "nextBatchAt",
           s.last_batch_dispatched_at as "lastBatchAt", q.last_sequence as "lastSequence",
           f.settled_through as "settledThrough", f.skipped_through as "skippedThrough"
      from webhook_subscriptions s
      join outbox_offsets f on f.subscription_id = s.id
      left join outbox_sequences q on q.subscription_id = s.id`;
}

function queuedRows({ sql }: RawDb) {
  return sql<Of<QueuedRow>[]>`
    select q.subscription_id as "subscriptionId", q.sequence, q.event_id as "eventId", q.is_test as "isTest",
           q.review_id as "reviewId", q.round, q.attempt, q.due_at as "dueAt", q.recorded_at as "recordedAt",
           not exists (select from outbox o where o.subscription_id = q.subscription_id and o.sequence = q.sequence)
             as "isLogged"
      from queued_entries q order by q.subscription_id, q.sequence`;
}

function skippedRows({ sql }: RawDb) {
  return sql<Of<SkippedRow>[]>`
    select subscription_id as "subscriptionId", sequence, event_id as "eventId", round, reason, skipped_at as at
      from skipped_entries`;
}

function attemptRows({ sql }: RawDb) {
  return sql<Of<AttemptRow>[]>`
    select subscription_id as "subscriptionId", sequence, event_id as "eventId", round, attempt, outcome,
           next_attempt_at as "nextAttemptAt", recorded_at is not null as ends
      from delivery_attempts`;
}

function waitingRows({ sql }: RawDb) {
  return sql<Of<{ readonly eventId: string }>[]>`
    select b.subscription_id as "subscriptionId", h.event_id as "eventId"
      from batch_entries b join review_history h on h.id = b.review_history_id order by h.id`;
}

async function leaseRows({ sql }: RawDb): Promise<Pick<TablesState, "dispatchers" | "shards">> {
  const dispatchers = await sql<{ id: string }[]>`select id from dispatchers order by id`;
  const shards = await sql<TablesState["shards"][number][]>`
    select id as shard, dispatcher_id as owner, epoch, unclean from shards where epoch > 0 order by id`;
  return { dispatchers: dispatchers.map(({ id }) => id), shards: [...shards] };
}
