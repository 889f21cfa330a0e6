import { sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { outbox } from "../../db/schema/outbox.ts";
import { instant, list, nullable, statement, type ValuesOf } from "../../db/statement.ts";

// The sweep is measured, and SQL: the builder has no recursion.

/** How often every shard is swept: with it, a lost wake costs at most this long. */
export const SWEEP_MS = 3_000;

const SWEPT = {
  subscriptionId: outbox.subscriptionId,
  shard: outbox.shard,
  /** When there is something to do for it. */
  dueAt: instant,
  /** Since when its head could have been sent, if it has one. */
  headSince: nullable(instant),
};

type SweptRow = ValuesOf<typeof SWEPT>;

export type SweptSubscription = Omit<SweptRow, "headSince"> & Partial<Pick<SweptRow, "headSince">>;

const sweep = statement({
  name: "sweep.shards",
  reason:
    "Measured: its cost follows the subscriptions with entries, by a recursive jump from one to the next.",
  params: { shards: list(outbox.shard), now: instant },
  columns: SWEPT,
  text: ({ shards, now }) => sql`
    with recursive owned as (
      select unnest(${shards}::smallint[]) as shard
    ), found as (
      select o.shard, first.subscription_id
        from owned o cross join lateral (
               select subscription_id from outbox where shard = o.shard order by subscription_id limit 1) first
      union all
      select f.shard, following.subscription_id
        from found f cross join lateral (
               select subscription_id from outbox
                where shard = f.shard and subscription_id > f.subscription_id
                order by subscription_id limit 1) following
    )
    select f.subscription_id as "subscriptionId", f.shard,
           case when s.ordering = 'review' or test.waiting then ${now}::timestamptz
                else coalesce(head.due_at, ${now}::timestamptz) end as "dueAt",
           greatest(head.recorded_at, head.due_at) as "headSince"
      from found f
      join webhook_subscriptions s on s.id = f.subscription_id and s.state = 'active'
     cross join lateral (
             select o.recorded_at, o.due_at from outbox o
              where o.shard = f.shard and o.subscription_id = f.subscription_id
              order by o.sequence limit 1) head
     cross join lateral (
             select exists (select from outbox o
                             where o.shard = f.shard and o.subscription_id = f.subscription_id and o.is_test) as waiting) test
    union all
    select id, shard, next_batch_at, null
      from webhook_subscriptions
     where shard = any(${shards}::smallint[]) and state = 'active' and next_batch_at is not null`,
});

/**
 * The active subscriptions of these shards that have unsettled entries or a batch to come, and when to look at them.
 * It jumps from one subscription to the next in the primary key of the outbox, so its cost follows the number of
 * subscriptions with entries, not the number of entries.
 */
export function sweepShards(db: Db, shards: readonly number[], now: Date): Promise<SweptRow[]> {
  return db.run(sweep, { shards, now });
}
