import { sql } from "drizzle-orm";

import type { DbOrTx } from "../../db/client.ts";
import { outbox } from "../../db/schema/outbox.ts";
import { list, nullable, statement, value, type ValuesOf } from "../../db/statement.ts";
import type { Stretch } from "./heads.ts";

// The sweep is measured, and SQL: the builder has no recursion.

/** How often every shard is swept: with it, a lost wake costs at most this long. */
export const SWEEP_MS = 3_000;
/** A sweep tells of what is due until the next one, even if that is late. */
const SOON_MS = 2 * SWEEP_MS;
/** Of a shard, those that were due first. The planner, who expects a third of all batches to be due, learns it here, too. */
const BATCHES_AT_ONCE = 500;
/** More than there can be. */
const NO_LIMIT = 2 ** 31 - 1;

const SWEPT = {
  subscriptionId: outbox.subscriptionId,
  shard: outbox.shard,
  /** Until there is something to do for it, by the clock of Postgres; not above 0 if there is now. */
  dueInMs: value("double precision"),
  /** For how long its head could have been sent, if it has one; below 0 if it waits. */
  waitedMs: nullable(value("double precision")),
  /** Of its first entry. */
  sequence: nullable(outbox.sequence),
};

type SweptRow = ValuesOf<typeof SWEPT>;

export type SweptSubscription = Pick<SweptRow, "subscriptionId" | "shard" | "dueInMs"> &
  Partial<Pick<SweptRow, "waitedMs">>;

const sweep = statement({
  name: "sweep.shards",
  reason:
    "Measured: its cost follows the subscriptions with entries, by a recursive jump from one to the next.",
  params: {
    shards: list(outbox.shard),
    of: list(outbox.shard),
    from: list(outbox.subscriptionId),
    after: list(outbox.sequence),
    until: list(outbox.subscriptionId),
    limit: value("integer"),
    soonMs: value("double precision"),
  },
  columns: SWEPT,
  text: ({ shards, of, from, after, until, limit, soonMs }) => sql`
    with recursive stretch as materialized (
      -- Each array is a select of its own: the planner takes that for ten, and does not compile the plan for thousands.
      select * from unnest((select ${of}::smallint[]), (select ${from}::text[]), (select ${after}::bigint[]),
                           (select ${until}::text[])) as t(shard, from_id, after, until_id)
    ), found as (
      -- A head that is known, if it is still there, and from it on always the next subscription. The bounds are single
      -- columns: one that is a row ends no walk before PostgreSQL 18.
      select 0 as n, t.shard, t.until_id, t.from_id collate "C" as subscription_id, head.*
        from stretch t
        left join lateral (
               select o.sequence, o.is_test, o.recorded_at, o.due_at from outbox o
                where o.shard = t.shard and o.subscription_id = t.from_id and o.sequence > t.after
                order by o.sequence limit 1) head on true
      union all
      select f.n + 1, f.shard, f.until_id, head.*
        from found f cross join lateral (
               select o.subscription_id, o.sequence, o.is_test, o.recorded_at, o.due_at from outbox o
                where o.shard = f.shard and o.subscription_id > f.subscription_id and o.subscription_id < f.until_id
                order by o.subscription_id, o.sequence limit 1) head
       where f.n < ${limit}
    ), due as (
      select f.*, least(
               case when s.ordering = 'review' then now()
                    -- A test that waits holds back nothing.
                    when f.is_test then behind.due_at
                    else coalesce(f.due_at, now()) end, test.due_at) as at
        from found f
       cross join lateral (
               select ordering from webhook_subscriptions
                where id = f.subscription_id and state = 'active' offset 0) s
        left join lateral (
               select coalesce(o.due_at, now()) as due_at from outbox o
                where f.is_test and o.shard = f.shard and o.subscription_id = f.subscription_id
                  and o.sequence > f.sequence and not o.is_test
                order by o.sequence limit 1) behind on true
        left join lateral (
               select coalesce(o.due_at, now()) as due_at from outbox o
                where o.shard = f.shard and o.subscription_id = f.subscription_id and o.is_test
                order by o.due_at nulls first, o.sequence limit 1) test on true
       where f.sequence is not null
    )
    select d.subscription_id as "subscriptionId", d.shard,
           (extract(epoch from d.at - now()) * 1000)::float8 as "dueInMs",
           (extract(epoch from now() - greatest(d.recorded_at, d.due_at)) * 1000)::float8 as "waitedMs", d.sequence
      from due d where d.at <= now() + ${soonMs} * interval '1 millisecond'
    union all
    select batch.id, given.shard, (extract(epoch from batch.next_batch_at - now()) * 1000)::float8, null, null
      from unnest((select ${shards}::smallint[])) as given(shard) cross join lateral (
             select id, next_batch_at from webhook_subscriptions s
              where s.shard = given.shard and s.state = 'active' and s.next_batch_at is not null
                and s.next_batch_at <= now() + ${soonMs} * interval '1 millisecond'
              order by s.shard, s.next_batch_at limit ${sql.raw(String(BATCHES_AT_ONCE))}) batch`,
});

/**
 * The active subscriptions of these shards that have an entry or a batch that is due now or before the next sweep, each
 * with the time until then. What is due later is found by a later sweep; whoever made it wait has planned a look.
 *
 * It jumps from one subscription to the next in the primary key of the outbox, so its cost follows the number of
 * subscriptions with entries, not the number of entries; and it begins at the heads that are known, so that it does not
 * walk over what was settled and is not vacuumed. With a limit it walks so far in each stretch.
 */
export function sweepShards(
  db: DbOrTx,
  {
    shards,
    stretches,
    limit = NO_LIMIT,
  }: {
    readonly shards: readonly number[];
    readonly stretches: readonly Stretch[];
    readonly limit?: number | undefined;
  },
): Promise<SweptRow[]> {
  return db.run(sweep, {
    shards,
    of: stretches.map((one) => one.shard),
    from: stretches.map((one) => one.fromId),
    after: stretches.map((one) => one.after),
    until: stretches.map((one) => one.untilId),
    limit,
    soonMs: SOON_MS,
  });
}
