import { and, asc, eq, exists, inArray, isNull, lt, sql } from "drizzle-orm";

import type { Db, Tx } from "../../db/client.ts";
import { deliveryAttempts } from "../../db/schema/attempts.ts";
import { dispatchers, shards } from "../../db/schema/dispatchers.ts";
import { list, rows, statement, value } from "../../db/statement.ts";

// Leases run on the clock of Postgres, the only one that all dispatchers share: a clock that jumps on one of their
// hosts must neither keep a dead one alive nor kill a living one. What looks through the outbox, and what updates by a
// list, is SQL.

const NOW = sql`now()`;

export async function insertDispatcher(db: Db, id: string): Promise<void> {
  await db.insert(dispatchers).values({ id, startedAt: NOW, renewedAt: NOW });
}

/** False if somebody declared this dispatcher dead. */
export async function renewDispatcher(db: Db, id: string): Promise<boolean> {
  const { count } = await db
    .update(dispatchers)
    .set({ renewedAt: NOW })
    .where(eq(dispatchers.id, id));
  return count === 1;
}

interface ExpiredDispatcher {
  readonly id: string;
  readonly renewedAt: Date;
  readonly shards: readonly number[];
}

export async function expiredDispatchers(db: Db, ttlMs: number): Promise<ExpiredDispatcher[]> {
  const { id, renewedAt } = dispatchers;
  const found = await db
    .select({ id, renewedAt, shard: shards.id })
    .from(dispatchers)
    .leftJoin(shards, eq(shards.dispatcherId, id))
    .where(lt(renewedAt, sql`now() - ${ttlMs} * interval '1 millisecond'`));
  const expired = new Map(found.map((row) => [row.id, { id: row.id, renewedAt: row.renewedAt }]));
  return [...expired.values()].map((one) => ({
    ...one,
    shards: found.flatMap((row) => (row.id === one.id ? (row.shard ?? []) : [])),
  }));
}

/** False if it renewed its lease after all, or somebody was faster. Waits for a commit that is under way there. */
export async function deleteExpiredDispatcher(
  tx: Tx,
  { id, renewedAt }: ExpiredDispatcher,
): Promise<boolean> {
  const { count } = await tx
    .delete(dispatchers)
    .where(and(eq(dispatchers.id, id), eq(dispatchers.renewedAt, renewedAt)));
  return count === 1;
}

/** How far from the head something can have been sent. */
interface InterruptionBounds {
  /** How long after its last renewal the dispatcher could still send. */
  readonly safeMs: number;
  /** Entries of one lane, and lanes of one subscription, in the order of their heads. */
  readonly perLane: number;
  readonly lanes: number;
  /** Entries of a subscription that are looked at. */
  readonly window: number;
  /** The time part of the ids; the rest is the event's own. */
  readonly idPrefix: string;
}

const interruption = statement({
  name: "leases.recordInterrupted",
  reason: "Jumps through the outbox by recursion, and places entries by windows over their lanes.",
  params: {
    renewedAt: dispatchers.renewedAt,
    shards: list(shards.id),
    safeMs: value("double precision"),
    perLane: value("bigint"),
    lanes: value("bigint"),
    window: value("bigint"),
    idPrefix: deliveryAttempts.id,
  },
  columns: {},
  text: ({ renewedAt, safeMs, perLane, lanes, window, idPrefix, ...dead }) => sql`
    with recursive until as (
      select ${renewedAt}::timestamptz + ${safeMs} * interval '1 millisecond' as at
    ), owned as (
      select unnest(${dead.shards}::smallint[]) as shard
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
    ), entries as (
      select e.*, case when e.is_test then 'test ' || e.sequence
                       when s.ordering = 'review' then coalesce(e.review_id::text, 'none')
                       else 'main' end as lane
        from until u, found f
        join webhook_subscriptions s on s.id = f.subscription_id and s.state = 'active'
       cross join lateral (
               select o.* from outbox o where o.shard = f.shard and o.subscription_id = f.subscription_id
                order by o.sequence limit ${window}) e
       where e.recorded_at <= u.at
    ), placed as (
      -- Behind a head that waits for its retry nothing was sent.
      select e.*, bool_and(e.due_at is null or e.due_at <= u.at) over in_lane as due,
             row_number() over in_lane as nth, min(e.sequence) over in_lane as head
        from entries e, until u
      window in_lane as (partition by e.subscription_id, e.lane order by e.sequence)
    ), ranked as (
      select p.*, dense_rank() over (partition by subscription_id order by head) as lane_nth
        from placed p where due and nth <= ${perLane}
    )
    insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
      duration_ms, outcome, error_code, request_headers, request_body, response_truncated)
    select ${idPrefix} || right(event_id, 16), subscription_id, sequence, event_id, event, round, attempt,
           ${renewedAt}, 0, 'interrupted', 'process_lost',
           json_build_object('X-SVC-Event', event, 'X-SVC-Delivery', event_id, 'X-SVC-Attempt', attempt::text), '', false
      from ranked where lane_nth <= ${lanes}
        on conflict do nothing`,
});

/**
 * Records as interrupted what a dispatcher may have sent before it died: in each of its subscriptions the first
 * entries that were due and recorded while it could still send. It may be told of an entry that was never sent; what
 * was sent is never left out. Body and time are not known any more: the body is empty, the time the last sign of life.
 */
export async function recordInterrupted(
  tx: Tx,
  dead: ExpiredDispatcher & InterruptionBounds,
): Promise<number> {
  const { count } = await tx.run(interruption, dead);
  return count;
}

export async function dispatcherIds(db: Db): Promise<string[]> {
  const found = await db.select({ id: dispatchers.id }).from(dispatchers);
  return found.map(({ id }) => id);
}

/** A shard, and how often it has been claimed. */
type ClaimedShard = readonly [shard: number, epoch: number];

export async function shardsOf(db: Db, id: string): Promise<ClaimedShard[]> {
  const owned = await db
    .select({ id: shards.id, epoch: shards.epoch })
    .from(shards)
    .where(eq(shards.dispatcherId, id))
    .orderBy(asc(shards.id));
  return owned.map((row) => [row.id, row.epoch]);
}

export async function claimShards(db: Db, id: string, limit: number): Promise<ClaimedShard[]> {
  const free = db
    .select({ id: shards.id })
    .from(shards)
    .where(isNull(shards.dispatcherId))
    .orderBy(asc(shards.id))
    .limit(limit)
    .for("update", { skipLocked: true });
  const self = db.select().from(dispatchers).where(eq(dispatchers.id, id));
  const claimed = await db
    .update(shards)
    .set({ dispatcherId: id, epoch: sql`${shards.epoch} + 1` })
    .where(and(inArray(shards.id, free), exists(self)))
    .returning({ id: shards.id, epoch: shards.epoch });
  return claimed.map((row) => [row.id, row.epoch]);
}

const releasing = statement({
  name: "leases.releaseShards",
  reason: "Updates by a parameter that is a table.",
  params: { id: dispatchers.id, given: rows({ id: shards.id, epoch: shards.epoch }) },
  columns: {},
  text: ({ id, given }) => sql`
    update shards s set dispatcher_id = null
      from ${given}
     where s.id = given.id and s.epoch = given.epoch and s.dispatcher_id = ${id}`,
});

/** By epoch: a release that is carried out late must not take away what was claimed again since. */
export async function releaseShards(
  db: Db,
  id: string,
  epochs: ReadonlyMap<number, number>,
): Promise<void> {
  const given = [...epochs].map(([shard, epoch]) => ({ id: shard, epoch }));
  await db.run(releasing, { id, given });
}

/** Frees its shards with it. */
export async function deleteDispatcher(db: Db, id: string): Promise<void> {
  await db.delete(dispatchers).where(eq(dispatchers.id, id));
}
