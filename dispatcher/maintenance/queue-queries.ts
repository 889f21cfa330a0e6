// Removal of what waits for a disabled or deleted subscription, one chunk a call. Postgres' clock decides what is old: no
// statement is told the time. What moves rows from table to table is SQL.
import { sql, type SQL } from "drizzle-orm";

import type { RawDb } from "../../db/client.ts";
import { onlyRow, statement, value, type Statement } from "../../db/statement.ts";
import { firstQueued } from "../../db/log.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import type { Done } from "./loop.ts";
import { CHUNK_ROWS, type Old } from "./records-queries.ts";

const OLD = { days: value("integer"), limit: value("bigint") };
/**
 * Statements that handle a bounded part of the first subscription behind another one that has anything old. They find it
 * (`candidate`) by probes of indexes, whatever the planner thinks of the tables.
 */
const OF_NEXT = {
  params: { after: webhookSubscriptions.id, ...OLD },
  columns: { id: webhookSubscriptions.id, rows: value("bigint") },
};

/** Handles a chunk of one subscription; the last chunk leads to the subscription behind it. */
const nextChunk =
  (chunk: Statement<typeof OF_NEXT.params, typeof OF_NEXT.columns>) =>
  async (db: RawDb, { days, reached }: Old): Promise<Done> => {
    const [found] = await db.run(chunk, { after: reached, days, limit: CHUNK_ROWS });
    if (found === undefined) return { rows: 0 };
    return { rows: found.rows, next: found.rows < CHUNK_ROWS ? found.id : reached };
  };

const expiry = statement({
  ...OF_NEXT,
  name: "maintenance.expireHeldEntries",
  text: ({ after, days, limit }) => sql`
    with candidate as materialized (
      select s.id
        from webhook_subscriptions s cross join lateral (${firstQueued()}) head
       where s.id > ${after} and s.state = 'disabled' and head.recorded_at < now() - make_interval(days => ${days})
       order by s.id limit 1
    ), holder as materialized (
      -- Nobody enables it meanwhile. It is the last lock in the order of a subscription's locks, and none waits here.
      select s.id, s.shard, s.number, f.settled_through, f.skipped_through
        from webhook_subscriptions s cross join lateral (
               select * from outbox_offsets where subscription_id = s.id for no key update skip locked) f
       where s.id = (select id from candidate) and s.state = 'disabled' for share of s skip locked
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
      select count(*) as entries, max(sequence) as last, max(sequence) filter (where is_logged) as last_logged
        from first
       where sequence < all (select f.sequence from first f where f.recorded_at >= now() - make_interval(days => ${days}))
    ), moved as (
      update outbox_offsets f
         set skipped_through = o.last, settled_through = greatest(f.settled_through, o.last_logged)
        from old o where f.subscription_id = (select id from candidate) and o.entries > 0
    ), kept as (
      insert into outbox_skips (subscription_id, first, last, reason, entries, skipped_at)
      select s.id, s.settled_through + 1, o.last, 'expired', o.entries, now() from holder s, old o where o.entries > 0
    )
    select c.id, o.entries as rows from candidate c cross join old o`,
});

/**
 * Skips entries of disabled subscriptions that are older than the retention time (contract 7.9), from the head on. What
 * somebody has locked is left for the next run.
 */
export const expireHeldEntries = nextChunk(expiry);

const skippedRows = statement({
  name: "maintenance.removeSkipped",
  // Deletes the first so many of each, of which the builder has no limit.
  params: OLD,
  columns: { rows: value("bigint") },
  text: ({ days, limit }) => sql`
    with gone as (
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
         limit ${limit}))
      returning sequence
    ), noted as (
      delete from outbox_skips
       where skipped_at < now() - make_interval(days => ${days}) and not exists (select from gone)
    )
    select count(*) as rows from gone`,
});

/** Removes what was skipped longer ago than that: its rows, and then the notes of what was skipped together. */
export async function removeSkipped(db: RawDb, { days }: Pick<Old, "days">): Promise<Done> {
  const { rows } = onlyRow(await db.run(skippedRows, { days, limit: CHUNK_ROWS }));
  return rows > 0 ? { rows, next: "" } : { rows };
}

/** It waits in vain: a skip has dropped it, or its subscription is deleted, which then has no sequence row. */
const isDropped = (entry: SQL, skippedThrough: SQL) =>
  sql`${entry} <= coalesce(${skippedThrough}, ${entry})`;

const batchExpiry = statement({
  ...OF_NEXT,
  name: "maintenance.removeBatchEntries",
  text: ({ after, days, limit }) => sql`
    with candidate as materialized (
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
       order by s.id limit 1
    ), holder as materialized (
      -- Nobody enables it meanwhile.
      select id, state from webhook_subscriptions where id = (select id from candidate) for share skip locked
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
    ), gone as (
      delete from batch_entries
       where subscription_id = (select id from candidate) and review_history_id = any (array(select id from old))
      returning review_history_id
    )
    select id, (select count(*) from gone) as rows from candidate`,
});

/** Removes events that wait for the batch of a disabled subscription for too long, or for a batch that never comes. */
export const removeBatchEntries = nextChunk(batchExpiry);
