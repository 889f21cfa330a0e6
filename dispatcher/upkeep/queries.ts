import { eq, sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { firstQueued } from "../../db/queue.ts";
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

const HOLDER = { id: webhookSubscriptions.id };

const holdersOfOldEntries = statement({
  name: "upkeep.holdersOfOldEntries",
  reason:
    "Looks at the head of each by probes of indexes, whatever the planner thinks of the tables.",
  params: { days: value("integer"), limit: value("bigint") },
  columns: HOLDER,
  text: ({ days, limit }) => sql`
    select s.id
      from webhook_subscriptions s cross join lateral (${firstQueued()}) head
     where s.state = 'disabled' and head.recorded_at < now() - make_interval(days => ${days})
     order by head.recorded_at limit ${limit}`,
});

const expiry = statement({
  name: "upkeep.expireHeldEntries",
  reason: "Counts what it skips, in one bounded walk of the log and of what has rows.",
  params: { id: webhookSubscriptions.id, days: value("integer"), limit: value("bigint") },
  columns: { entries: value("integer") },
  text: ({ id, days, limit }) => sql`
    with holder as materialized (
      -- Nobody enables it meanwhile. It is the last lock in the order of a subscription's locks, and none waits here.
      select s.id, s.shard, s.number, f.settled_through, f.skipped_through
        from webhook_subscriptions s cross join lateral (
               select * from outbox_offsets where subscription_id = s.id for no key update skip locked) f
       where s.id = ${id} and s.state = 'disabled' for share of s skip locked
    ), first as (
      select e.* from holder s cross join lateral (
             (select sequence, recorded_at, false as is_logged from outbox
               where shard = s.shard and subscription_id = s.id and sequence > s.skipped_through and skipped_at is null
               order by sequence limit ${limit})
              union all
             (select sequence, recorded_at, true from review_history
               where subscription_number = s.number and sequence > s.settled_through
               order by sequence limit ${limit})) e
       order by e.sequence limit ${limit}
    ), old as materialized (
      -- Entries are recorded in the order of their sequence: a young one ends it.
      select count(*)::int as entries, max(sequence) as last, max(sequence) filter (where is_logged) as last_logged
        from first
       where sequence < all (select f.sequence from first f where f.recorded_at >= now() - make_interval(days => ${days}))
    ), moved as (
      update outbox_offsets f
         set skipped_through = o.last, settled_through = greatest(f.settled_through, o.last_logged)
        from old o where f.subscription_id = ${id} and o.entries > 0
    ), kept as (
      insert into outbox_skips (subscription_id, first, last, reason, entries, skipped_at)
      select s.id, s.settled_through + 1, o.last, 'expired', o.entries, now() from holder s, old o where o.entries > 0
    )
    select entries from old`,
});

/**
 * Skips entries of disabled subscriptions that are older than the retention time (contract 7.9): from the head on, chunk
 * by chunk. What somebody has locked is left for the next pass.
 */
export async function expireHeldEntries(db: Db, days: number): Promise<number> {
  const holders = await db.run(holdersOfOldEntries, { days, limit: EXPIRE_SUBSCRIPTIONS });
  let expired = 0;
  for (const { id } of holders)
    expired += await untilNone(async () => {
      const [row] = await db.run(expiry, { id, days, limit: EXPIRE_GROUP });
      return { count: row?.entries ?? 0 };
    });
  return expired;
}

const skippedRows = statement({
  name: "upkeep.removeSkippedRows",
  reason: "Deletes the first so many of each, of which the builder has no limit.",
  params: { days: value("integer"), limit: value("bigint") },
  columns: {},
  text: ({ days, limit }) => sql`
    delete from outbox where ctid = any (array(
      select o.ctid
        from outbox_skips k
       cross join lateral (select shard from webhook_subscriptions where id = k.subscription_id) s
       cross join lateral (
               select ctid from outbox
                where shard = s.shard and subscription_id = k.subscription_id and sequence <= k.last
                order by sequence limit ${limit}) o
       where k.skipped_at < now() - make_interval(days => ${days})
       limit ${limit}))`,
});

const skippedTests = statement({
  name: "upkeep.removeSkippedTests",
  reason: "Deletes the first so many, of which the builder has no limit.",
  params: { days: value("integer"), limit: value("bigint") },
  columns: {},
  text: ({ days, limit }) => sql`
    delete from outbox where ctid = any (array(
      select ctid from outbox where skipped_at < now() - make_interval(days => ${days}) limit ${limit}))`,
});

const skips = statement({
  name: "upkeep.removeSkips",
  reason: "By Postgres' clock.",
  params: { days: value("integer") },
  columns: {},
  text: ({ days }) =>
    sql`delete from outbox_skips where skipped_at < now() - make_interval(days => ${days})`,
});

/** Removes what was skipped longer ago than that: its rows, and then the notes of what was skipped together. */
export async function removeSkipped(db: Db, days: number): Promise<number> {
  const given = { days, limit: EXPIRE_GROUP };
  const tests = await untilNone(() => db.run(skippedTests, given));
  const rows = await untilNone(() => db.run(skippedRows, given));
  await db.run(skips, { days });
  return tests + rows;
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
             select recorded_at from review_history where id = first.review_history_id) told
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
               select recorded_at from review_history where id = f.review_history_id) told
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
             select batch_skipped_through from outbox_sequences where subscription_id = s.id) q on true
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
