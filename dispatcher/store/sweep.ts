import { sql } from "drizzle-orm";

import type { DbOrTx } from "../../db/client.ts";
import { NO_LIMIT, queuesOf } from "../../db/log.ts";
import { outbox } from "../../db/schema/outbox.ts";
import { list, nullable, statement, value, type ValuesOf } from "../../db/statement.ts";
import { IS_SENT } from "./load-queries.ts";

// The sweep is raw SQL, because Drizzle's query builder does not support recursive queries.

/** The interval in milliseconds between two sweeps of a shard. A lost wake delays deliveries by at most this time. */
export const SWEEP_MS = 3_000;
/**
 * The time ahead in milliseconds for which a sweep reports due subscriptions, so that a late next sweep misses
 * nothing.
 */
const SOON_MS = 2 * SWEEP_MS;
/**
 * The most due batches that a sweep reports for each shard, the earliest first. The limit also corrects the planner,
 * which expects a third of all batches to be due.
 */
const BATCHES_AT_ONCE = 500;

const SWEPT_COLUMNS = {
  subscriptionId: outbox.subscriptionId,
  shard: outbox.shard,
  /** The time in milliseconds until the subscription is due by the clock of PostgreSQL; 0 or less if it is due now. */
  dueInMs: value("double precision"),
  /**
   * The time in milliseconds for which the first entry of the subscription, except tests, could have been sent; below 0
   * while the entry waits for a retry.
   */
  waitedMs: nullable(value("double precision")),
};

export type SweptSubscription = ValuesOf<typeof SWEPT_COLUMNS>;

const sweep = statement({
  name: "sweep.shards",
  // Raw SQL, because the statement jumps from one subscription to the next, however many rows each has (measured).
  params: {
    shards: list(outbox.shard),
    limit: value("integer"),
    soonMs: value("double precision"),
  },
  columns: SWEPT_COLUMNS,
  text: ({ shards, limit, soonMs }) => sql`
    with recursive asked as materialized (
      -- The array is a subquery: the planner then expects ten rows, and does not JIT-compile a plan for thousands.
      select * from unnest((select ${shards}::smallint[])) as t(shard)
    ), ${queuesOf(limit)}, found as (
      select c.shard, s.*, f.* from queues c
       cross join lateral (
               select id, number, ordering, case when state = 'disabled' then pending_test_event_id end as pending
                 from webhook_subscriptions where id = c.subscription_id and ${IS_SENT} offset 0) s
       cross join lateral (select * from outbox_offsets where subscription_id = c.subscription_id offset 0) f
    ), due as (
      select f.id, f.shard, least(
               case when queued.sequence is null and log.sequence is null then null
                    -- With a lane per review it is due now, because another lane may be due while the first entry
                    -- waits.
                    when f.ordering = 'review' or log.sequence < coalesce(queued.sequence, log.sequence + 1) then now()
                    else coalesce(queued.due_at, now()) end, test.due_at) as at,
             case when log.sequence < coalesce(queued.sequence, log.sequence + 1) then log.recorded_at
                  else greatest(queued.recorded_at, queued.due_at) end as since
        from found f
        left join lateral (
               select sequence, recorded_at, due_at from outbox
                where shard = f.shard and subscription_id = f.id and sequence > f.skipped_through and not is_test
                  and skipped_at is null
                order by sequence limit 1) queued on f.pending is null
        left join lateral (
               select sequence, recorded_at from review_history
                where subscription_number = f.number and sequence > f.settled_through
                order by sequence limit 1) log on f.pending is null
        left join lateral (
               select coalesce(due_at, now()) as due_at from outbox
                where shard = f.shard and subscription_id = f.id and sequence > f.skipped_through and is_test
                  and skipped_at is null and event_id = coalesce(f.pending, event_id)
                order by outbox.due_at nulls first, sequence limit 1) test on true
    )
    select id as "subscriptionId", shard, (extract(epoch from at - now()) * 1000)::float8 as "dueInMs",
           (extract(epoch from now() - since) * 1000)::float8 as "waitedMs"
      from due where at <= now() + ${soonMs} * interval '1 millisecond'
     union all
    select batch.id, a.shard, (extract(epoch from batch.next_batch_at - now()) * 1000)::float8, null
      from asked a cross join lateral (
             select id, next_batch_at from webhook_subscriptions s
              where s.shard = a.shard and s.state = 'active' and s.next_batch_at is not null
                and s.next_batch_at <= now() + ${soonMs} * interval '1 millisecond'
              order by s.shard, s.next_batch_at limit ${sql.raw(String(BATCHES_AT_ONCE))}) batch`,
});

/**
 * Returns the subscriptions of these shards that have something due now or before the next sweep, with the time until
 * it is due: an entry or a batch of an active one, or the pending test of a disabled one. With `limit`, returns about
 * that many subscriptions of each shard. A subscription that is due later is found by a later sweep or woken by its
 * planned wake. The cost follows the number of subscriptions, not of entries.
 */
export function sweepShards(db: DbOrTx, shards: readonly number[], limit = NO_LIMIT) {
  return db.run(sweep, { shards, limit, soonMs: SOON_MS });
}
