import { sql } from "drizzle-orm";

import type { DbOrTx } from "../../db/client.ts";
import { NO_LIMIT, queuesOf } from "../../db/log.ts";
import { outbox } from "../../db/schema/outbox.ts";
import { list, nullable, statement, value, type ValuesOf } from "../../db/statement.ts";

// The sweep is measured, and SQL: the builder has no recursion.

/** How often every shard is swept: with it, a lost wake costs at most this long. */
export const SWEEP_MS = 3_000;
/** A sweep tells of what is due until the next one, even if that is late. */
const SOON_MS = 2 * SWEEP_MS;
/** Of a shard, those that were due first. The planner, who expects a third of all batches to be due, learns it here, too. */
const BATCHES_AT_ONCE = 500;

const SWEPT = {
  subscriptionId: outbox.subscriptionId,
  shard: outbox.shard,
  /** Until there is something to do for it, by the clock of Postgres; not above 0 if there is now. */
  dueInMs: value("double precision"),
  /** For how long its first entry that is no test could have been sent, if it has one; below 0 if that waits. */
  waitedMs: nullable(value("double precision")),
};

export type SweptSubscription = ValuesOf<typeof SWEPT>;

const sweep = statement({
  name: "sweep.shards",
  // Measured: of the rows it jumps from one subscription to the next, whatever each of them has.
  params: {
    shards: list(outbox.shard),
    limit: value("integer"),
    soonMs: value("double precision"),
  },
  columns: SWEPT,
  text: ({ shards, limit, soonMs }) => sql`
    with recursive asked as materialized (
      -- The array is a select of its own: the planner takes that for ten, and does not compile the plan for thousands.
      select * from unnest((select ${shards}::smallint[])) as t(shard)
    ), ${queuesOf(limit)}, found as (
      select c.shard, s.*, f.* from queues c
       cross join lateral (
               select id, number, ordering from webhook_subscriptions
                where id = c.subscription_id and state = 'active' offset 0) s
       cross join lateral (select * from outbox_offsets where subscription_id = c.subscription_id offset 0) f
    ), due as (
      select f.id, f.shard, least(
               case when queued.sequence is null and log.sequence is null then null
                    -- Any lane may be due.
                    when f.ordering = 'review' or log.sequence < coalesce(queued.sequence, log.sequence + 1) then now()
                    else coalesce(queued.due_at, now()) end, test.due_at) as at,
             case when log.sequence < coalesce(queued.sequence, log.sequence + 1) then log.recorded_at
                  else greatest(queued.recorded_at, queued.due_at) end as since
        from found f
        left join lateral (
               select sequence, recorded_at, due_at from outbox
                where shard = f.shard and subscription_id = f.id and sequence > f.skipped_through and not is_test
                  and skipped_at is null
                order by sequence limit 1) queued on true
        left join lateral (
               select sequence, recorded_at from review_history
                where subscription_number = f.number and sequence > f.settled_through
                order by sequence limit 1) log on true
        left join lateral (
               select coalesce(due_at, now()) as due_at from outbox
                where shard = f.shard and subscription_id = f.id and sequence > f.skipped_through and is_test
                  and skipped_at is null
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
 * The active subscriptions of these shards that have an entry or a batch that is due now or before the next sweep, each
 * with the time until then; with a limit about so many of each shard. What is due later is found by a later sweep;
 * whoever made it wait has planned a look. Its cost follows the subscriptions, not the entries.
 */
export function sweepShards(db: DbOrTx, shards: readonly number[], limit = NO_LIMIT) {
  return db.run(sweep, { shards, limit, soonMs: SOON_MS });
}
