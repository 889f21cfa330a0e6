// Removal of what waits for a disabled or deleted subscription, one chunk a call. Postgres' clock decides what is old: no
// statement is told the time. What moves rows from table to table is SQL.
import { sql, type SQL } from "drizzle-orm";

import type { RawDb } from "../../db/client.ts";
import { firstQueued } from "../../db/queue.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { statement, value } from "../../db/statement.ts";
import type { Done } from "./loop.ts";
import { CHUNK_ROWS, type Old } from "./records-queries.ts";

const OF_ONE = { id: webhookSubscriptions.id, days: value("integer"), limit: value("bigint") };
const OLD = { days: value("integer"), limit: value("bigint") };

const NEXT = { after: webhookSubscriptions.id, days: value("integer") };
const HOLDER = { id: webhookSubscriptions.id };

/** Handles a chunk of one subscription; the last chunk leads to the subscription behind it. */
async function chunkOf(
  holder: string | undefined,
  { reached }: Pick<Old, "reached">,
  handle: (id: string) => Promise<number>,
): Promise<Done> {
  if (holder === undefined) return { rows: 0 };
  const rows = await handle(holder);
  return { rows, next: rows < CHUNK_ROWS ? holder : reached };
}

const holderOfOldEntries = statement({
  name: "maintenance.holderOfOldEntries",
  // Looks at the head of each by probes of indexes, whatever the planner thinks of the tables.
  params: NEXT,
  columns: HOLDER,
  text: ({ after, days }) => sql`
    select s.id
      from webhook_subscriptions s cross join lateral (${firstQueued()}) head
     where s.id > ${after} and s.state = 'disabled' and head.recorded_at < now() - make_interval(days => ${days})
     order by s.id limit 1`,
});

const expiry = statement({
  name: "maintenance.expireHeldEntries",
  // Counts what it skips, in one bounded walk of the log and of what has rows.
  params: OF_ONE,
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
 * Skips entries of disabled subscriptions that are older than the retention time (contract 7.9), from the head on. What
 * somebody has locked is left for the next run.
 */
export async function expireHeldEntries(db: RawDb, { days, reached }: Old): Promise<Done> {
  const [holder] = await db.run(holderOfOldEntries, { after: reached, days });
  return chunkOf(holder?.id, { reached }, async (id) => {
    const [row] = await db.run(expiry, { id, days, limit: CHUNK_ROWS });
    return row?.entries ?? 0;
  });
}

const skippedRows = statement({
  name: "maintenance.removeSkippedRows",
  // Deletes the first so many of each, of which the builder has no limit.
  params: OLD,
  text: ({ days, limit }) => sql`
    delete from outbox where ctid = any (array(
      (select ctid from outbox where skipped_at < now() - make_interval(days => ${days}) limit ${limit})
       union all
      (select o.ctid
         from outbox_skips k
        cross join lateral (select shard from webhook_subscriptions where id = k.subscription_id offset 0) s
        cross join lateral (
                select ctid from outbox
                 where shard = s.shard and subscription_id = k.subscription_id and sequence <= k.last
                 order by sequence limit ${limit}) o
        where k.skipped_at < now() - make_interval(days => ${days})
        limit ${limit})
       limit ${limit}))`,
});

const skips = statement({
  name: "maintenance.removeSkips",
  // By Postgres' clock.
  params: { days: value("integer") },
  text: ({ days }) =>
    sql`delete from outbox_skips where skipped_at < now() - make_interval(days => ${days})`,
});

/** Removes what was skipped longer ago than that: its rows, and then the notes of what was skipped together. */
export async function removeSkipped(db: RawDb, { days }: Pick<Old, "days">): Promise<Done> {
  const { count: rows } = await db.run(skippedRows, { days, limit: CHUNK_ROWS });
  if (rows > 0) return { rows, next: "" };
  await db.run(skips, { days });
  return { rows };
}

/** It waits in vain: a skip has dropped it, or its subscription is deleted, which then has no sequence row. */
const isDropped = (entry: SQL, skippedThrough: SQL) =>
  sql`${entry} <= coalesce(${skippedThrough}, ${entry})`;

const holderOfOldBatch = statement({
  name: "maintenance.holderOfOldBatch",
  // Looks at the head of each by probes of indexes, whatever the planner thinks of the tables.
  params: NEXT,
  columns: HOLDER,
  text: ({ after, days }) => sql`
    select s.id
      from webhook_subscriptions s
     cross join lateral (
             select b.review_history_id as id from batch_entries b where b.subscription_id = s.id
              order by b.review_history_id limit 1) first
     cross join lateral (select recorded_at from review_history where id = first.id offset 0) told
      left join lateral (
             select batch_skipped_through from outbox_sequences where subscription_id = s.id offset 0) q on true
     where s.id > ${after}
       and (s.delivery_kind = 'batch' and ${isDropped(sql`first.id`, sql`q.batch_skipped_through`)}
            or s.state = 'disabled' and told.recorded_at < now() - make_interval(days => ${days}))
     order by s.id limit 1`,
});

const batchExpiry = statement({
  name: "maintenance.removeBatchEntries",
  // Skips what is locked, and looks up each event by its key.
  params: OF_ONE,
  text: ({ id, days, limit }) => sql`
    with holder as materialized (
      -- Nobody enables it meanwhile.
      select id, state from webhook_subscriptions where id = ${id} for share skip locked
    ), first as materialized (
      select b.review_history_id as id from batch_entries b
       where b.subscription_id = (select id from holder)
       order by b.review_history_id limit ${limit} for update skip locked
    ), old as (
      select f.id
        from holder s cross join first f
       cross join lateral (select recorded_at from review_history where id = f.id offset 0) told
        left join outbox_sequences q on q.subscription_id = s.id
       where ${isDropped(sql`f.id`, sql`q.batch_skipped_through`)}
          or s.state = 'disabled' and told.recorded_at < now() - make_interval(days => ${days})
    )
    delete from batch_entries where subscription_id = ${id} and review_history_id = any (array(select id from old))`,
});

/** Removes events that wait for the batch of a disabled subscription for too long, or for a batch that never comes. */
export async function removeBatchEntries(db: RawDb, { days, reached }: Old): Promise<Done> {
  const [holder] = await db.run(holderOfOldBatch, { after: reached, days });
  return chunkOf(holder?.id, { reached }, async (id) => {
    return (await db.run(batchExpiry, { id, days, limit: CHUNK_ROWS })).count;
  });
}
