import { and, desc, eq, isNotNull, sql } from "drizzle-orm";

import type { Tx } from "../../db/client.ts";
import { CHUNK } from "../../db/log.ts";
import { neverNull } from "../../db/never-null.ts";
import { dispatchers } from "../../db/schema/dispatchers.ts";
import { batchEntries, batchWindows, outbox, outboxSequences } from "../../db/schema/outbox.ts";
import { reviewHistory } from "../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { instant, nullable, statement, value } from "../../db/statement.ts";

// The statement that moves and numbers the events is SQL.

/** Locks the lease of this process for the transaction; false if it is gone. */
export async function holdLease(tx: Tx, dispatcherId: string): Promise<boolean> {
  const rows = await tx
    .select({ id: dispatchers.id })
    .from(dispatchers)
    .where(eq(dispatchers.id, dispatcherId))
    .for("key share");
  return rows.length === 1;
}

/**
 * Locks the sequence, before the subscription as a delete does. Writers of review actions are not held up: they take
 * this row for key share.
 */
export async function holdSequence(tx: Tx, subscriptionId: string): Promise<Sequence | undefined> {
  const { lastSequence: last, batchSkippedThrough: skippedThrough } = outboxSequences;
  const [row] = await tx
    .select({ last, skippedThrough })
    .from(outboxSequences)
    .where(eq(outboxSequences.subscriptionId, subscriptionId))
    .for("no key update");
  return row;
}

export interface Sequence {
  readonly last: number;
  /** Events that wait up to this id were skipped. */
  readonly skippedThrough: number;
}

interface ActiveBatch {
  readonly shard: number;
  readonly intervalHours: number;
  readonly dueAt: Date;
}

/** Locks the subscription, if it is active. */
export async function activeBatch(
  tx: Tx,
  subscriptionId: string,
): Promise<ActiveBatch | undefined> {
  const { id, shard, state, batchIntervalHours, nextBatchAt } = webhookSubscriptions;
  const [row] = await tx
    .select({ shard, intervalHours: batchIntervalHours, dueAt: nextBatchAt })
    .from(webhookSubscriptions)
    .where(and(eq(id, subscriptionId), eq(state, "active"), isNotNull(nextBatchAt)))
    .for("no key update");
  if (row === undefined) return undefined;
  const { intervalHours, dueAt } = row;
  return { ...row, intervalHours: neverNull(intervalHours), dueAt: neverNull(dueAt) };
}

export type Window = typeof batchWindows.$inferSelect;

/** The window that is being dispatched, if one is. */
export async function openWindow(tx: Tx, subscriptionId: string): Promise<Window | undefined> {
  const [row] = await tx
    .select()
    .from(batchWindows)
    .where(eq(batchWindows.subscriptionId, subscriptionId));
  return row;
}

/** The last of the events that wait; 0 without any. What commits after this may have an id below it. */
export async function lastWaiting(tx: Tx, subscriptionId: string): Promise<number> {
  const [row] = await tx
    .select({ id: batchEntries.reviewHistoryId })
    .from(batchEntries)
    .where(eq(batchEntries.subscriptionId, subscriptionId))
    .orderBy(desc(batchEntries.reviewHistoryId))
    .limit(1);
  return row?.id ?? 0;
}

export async function keepWindow(tx: Tx, window: Window): Promise<void> {
  const { firstId, reviewId } = window;
  await tx
    .insert(batchWindows)
    .values(window)
    .onConflictDoUpdate({ target: batchWindows.subscriptionId, set: { firstId, reviewId } });
}

const appending = statement({
  name: "batch.appendChunk",
  reason: "Moves and numbers the rows in one statement, each of its walks as long as the chunk.",
  params: {
    id: batchWindows.id,
    subscriptionId: outbox.subscriptionId,
    shard: outbox.shard,
    through: batchWindows.through,
    firstId: batchWindows.firstId,
    reviewId: batchWindows.reviewId,
    limit: value("bigint"),
    sequence: outbox.sequence,
    now: instant,
  },
  columns: {
    appended: value("integer"),
    jobs: value("integer"),
    firstId: nullable(batchEntries.reviewHistoryId),
    reviewId: reviewHistory.reviewId,
  },
  text: ({ id, subscriptionId, shard, through, firstId, reviewId, limit, sequence, now }) => sql`
    with waiting as materialized (
      select h.id, h.review_id
        from (select review_history_id from batch_entries
               where subscription_id = ${subscriptionId} and review_history_id >= ${firstId}
                 and review_history_id <= ${through}
               order by review_history_id limit ${limit}) b
       cross join lateral (select id, review_id from review_history where id = b.review_history_id) h
    ), reviews as (
      -- The one that the last chunk was cut in comes first, the others by their first event.
      select review_id, min(id) as first_id from waiting
       where review_id is distinct from ${reviewId}::int group by review_id
       union all select ${reviewId}::int, 0 where ${reviewId}::int is not null
    ), events as materialized (
      select h.id, h.event_id, h.event, h.review_id, h.place, r.first_id
        from reviews r
       cross join lateral (
               select h.id, h.event_id, h.event, h.review_id, b.place
                 from review_history h
                cross join lateral (
                        select ctid as place from batch_entries
                         where subscription_id = ${subscriptionId} and review_history_id = h.id) b
                where h.review_id = r.review_id and h.id >= greatest(r.first_id, ${firstId}) and h.id <= ${through}
                order by h.id limit ${limit}) h
       order by r.first_id, h.id limit ${limit}
    ), taken as (
      delete from batch_entries where ctid = any(array(select place from events)) returning review_history_id
    ), entries as (
      insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id,
                          review_id, batch_job_id, recorded_at)
      select ${shard}, ${subscriptionId}, ${sequence}::bigint + row_number() over (order by e.first_id, e.id), e.event_id,
             e.event, 'full', e.id, e.review_id, ${id} || '-' || e.review_id, ${now}
        from events e join taken t on t.review_history_id = e.id
      returning 1
    ), counted as (
      update outbox_sequences set last_sequence = last_sequence + (select count(*) from entries)
       where subscription_id = ${subscriptionId}
    )
    select (select count(*)::int from entries) as appended,
           count(distinct review_id) filter (where review_id is distinct from ${reviewId}::int)::int as jobs,
           (select min(id) from waiting) as "firstId",
           (array_agg(review_id order by first_id desc, id desc))[1] as "reviewId"
      from events`,
});

export interface Appended {
  readonly appended: number;
  /** Begun by this chunk: one per review. */
  readonly jobs: number;
  readonly firstId: number | null;
  readonly reviewId: number | null;
}

/**
 * Turns the next events of a window into entries, review by review in the order of the first event of each, and one job
 * per review. Fewer than a chunk are the last ones.
 */
export async function appendChunk(
  tx: Tx,
  window: Window,
  numbers: { readonly shard: number; readonly sequence: number; readonly now: Date },
): Promise<Appended> {
  const { openedAt: _opened, ...rest } = window;
  const [row] = await tx.run(appending, { ...rest, ...numbers, limit: CHUNK });
  return row ?? { appended: 0, jobs: 0, firstId: null, reviewId: null };
}

/** Contract 7.14: the cursor goes with the last entries of its window. */
export async function advanceCursor(
  tx: Tx,
  { subscriptionId, cursor, next }: { subscriptionId: string; cursor: Date; next: Date },
): Promise<void> {
  await tx.delete(batchWindows).where(eq(batchWindows.subscriptionId, subscriptionId));
  await tx
    .update(webhookSubscriptions)
    .set({ lastBatchDispatchedAt: cursor, nextBatchAt: next })
    .where(eq(webhookSubscriptions.id, subscriptionId));
}
