import { and, asc, eq, lte, max, sql, type SQL } from "drizzle-orm";

import { isAttemptOf } from "../../../db/attempt-conditions.ts";
import type { DbOrTx, Tx } from "../../../db/client.ts";
import { LIMITS } from "../../../db/limits.ts";
import { CHUNK, passLogged, skippedThrough } from "../../../db/log.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import {
  batchEntries,
  batchWindows,
  outbox,
  outboxSequences,
  queuedEntries,
  skippedEntries,
} from "../../../db/schema/outbox.ts";
import { instant, nullable, oneOf, statement, value } from "../../../db/statement.ts";
import { fromMs } from "../../lib/clock.ts";
import type { EventValue } from "../../outbox/event.ts";
import type { DeliveryRow, SettledEntry } from "../delivery-model.ts";
import type { Subscription } from "../model.ts";

// What moves rows from table to table, and what numbers them, is SQL; so is what reads the rounds of an event that ended,
// of which each such statement has a part.

/**
 * Holds the sequence until the commit, so that whoever appends goes before or after; answers the last number given
 * out, or nothing if the subscription is deleted. Of the locks of a subscription it is the first: then entries by
 * sequence, then the subscription. Writers of a batch slot share the row; `update` waits for them, too.
 */
export async function lockSequence(
  tx: Tx,
  subscriptionId: string,
  strength: "no key update" | "update" = "no key update",
): Promise<number | undefined> {
  const [row] = await tx
    .select({ last: outboxSequences.lastSequence })
    .from(outboxSequences)
    .where(eq(outboxSequences.subscriptionId, subscriptionId))
    .for(strength);
  return row?.last;
}

/** Heads that wait at the most: while so many do, an actor reads no more entries. */
const HEADS_AT_MOST = 256;
/** So many entries are looked through for heads. */
const LOOKED_THROUGH = 10_000;
/** Tests that one transaction settles. */
const TESTS_AT_MOST = 1_000;

const holding = statement({
  name: "entries.holdHeads",
  reason: "The first entry of each review among the first of all, in one bounded walk.",
  params: {
    shard: outbox.shard,
    id: outbox.subscriptionId,
    waitMs: value("double precision"),
    heads: value("bigint"),
    limit: value("bigint"),
  },
  columns: {},
  text: ({ shard, id, waitMs, heads, limit }) => sql`
    with first as materialized (
      select sequence, review_id from outbox
       where shard = ${shard} and subscription_id = ${id} and not is_test and skipped_at is null
         and sequence > ${skippedThrough(id)}
       order by sequence limit ${limit}
    ), head as (
      select min(sequence) as sequence from first group by review_id order by 1 limit ${heads}
    )
    update outbox o set state = 'waiting', due_at = greatest(o.due_at, now() + ${waitMs}::float8 * interval '1 millisecond')
      from head
     where o.shard = ${shard} and o.subscription_id = ${id} and o.sequence = head.sequence`,
});

/**
 * Has the heads of what is queued wait so long by Postgres' clock, and with them what stands behind them. Where the order is that of the
 * subscription, the first of them holds back all.
 */
export async function holdHeads(
  tx: Tx,
  { id, shard, ordering }: Pick<Subscription, "id" | "shard" | "ordering">,
  waitMs: number,
): Promise<void> {
  await passLogged(tx, id, {
    limit: ordering === "review" ? LOOKED_THROUGH : 1,
    lockMs: LIMITS.intake.lockMs,
  });
  await tx.run(holding, { shard, id, waitMs, heads: HEADS_AT_MOST, limit: LOOKED_THROUGH });
}

/**
 * Drops what waits for the next batch, and what a dispatch has left of it, without a trace: it was never queued. Deletes
 * the first thousand; upkeep deletes the others up to `batch_skipped_through`, which no dispatch takes. Under the lock
 * `update` of the sequence: every event that is committed later then has a higher id.
 */
export async function skipBatchEntries(tx: Tx, subscriptionId: string): Promise<void> {
  await tx.delete(batchWindows).where(eq(batchWindows.subscriptionId, subscriptionId));
  const waiting = tx
    .select({ last: max(batchEntries.reviewHistoryId) })
    .from(batchEntries)
    .where(eq(batchEntries.subscriptionId, subscriptionId));
  await tx
    .update(outboxSequences)
    .set({
      batchSkippedThrough: sql`coalesce((${waiting}), ${outboxSequences.batchSkippedThrough})`,
    })
    .where(eq(outboxSequences.subscriptionId, subscriptionId));
  await dropBatchChunk(tx, subscriptionId);
}

/** Deletes the first thousand events that wait for the next batch. Only once no dispatch can take them any more. */
export async function dropBatchChunk(tx: Tx, subscriptionId: string): Promise<void> {
  const { subscriptionId: id, reviewHistoryId } = batchEntries;
  const first = await tx
    .select({ id: reviewHistoryId })
    .from(batchEntries)
    .where(eq(id, subscriptionId))
    .orderBy(asc(reviewHistoryId))
    .limit(CHUNK);
  const last = first.at(-1)?.id;
  if (last === undefined) return;
  await tx.delete(batchEntries).where(and(eq(id, subscriptionId), lte(reviewHistoryId, last)));
}

/** An entry as it is queued; the rest of its row follows from the subscription, or is its beginning. */
type NewEntry = Omit<typeof outbox.$inferInsert, "shard" | "subscriptionId">;

/** Queues an entry behind the last one, as which it is counted. Under the lock of the sequence. */
async function appendEntry(
  tx: Tx,
  { id, shard }: Pick<Subscription, "id" | "shard">,
  entry: NewEntry,
): Promise<void> {
  await tx
    .update(outboxSequences)
    .set({ lastSequence: entry.sequence })
    .where(eq(outboxSequences.subscriptionId, id));
  await tx.insert(outbox).values({ ...entry, subscriptionId: id, shard });
}

/** Under the lock of the sequence. */
export async function appendTest(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "shard" | "payloadMode">,
  { event, ...entry }: { event: EventValue; sequence: number; eventId: string; recordedAt: Date },
): Promise<void> {
  const { payloadMode } = subscription;
  await appendEntry(tx, subscription, { ...entry, event, isTest: true, payloadMode });
}

const skippingTests = statement({
  name: "entries.skipTests",
  reason: "Bounded, and skips what is locked.",
  params: { shard: outbox.shard, id: outbox.subscriptionId, skippedAt: instant },
  columns: {},
  text: ({ shard, id, skippedAt }) => sql`
    update outbox set skipped_at = ${skippedAt}
     where ctid = any(array(
             select ctid from outbox
              where shard = ${shard} and subscription_id = ${id} and is_test and skipped_at is null
                and sequence > ${skippedThrough(id)}
              order by sequence limit ${sql.raw(String(TESTS_AT_MOST))} for update skip locked))`,
});

/** Skips queued tests. One whose outcome the dispatcher commits now is left to that commit. */
export async function skipTests(
  tx: Tx,
  { id, shard }: Pick<Subscription, "id" | "shard">,
  skippedAt: Date,
): Promise<void> {
  await tx.run(skippingTests, { id, shard, skippedAt });
}

export async function isQueued(tx: Tx, subscriptionId: string, eventId: string): Promise<boolean> {
  const rows = await tx
    .select({ sequence: queuedEntries.sequence })
    .from(queuedEntries)
    .where(
      and(eq(queuedEntries.eventId, eventId), eq(queuedEntries.subscriptionId, subscriptionId)),
    )
    .limit(1);
  return rows.length > 0;
}

/**
 * The rounds of an event that have ended since then: skipped, or with the attempt that was their last. `firstAttempt` is
 * the smallest id of an attempt of that time. Of the few that an event has, the subscription's are picked in a form that
 * no index knows, or the planner might read the index of all that the subscription has.
 */
export function endedRounds(
  subscription: SQL,
  eventId: SQL,
  { since, firstAttempt }: { since: SQL; firstAttempt: SQL },
): SQL {
  return sql`
    select event_id, event, sequence, round, is_test, payload_mode, review_history_id, review_id, batch_job_id,
           'skipped' as state, recorded_at, skipped_at as settled_at
      from skipped_entries
     where event_id = ${eventId} and subscription_id || '' = ${subscription} and skipped_at >= ${since}
     union all
    -- Only a test keeps its own request and has no history. An event whose history row is missing has none either.
    select a.event_id, a.event, a.sequence, a.round, told.id is null and a.composer is null, a.payload_mode, told.id, told.review_id,
           a.batch_job_id, a.outcome, a.recorded_at, a.started_at + a.duration_ms * interval '1 millisecond'
      from delivery_attempts a left join review_history told on told.event_id = a.event_id
     where ${isAttemptOf(sql`a.event_id`, eventId)}
       and a.subscription_id || '' = ${subscription} and a.id >= ${firstAttempt} and a.recorded_at is not null`;
}

const EVER: { since: SQL; firstAttempt: SQL } = {
  since: sql`${fromMs(0)}`,
  firstAttempt: sql`${ulidFloor(fromMs(0))}`,
};

const lastRound = statement({
  name: "webhooks.lastSettled",
  reason: "Built on the SQL of ended rounds, which recovery.ts shares.",
  params: { id: outbox.subscriptionId, eventId: outbox.eventId },
  columns: {
    event: skippedEntries.event,
    isTest: skippedEntries.isTest,
    payloadMode: skippedEntries.payloadMode,
    reviewHistoryId: skippedEntries.reviewHistoryId,
    reviewId: skippedEntries.reviewId,
    batchJobId: skippedEntries.batchJobId,
    round: skippedEntries.round,
    recordedAt: skippedEntries.recordedAt,
  },
  text: ({ id, eventId }) => sql`
    select event, is_test as "isTest", payload_mode as "payloadMode", review_history_id as "reviewHistoryId",
           review_id as "reviewId", batch_job_id as "batchJobId", round, recorded_at as "recordedAt"
      from (${endedRounds(id, eventId, EVER)}) e
     where e.is_test or exists (select from review_history h where h.id = e.review_history_id)
     order by round desc, sequence desc limit 1`,
});

/** The last settled round of an event. Without its history row the event cannot be sent again, so it has none. */
export async function lastSettled(
  tx: Tx,
  id: string,
  eventId: string,
): Promise<SettledEntry | undefined> {
  const [row] = await tx.run(lastRound, { id, eventId });
  return row;
}

/** Queues a settled event again, as its next round. Under the lock of the sequence. */
export async function appendRound(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "shard">,
  { round, ...settled }: SettledEntry,
  entry: { readonly sequence: number; readonly eventId: string; readonly recordedAt: Date },
): Promise<void> {
  await appendEntry(tx, subscription, { ...settled, ...entry, round: round + 1 });
}

const delivery = statement({
  name: "webhooks.deliveryOf",
  reason: "Built on the SQL of ended rounds, which recovery.ts shares.",
  params: { id: outbox.subscriptionId, eventId: outbox.eventId },
  columns: {
    eventId: outbox.eventId,
    event: outbox.event,
    sequence: outbox.sequence,
    state: oneOf(["pending", "waiting", "delivered", "failed", "skipped"]),
    settledAt: nullable(skippedEntries.skippedAt),
    createdAt: outbox.recordedAt,
  },
  text: ({ id, eventId }) => sql`
    select e.event_id as "eventId", e.event, e.sequence, e.state, e.settled_at as "settledAt",
           coalesce(h.recorded_at, e.recorded_at) as "createdAt"
      from (select event_id, event, sequence, round, state, null::timestamptz as settled_at, review_history_id,
                   recorded_at
              from queued_entries
             where event_id = ${eventId} and subscription_id = ${id}
             union all
            select event_id, event, sequence, round, state, settled_at, review_history_id, recorded_at
              from (${endedRounds(id, eventId, EVER)}) ended) e
      left join review_history h on h.id = e.review_history_id
     order by e.round desc, e.sequence desc limit 1`,
});

/** Where the last round of an event stands, queued or settled. */
export async function deliveryOf(
  db: DbOrTx,
  id: string,
  eventId: string,
): Promise<DeliveryRow | undefined> {
  const [row] = await db.run(delivery, { id, eventId });
  return row;
}
