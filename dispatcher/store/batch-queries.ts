import { and, desc, eq, isNotNull, sql } from "drizzle-orm";

import type { Db, Tx } from "../../db/client.ts";
import { CHUNK } from "../../db/log.ts";
import { neverNull, onlyRow, instant, nullable, statement, value } from "../../db/statement.ts";
import { dispatchers } from "../../db/schema/dispatchers.ts";
import { batchEntries, batchWindows, outbox, outboxSequences } from "../../db/schema/outbox.ts";
import { reviewHistory } from "../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { nextBatchAt } from "../actor/decide.ts";

export interface BatchDispatch {
  /** A ULID for each due batch, with which the ids of its jobs begin. A job is the events of one review. */
  readonly id: string;
  readonly dispatcherId: string;
  readonly subscriptionId: string;
  /** The milliseconds that an hour of batch_interval_hours lasts; tests shorten it. */
  readonly hourMs: number;
  readonly now: Date;
}

/**
 * Dispatches a due batch (contract 7.14): events that wait for the batch become entries in `outbox`, review by review,
 * one chunk per transaction. The first transaction stores the last event of the batch (its window), so that another
 * process continues the same window after a crash. The last transaction moves the subscription's batch cursor. A
 * transaction that finds the subscription not due, not active or deleted changes nothing.
 *
 * `fenced`: another process has expired the lease of this process, and nothing was written.
 */
export async function dispatchBatch(db: Db, batch: BatchDispatch) {
  for (let jobs = 0; ;) {
    const step = await db.transaction((tx) => dispatchChunk(tx, batch));
    jobs += step.jobs;
    if (!step.more) return { fenced: step.fenced, jobs };
  }
}

/** Turns one chunk of a due batch into entries. `more`: the window has further events. */
async function dispatchChunk(tx: Tx, batch: BatchDispatch) {
  const { subscriptionId, now } = batch;
  const lease = await tx
    .select({ id: dispatchers.id })
    .from(dispatchers)
    .where(eq(dispatchers.id, batch.dispatcherId))
    .for("key share");
  if (lease.length === 0) return { fenced: true, jobs: 0, more: false };
  const held = await hold(tx, batch);
  if (held === undefined) return { fenced: false, jobs: 0, more: false };
  const { shard, dueAt, intervalHours, sequence, window } = held;
  const { openedAt, ...rest } = window;
  // Entries follow the order of the first event of each review; each review is one job.
  const given = { ...rest, shard, sequence, now, limit: CHUNK };
  const { appended, jobs, firstId, reviewId } = onlyRow(await tx.run(appendChunk, given));
  // A chunk that is not full is the last one.
  const more = appended === CHUNK;
  if (more) {
    const progress = { firstId: firstId ?? window.firstId, reviewId };
    await tx
      .insert(batchWindows)
      .values({ ...window, ...progress })
      .onConflictDoUpdate({ target: batchWindows.subscriptionId, set: progress });
  } else {
    // A due time in the future is kept: a change of the interval has postponed the next batch while the window was
    // open.
    const next = dueAt > now ? dueAt : nextBatchAt(dueAt, intervalHours * batch.hourMs, now);
    // The batch cursor moves in the transaction of the last entries of its window.
    await tx.delete(batchWindows).where(eq(batchWindows.subscriptionId, subscriptionId));
    await tx
      .update(webhookSubscriptions)
      .set({ lastBatchDispatchedAt: openedAt, nextBatchAt: next })
      .where(eq(webhookSubscriptions.id, subscriptionId));
  }
  return { fenced: false, jobs, more };
}

/**
 * Locks the row of `outbox_sequences` and then the subscription, in the order of a delete. Returns both with the open
 * window, or with a new one if the batch is due; otherwise, or if the subscription is not active, returns undefined.
 * Transactions that append events are not blocked, because they lock the row of `outbox_sequences` for key share.
 */
async function hold(tx: Tx, batch: BatchDispatch) {
  const { subscriptionId, now } = batch;
  const { lastSequence, batchSkippedThrough } = outboxSequences;
  const [numbers] = await tx
    .select({ sequence: lastSequence, skippedThrough: batchSkippedThrough })
    .from(outboxSequences)
    .where(eq(outboxSequences.subscriptionId, subscriptionId))
    .for("no key update");
  const { id, shard, state, batchIntervalHours, nextBatchAt: dueAt } = webhookSubscriptions;
  const [active] = await tx
    .select({ shard, intervalHours: batchIntervalHours, dueAt })
    .from(webhookSubscriptions)
    .where(and(eq(id, subscriptionId), eq(state, "active"), isNotNull(dueAt)))
    .for("no key update");
  if (numbers === undefined || active === undefined) return undefined;
  const held = {
    ...numbers,
    ...active,
    intervalHours: neverNull(active.intervalHours),
    dueAt: neverNull(active.dueAt),
  };
  const [open] = await tx
    .select()
    .from(batchWindows)
    .where(eq(batchWindows.subscriptionId, subscriptionId));
  if (open === undefined && held.dueAt > now) return undefined;
  return { ...held, window: open ?? (await newWindow(tx, batch, held.skippedThrough)) };
}

/**
 * Makes a window that ends at the last committed event. Events that commit later may have smaller ids than the last
 * one. A later chunk takes them if it has not passed their ids, otherwise the next window does.
 */
async function newWindow(tx: Tx, batch: BatchDispatch, skippedThrough: number) {
  const { id, subscriptionId, now } = batch;
  const [last] = await tx
    .select({ id: batchEntries.reviewHistoryId })
    .from(batchEntries)
    .where(eq(batchEntries.subscriptionId, subscriptionId))
    .orderBy(desc(batchEntries.reviewHistoryId))
    .limit(1);
  const through = last?.id ?? 0;
  const firstId = skippedThrough + 1;
  return { subscriptionId, id, openedAt: now, through, firstId, reviewId: null };
}

const appendChunk = statement({
  name: "batch.appendChunk",
  // Raw SQL, because one statement moves and numbers the events. Each of its walks is as long as the chunk.
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
       cross join lateral (select id, review_id from review_history where id = b.review_history_id offset 0) h
    ), reviews as (
      -- The review in which the last chunk ended comes first, the others follow by their first event.
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
                         where subscription_id = ${subscriptionId} and review_history_id = h.id offset 0) b
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
