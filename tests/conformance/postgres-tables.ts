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

type QueuedRow = Omit<QueuedEntry, "event" | "review" | "dueAtMs" | "recordedAtMs"> & {
  readonly eventId: string;
  readonly reviewId: number | null;
  readonly dueAt: Date | null;
  readonly recordedAt: Date;
};

type SkippedRow = Pick<EndedEntry, "sequence" | "round" | "reason"> & {
  readonly eventId: string;
  readonly at: Date;
};

type AttemptRow = Omit<AttemptEntry, "nextAttemptAtMs"> & {
  readonly eventId: string;
  readonly nextAttemptAt: Date | null;
  /** The attempt has ended its entry. */
  readonly ends: boolean;
};

/** Reads the tables of the outbox, with the names of the test in place of ids. */
export async function postgresTables(db: RawDb, names: Context): Promise<TablesState> {
  const [subscriptions, numbers, queued, skipped, attempts, waiting, leases] = await Promise.all([
    subscriptionRows(db),
    numberRows(db),
    queuedRows(db),
    skippedRows(db),
    attemptRows(db),
    waitingRows(db),
    leaseRows(db),
  ]);
  const since = (at: Date | null) => (at === null ? null : at.getTime() - names.startMs);
  const nameOf = (eventId: string) => names.events.nameOf(eventId);
  const states = subscriptions.map(
    ({ id, nextBatchAt, lastBatchAt, ...row }): SubscriptionState => {
      const own = <Row>(rows: readonly Of<Row>[]) =>
        rows.filter((one) => one.subscriptionId === id);
      const ended = [
        ...own(skipped).map(({ sequence, eventId, round, reason, at }): EndedEntry => {
          const state = { state: "skipped", reason, skippedAtMs: since(at) } as const;
          return { sequence, event: nameOf(eventId), round, ...state };
        }),
        ...own(attempts).flatMap(({ sequence, eventId, round, outcome, ends }): EndedEntry[] => {
          if (!ends || outcome === "retry" || outcome === "interrupted") return [];
          const state = { state: outcome, reason: null, skippedAtMs: null };
          return [{ sequence, event: nameOf(eventId), round, ...state }];
        }),
      ];
      const tried = own(attempts).map(({ sequence, round, attempt, outcome, nextAttemptAt }) => {
        const nextAttemptAtMs = since(nextAttemptAt);
        return { sequence, round, attempt, outcome, nextAttemptAtMs };
      });
      return {
        ...row,
        name: names.subscriptions.nameOf(id),
        nextBatchAtMs: since(nextBatchAt),
        lastBatchAtMs: since(lastBatchAt),
        numbers: own(numbers).map(({ eventId, number }) => ({ event: nameOf(eventId), number })),
        queued: own(queued).map(
          ({
            subscriptionId: _subscriptionId,
            eventId,
            reviewId,
            dueAt,
            recordedAt,
            ...entry
          }) => ({
            ...entry,
            event: nameOf(eventId),
            review: reviewId === null ? null : names.reviews.nameOf(reviewId),
            dueAtMs: since(dueAt),
            recordedAtMs: recordedAt.getTime() - names.startMs,
          }),
        ),
        ended: inOrder(ended, bySequence),
        attempts: inOrder(tried, bySequence),
        waiting: own(waiting).map(({ eventId }) => nameOf(eventId)),
      };
    },
  );
  return { ...leases, subscriptions: inOrder(states, ({ name }) => name) };
}

function subscriptionRows({ sql }: RawDb) {
  return sql<
    (Pick<
      SubscriptionState,
      | "state"
      | "failures"
      | "ordering"
      | "sequenceHeaders"
      | "lastSequence"
      | "settledThrough"
      | "skippedThrough"
    > & {
      readonly id: string;
      readonly nextBatchAt: Date | null;
      readonly lastBatchAt: Date | null;
    })[]
  >`
    select s.id, s.state, s.consecutive_failure_count as failures, s.ordering, s.sequence_headers as "sequenceHeaders",
           s.next_batch_at as "nextBatchAt", s.last_batch_dispatched_at as "lastBatchAt", q.last_sequence as "lastSequence",
           f.settled_through as "settledThrough", f.skipped_through as "skippedThrough"
      from webhook_subscriptions s
      join outbox_offsets f on f.subscription_id = s.id
      left join outbox_sequences q on q.subscription_id = s.id`;
}

function numberRows({ sql }: RawDb) {
  return sql<Of<{ readonly eventId: string; readonly number: number }>[]>`
    select s.id as "subscriptionId", h.event_id as "eventId", h.sequence - coalesce(h.unlogged, 0) as number
      from webhook_subscriptions s join review_history h on h.subscription_number = s.number
     order by s.id, h.sequence`;
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
