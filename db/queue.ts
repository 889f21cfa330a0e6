import { sql, type SQL } from "drizzle-orm";

import { skippedThrough } from "./log.ts";

/*
 * Parts of statements that look at what is queued for a subscription: the rows of `outbox` and the events of its log
 * behind the offset. Each is a bounded walk of an index. `s` is the subscription, with its id, shard and number.
 */

const rows = sql`from outbox o where o.shard = s.shard and o.subscription_id = s.id and o.skipped_at is null
                   and o.sequence > ${skippedThrough(sql`s.id`)}`;
const logged = sql`from review_history h where h.subscription_number = s.number
                     and h.sequence > (select settled_through from outbox_offsets where subscription_id = s.id)`;

/** More than there can be. */
export const NO_LIMIT = 2 ** 31 - 1;

/** The first entry: its sequence, recorded_at, due_at and state. */
export const firstQueued = (isOrdered: SQL = sql`true`): SQL => sql`
  select * from (
    (select o.sequence, o.recorded_at, o.due_at, o.state ${rows} and ${isOrdered} order by o.sequence limit 1)
     union all
    (select h.sequence, h.recorded_at, null, 'pending' ${logged} order by h.sequence limit 1)) first
   order by sequence limit 1`;

/** Every entry, in no order: its recorded_at and state. */
export const allQueued = sql`
  select o.recorded_at, o.state ${rows} union all select h.recorded_at, 'pending' ${logged}`;

/** Of the rows alone those that hold back others: no tests. */
export const NO_TEST = sql`not o.is_test`;

/**
 * The length of the queue, as a scalar subquery: exact up to `limit` rows and `limit` events of the log. Behind that many
 * each number of the sequence counts as an entry, so that a million cost as much as `limit` do.
 */
export function queueLength(limit: number): SQL {
  const most = sql.raw(String(limit));
  // The planner does not know the limit of a subquery, so it walks the index instead of sorting the whole queue.
  const length = (sequence: SQL, from: SQL, last: SQL) => sql`(
    select c.entries + case when c.entries < ${most} then 0 else greatest(0, coalesce(${last}, c.last) - c.last) end
      from (select count(*) as entries, max(n) as last
              from (select ${sequence} as n ${from} order by 1 limit (select ${most}::bigint)) e) c)`;
  const lastRow = sql`(select o.sequence ${rows} order by o.sequence desc limit 1)`;
  const lastLogged = sql`(select last_logged from outbox_sequences where subscription_id = s.id)`;
  return sql`(${length(sql`o.sequence`, rows, lastRow)} + ${length(sql`h.sequence`, logged, lastLogged)})`;
}

/**
 * Common table expressions of a recursive `with`, of which the last is `queues` (shard, subscription_id): the
 * subscriptions of the shards in `asked` (shard) that have entries, about so many of each shard.
 */
export function queuesOf(limit: SQL): SQL {
  return sql`with_rows as (
      -- From one subscription to the next, whatever each of them has. The bounds are single columns: one that is a row
      -- ends no walk before PostgreSQL 18.
      select 1 as n, a.shard, next.subscription_id
        from asked a cross join lateral (
               select subscription_id from outbox where shard = a.shard order by subscription_id limit 1) next
       union all
      select w.n + 1, w.shard, next.subscription_id
        from with_rows w cross join lateral (
               select subscription_id from outbox where shard = w.shard and subscription_id > w.subscription_id
                order by subscription_id limit 1) next
       where w.n < ${limit}::integer
    ), behind as (
      select s.shard, s.id as subscription_id
        from asked a cross join lateral (
               select shard, id from webhook_subscriptions
                where shard = a.shard and state <> 'deleted' and delivery_kind = 'immediate' offset 0) s
       cross join lateral (select last_logged from outbox_sequences where subscription_id = s.id offset 0) q
       cross join lateral (select settled_through from outbox_offsets where subscription_id = s.id offset 0) f
       where q.last_logged > f.settled_through
       limit ${limit}::integer::bigint * (select count(*) from asked)
    ), queues as (
      select shard, subscription_id from with_rows union select shard, subscription_id from behind
    )`;
}
