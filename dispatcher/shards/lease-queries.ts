import type { Db, Tx } from "../../db/client.ts";

// Leases run on the clock of Postgres, the only one that all dispatchers share: a clock that jumps on one of their
// hosts must neither keep a dead one alive nor kill a living one.

export async function insertDispatcher(db: Db, id: string): Promise<void> {
  await db.sql`insert into dispatchers (id, started_at, renewed_at) values (${id}, now(), now())`;
}

/** False if somebody declared this dispatcher dead. */
export async function renewDispatcher(db: Db, id: string): Promise<boolean> {
  const { count } = await db.sql`update dispatchers set renewed_at = now() where id = ${id}`;
  return count === 1;
}

interface ExpiredDispatcher {
  readonly id: string;
  readonly renewedAt: Date;
  readonly shards: readonly number[];
}

export async function expiredDispatchers(db: Db, ttlMs: number): Promise<ExpiredDispatcher[]> {
  return db.sql<ExpiredDispatcher[]>`
    select d.id, d.renewed_at as "renewedAt", array(select s.id from shards s where s.dispatcher_id = d.id) as shards
      from dispatchers d where d.renewed_at < now() - ${ttlMs} * interval '1 millisecond'`;
}

/** False if it renewed its lease after all, or somebody was faster. Waits for a commit that is under way there. */
export async function deleteExpiredDispatcher(
  tx: Tx,
  { id, renewedAt }: ExpiredDispatcher,
): Promise<boolean> {
  const { count } =
    await tx.sql`delete from dispatchers where id = ${id} and renewed_at = ${renewedAt}`;
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

/**
 * Records as interrupted what a dispatcher may have sent before it died: in each of its subscriptions the first
 * entries that were due and recorded while it could still send. It may be told of an entry that was never sent; what
 * was sent is never left out. Body and time are not known any more: the body is empty, the time the last sign of life.
 */
export async function recordInterrupted(
  tx: Tx,
  dead: ExpiredDispatcher & InterruptionBounds,
): Promise<number> {
  const { count } = await tx.sql`
    with recursive until as (
      select ${dead.renewedAt}::timestamptz + ${dead.safeMs} * interval '1 millisecond' as at
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
                order by o.sequence limit ${dead.window}) e
       where e.recorded_at <= u.at
    ), placed as (
      -- Behind a head that waits for its retry nothing was sent.
      select e.*, bool_and(e.due_at is null or e.due_at <= u.at) over in_lane as due,
             row_number() over in_lane as nth, min(e.sequence) over in_lane as head
        from entries e, until u
      window in_lane as (partition by e.subscription_id, e.lane order by e.sequence)
    ), ranked as (
      select p.*, dense_rank() over (partition by subscription_id order by head) as lane_nth
        from placed p where due and nth <= ${dead.perLane}
    )
    insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
      duration_ms, outcome, error_code, request_headers, request_body, response_truncated)
    select ${dead.idPrefix} || right(event_id, 16), subscription_id, sequence, event_id, event, round, attempt,
           ${dead.renewedAt}, 0, 'interrupted', 'process_lost',
           json_build_object('X-SVC-Event', event, 'X-SVC-Delivery', event_id, 'X-SVC-Attempt', attempt::text), '', false
      from ranked where lane_nth <= ${dead.lanes}
        on conflict do nothing`;
  return count;
}

export async function dispatcherIds(db: Db): Promise<string[]> {
  const rows = await db.sql<{ id: string }[]>`select id from dispatchers`;
  return rows.map((row) => row.id);
}

/** A shard, and how often it has been claimed. */
type ClaimedShard = readonly [shard: number, epoch: number];

export async function shardsOf(db: Db, id: string): Promise<ClaimedShard[]> {
  const rows = await db.sql<{ id: number; epoch: number }[]>`
    select id, epoch from shards where dispatcher_id = ${id} order by id`;
  return rows.map((row) => [row.id, row.epoch]);
}

export async function claimShards(db: Db, id: string, limit: number): Promise<ClaimedShard[]> {
  const rows = await db.sql<{ id: number; epoch: number }[]>`
    update shards set dispatcher_id = ${id}, epoch = epoch + 1
     where id in (select id from shards where dispatcher_id is null order by id limit ${limit} for update skip locked)
       and exists (select from dispatchers where id = ${id})
    returning id, epoch`;
  return rows.map((row) => [row.id, row.epoch]);
}

/** By epoch: a release that is carried out late must not take away what was claimed again since. */
export async function releaseShards(
  db: Db,
  id: string,
  epochs: ReadonlyMap<number, number>,
): Promise<void> {
  await db.sql`
    update shards s set dispatcher_id = null
      from unnest(${[...epochs.keys()]}::smallint[], ${[...epochs.values()]}::bigint[]) as given(id, epoch)
     where s.id = given.id and s.epoch = given.epoch and s.dispatcher_id = ${id}`;
}

/** Frees its shards with it. */
export async function deleteDispatcher(db: Db, id: string): Promise<void> {
  await db.sql`delete from dispatchers where id = ${id}`;
}
