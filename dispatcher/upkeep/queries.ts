import { eq, sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { outbox } from "../../db/schema/outbox.ts";
import { upkeepProgress } from "../../db/schema/upkeep.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { statement, value } from "../../db/statement.ts";

// Postgres' clock decides what is old: no statement here is told the time. What moves rows from table to table is SQL.

/** How many held entries one statement settles, so that it does not hold its locks for long. */
export const EXPIRE_GROUP = 1_000;
/** The subscriptions of one pass; what others hold waits for the next. */
const EXPIRE_SUBSCRIPTIONS = 1_000;

const turn = statement({
  name: "upkeep.lastPass",
  reason: "Compares with the time after the wait for the row.",
  params: {},
  columns: { isDue: value("boolean"), isSteady: value("boolean") },
  text: () => sql`
    select passed_at not between clock_timestamp() - interval '55 minutes' and clock_timestamp() + interval '1 second'
             as "isDue",
           passed_at between clock_timestamp() - interval '2 hours' and clock_timestamp() + interval '1 second'
             as "isSteady"
      from upkeep_progress for update`,
});

/**
 * Takes the pass of this hour; undefined if somebody has. `isSteady`: the last one was an hour ago, by Postgres' clock. If
 * it was not, upkeep stood still or that clock was set, and what looks old may not be.
 */
export function takePass(db: Db): Promise<{ readonly isSteady: boolean } | undefined> {
  return db.transaction(async (tx) => {
    const [last] = await tx.run(turn, {});
    if (!last?.isDue) return undefined;
    await tx
      .update(upkeepProgress)
      .set({ passedAt: sql`clock_timestamp()` })
      .where(eq(upkeepProgress.id, 1));
    return { isSteady: last.isSteady };
  });
}

const HOLDER = { id: webhookSubscriptions.id, shard: webhookSubscriptions.shard };

const holdersOfOldEntries = statement({
  name: "upkeep.holdersOfOldEntries",
  reason:
    "Looks at the head of each by one probe of an index, whatever the planner thinks of the outbox.",
  params: { days: value("integer"), limit: value("bigint") },
  columns: HOLDER,
  text: ({ days, limit }) => sql`
    select s.id, s.shard
      from webhook_subscriptions s cross join lateral (
             select recorded_at from outbox o where o.shard = s.shard and o.subscription_id = s.id
              order by o.sequence limit 1) head
     where s.state = 'disabled' and head.recorded_at < now() - make_interval(days => ${days})
     order by head.recorded_at limit ${limit}`,
});

const expiry = statement({
  name: "upkeep.expireHeldEntries",
  reason: "Skips what is locked, and moves the rest from table to table in one statement.",
  params: {
    id: outbox.subscriptionId,
    shard: outbox.shard,
    days: value("integer"),
    span: value("bigint"),
  },
  columns: {},
  text: ({ id, shard, days, span }) => sql`
    with holder as materialized (
      -- Nobody enables it meanwhile. It is the last lock in the order of a subscription's locks, and none waits here.
      select shard, id from webhook_subscriptions
       where id = ${id} and state = 'disabled' for share skip locked
    ), head as (
      select first.sequence from holder h cross join lateral (
        select o.sequence from outbox o where o.shard = h.shard and o.subscription_id = h.id
         order by o.sequence limit 1) first
    ), old as materialized (
      select o.sequence from outbox o
       where o.shard = ${shard} and o.subscription_id = ${id}
         and o.sequence >= (select sequence from head) and o.sequence < (select sequence from head) + ${span}::bigint
         and o.recorded_at < now() - make_interval(days => ${days})
       order by o.sequence for update skip locked
    ), gone as (
      delete from outbox o
       where o.shard = ${shard} and o.subscription_id = ${id} and o.sequence = any (array(select sequence from old))
      returning o.*
    )
    insert into settled_entries (subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id,
                                 review_id, batch_job_id, round, reason, recorded_at, settled_at)
    select subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id, review_id,
           batch_job_id, round, 'expired', recorded_at, now()
      from gone`,
});

/**
 * Settles entries of disabled subscriptions that are older than the retention time as skipped (contract 7.9): from the
 * head on, chunk by chunk. Entries are recorded in the order of their sequence, so a young head ends it, and a pass reads
 * one entry of each disabled subscription besides those that it settles. What somebody has locked is left for the next.
 */
export async function expireHeldEntries(db: Db, days: number): Promise<number> {
  const holders = await db.run(holdersOfOldEntries, { days, limit: EXPIRE_SUBSCRIPTIONS });
  let expired = 0;
  for (const holder of holders)
    expired += await untilNone(() => db.run(expiry, { ...holder, days, span: EXPIRE_GROUP }));
  return expired;
}

const holdersOfOldBatches = statement({
  name: "upkeep.holdersOfOldBatches",
  reason:
    "Looks at the first of each by one probe of an index, whatever the planner thinks of the tables.",
  params: { days: value("integer"), limit: value("bigint") },
  columns: { id: webhookSubscriptions.id },
  text: ({ days, limit }) => sql`
    select s.id
      from webhook_subscriptions s
     cross join lateral (
             select b.review_history_id from batch_entries b where b.subscription_id = s.id
              order by b.review_history_id limit 1) first
     cross join lateral (
             select recorded_at from review_history where id = first.review_history_id offset 0) told
     where s.state = 'disabled' and told.recorded_at < now() - make_interval(days => ${days})
     order by told.recorded_at limit ${limit}`,
});

const batchExpiry = statement({
  name: "upkeep.expireHeldBatchEntries",
  reason: "Skips what is locked, and looks up each event by its key.",
  params: { id: webhookSubscriptions.id, days: value("integer"), limit: value("bigint") },
  columns: {},
  text: ({ id, days, limit }) => sql`
    with holder as materialized (
      select id from webhook_subscriptions where id = ${id} and state = 'disabled' for share skip locked
    ), first as materialized (
      select b.review_history_id from batch_entries b
       where b.subscription_id = (select id from holder)
       order by b.review_history_id limit ${limit} for update skip locked
    ), old as (
      select f.review_history_id
        from first f cross join lateral (
               select recorded_at from review_history where id = f.review_history_id offset 0) told
       where told.recorded_at < now() - make_interval(days => ${days})
    )
    delete from batch_entries
     where subscription_id = ${id} and review_history_id = any (array(select review_history_id from old))`,
});

/** Events that wait for the batch of a disabled subscription for longer than that. */
export async function expireHeldBatchEntries(db: Db, days: number): Promise<number> {
  const holders = await db.run(holdersOfOldBatches, { days, limit: EXPIRE_SUBSCRIPTIONS });
  let expired = 0;
  for (const { id } of holders)
    expired += await untilNone(() => db.run(batchExpiry, { id, days, limit: EXPIRE_GROUP }));
  return expired;
}

const holdersOfDroppedBatches = statement({
  name: "upkeep.holdersOfDroppedBatches",
  reason:
    "Looks at the first of each by one probe of an index, whatever the planner thinks of the tables.",
  params: { limit: value("bigint") },
  columns: { id: webhookSubscriptions.id },
  text: ({ limit }) => sql`
    select s.id
      from webhook_subscriptions s
     cross join lateral (
             select b.review_history_id from batch_entries b where b.subscription_id = s.id
              order by b.review_history_id limit 1) first
      left join lateral (
             select batch_skipped_through from outbox_sequences where subscription_id = s.id offset 0) q on true
     where s.delivery_kind = 'batch'
       and first.review_history_id <= coalesce(q.batch_skipped_through, first.review_history_id)
     limit ${limit}`,
});

const droppedBatches = statement({
  name: "upkeep.removeDroppedBatchEntries",
  reason: "Deletes the first so many of a subscription, of which the builder has no limit.",
  params: { id: webhookSubscriptions.id, limit: value("bigint") },
  columns: {},
  text: ({ id, limit }) => sql`
    delete from batch_entries
     where subscription_id = ${id} and review_history_id = any (array(
             select b.review_history_id from batch_entries b
               left join outbox_sequences q on q.subscription_id = b.subscription_id
              where b.subscription_id = ${id}
                and b.review_history_id <= coalesce(q.batch_skipped_through, b.review_history_id)
              order by b.review_history_id limit ${limit}))`,
});

/**
 * Events that wait for a batch that never comes: those that a skip has dropped, and those of a deleted subscription,
 * which has no sequence row.
 */
export async function removeDroppedBatchEntries(db: Db): Promise<number> {
  const holders = await db.run(holdersOfDroppedBatches, { limit: EXPIRE_SUBSCRIPTIONS });
  let removed = 0;
  for (const { id } of holders)
    removed += await untilNone(() => db.run(droppedBatches, { id, limit: EXPIRE_GROUP }));
  return removed;
}

/** Each chunk is a transaction of its own. */
async function untilNone(removeChunk: () => Promise<{ readonly count: number }>): Promise<number> {
  let removed = 0;
  for (;;) {
    const { count } = await removeChunk();
    if (count === 0) return removed;
    removed += count;
  }
}
