import type { DbOrTx, Tx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { addMs } from "../../lib/clock.ts";
import { EXACT_MS, GROWTH, type CountedAttempts, type Range, type Segment } from "../stats.ts";
import type { Subscription } from "../model.ts";

type Key = Pick<Subscription, "id" | "shard">;

interface QueueFigures {
  readonly queued: number;
  readonly oldestRecordedAt: Date | null;
}

/** How much is queued, counted up to `limit`, and since when the first of it is. */
export async function queueOf(
  db: DbOrTx,
  { id, shard }: Key,
  limit: number,
): Promise<QueueFigures> {
  const rows = await db.sql<QueueFigures[]>`
    select (select count(*)::int from (select from outbox
             where shard = ${shard} and subscription_id = ${id} limit ${limit}) q) as queued,
           (select recorded_at from outbox where shard = ${shard} and subscription_id = ${id}
             order by sequence limit 1) as "oldestRecordedAt"`;
  return rows[0] ?? { queued: 0, oldestRecordedAt: null };
}

interface Blocking {
  readonly eventId: string;
  /** When its first attempt of this round failed. */
  readonly since: Date | null;
}

/** The first entry that waits for a retry, and with it whatever stands behind it in its lane. */
export async function blockingEntry(db: DbOrTx, { id, shard }: Key): Promise<Blocking | undefined> {
  const [row] = await db.sql<Blocking[]>`
    select o.event_id as "eventId", a.started_at as since
      from (select event_id, round from outbox
             where subscription_id = ${id} and shard = ${shard} and state = 'waiting' and not is_test
             order by sequence limit 1) o
      left join lateral (
             select started_at from delivery_attempts
              where event_id = o.event_id and subscription_id = ${id} and round = o.round
              order by id limit 1) a on true`;
  return row;
}

/** When a 2xx was last received. */
export async function lastSuccessAt(db: DbOrTx, subscriptionId: string): Promise<Date | undefined> {
  const [row] = await db.sql<{ endedAt: Date }[]>`
    select started_at + duration_ms * interval '1 millisecond' as "endedAt" from delivery_attempts
     where subscription_id = ${subscriptionId} and outcome = 'delivered'
     order by id desc limit 1`;
  return row?.endedAt;
}

/** Events that were held for longer than the retention time. */
export async function expiredSince(
  db: DbOrTx,
  subscriptionId: string,
  since: Date,
): Promise<number> {
  const [row] = await db.sql<{ n: number }[]>`
    select count(*)::int as n from settled_entries
     where subscription_id = ${subscriptionId} and reason = 'expired' and settled_at >= ${since}`;
  return row?.n ?? 0;
}

/** Up to when attempts are counted in buckets; those of older times may have none. */
export async function countedUntil(db: DbOrTx): Promise<Date | undefined> {
  const [row] = await db.sql<{ until: Date }[]>`
    select counted_until as until from figures_progress`;
  return row?.until;
}

const bin = (db: DbOrTx) => db.sql`
  case when duration_ms < ${EXACT_MS}::int then duration_ms
       else ${EXACT_MS}::int + floor(ln(duration_ms / ${EXACT_MS}::float8) / ln(${GROWTH}::float8))::int end`;

export interface PointCount extends CountedAttempts {
  readonly at: Date;
}

/** Attempts per step, outcome and bin, from whole buckets. */
export async function countsOfBuckets(
  db: DbOrTx,
  subscriptionId: string,
  segments: readonly Segment[],
  { stepMs, origin }: Pick<Range, "stepMs" | "origin">,
): Promise<PointCount[]> {
  const asked = segments.map(({ since, until, levelMs }) => ({
    since,
    until,
    step_s: (levelMs ?? 0) / 1000,
  }));
  return db.sql<PointCount[]>`
    select date_bin(${stepMs} * interval '1 millisecond', f.bucket_at, ${origin}) as at, f.outcome,
           u.bin, sum(u.count)::int as count
      from json_to_recordset(${JSON.stringify(asked)}::text::json)
             as g(since timestamptz, until timestamptz, step_s int)
     cross join lateral (
             select bucket_at, outcome, bins, counts from attempt_figures
              where subscription_id = ${subscriptionId} and step_s = g.step_s
                and bucket_at >= g.since and bucket_at < g.until offset 0) f
     cross join lateral unnest(f.bins, f.counts) as u(bin, count)
     group by 1, 2, 3`;
}

/** The same from the attempts themselves. */
export async function countsOfAttempts(
  db: DbOrTx,
  subscriptionId: string,
  { since, until, stepMs, origin }: Range,
): Promise<PointCount[]> {
  return db.sql<PointCount[]>`
    select date_bin(${stepMs} * interval '1 millisecond', started_at, ${origin}) as at, outcome,
           ${bin(db)} as bin, count(*)::int as count
      from delivery_attempts
     where subscription_id = ${subscriptionId} and id >= ${ulidFloor(since)} and id < ${idAfter(until)}
       and started_at >= ${since} and started_at < ${until}
     group by 1, 2, 3`;
}

interface Backlog {
  readonly at: Date;
  readonly entries: number;
}

/** The highest backlog of each step. */
export async function backlogs(
  db: DbOrTx,
  subscriptionId: string,
  { since, until, stepMs, origin }: Range,
): Promise<Backlog[]> {
  return db.sql<Backlog[]>`
    select date_bin(${stepMs} * interval '1 millisecond', bucket_at, ${origin}) as at, max(entries) as entries
      from backlog_figures
     where subscription_id = ${subscriptionId} and bucket_at >= ${since} and bucket_at < ${until}
     group by 1`;
}

/** One process counts at a time; false if another one does. */
export async function holdCounting(tx: Tx): Promise<boolean> {
  const [row] = await tx.sql<{ held: boolean }[]>`
    select pg_try_advisory_xact_lock(hashtext('reviewrelay:figures')) as held`;
  return row?.held ?? false;
}

export async function firstAttemptAt(tx: Tx): Promise<Date | undefined> {
  const [row] = await tx.sql<{ at: Date | null }[]>`
    select min(a.started_at) as at
      from webhook_subscriptions s cross join lateral (
             select started_at from delivery_attempts where subscription_id = s.id order by id limit 1) a`;
  return row?.at ?? undefined;
}

/** Counts the attempts of whole buckets anew: once more is no harm. */
export async function countAttempts(
  tx: Tx,
  { since, until, stepMs, origin }: Range,
): Promise<void> {
  await tx.sql`
    with counted as (
      select s.id, date_bin(${stepMs} * interval '1 millisecond', a.started_at, ${origin}) as bucket_at,
             a.outcome, ${bin(tx)} as bin, count(*)::int as count
        from webhook_subscriptions s cross join lateral (
               -- The offset keeps it one index range per subscription, whatever the planner thinks.
               select started_at, outcome, duration_ms from delivery_attempts
                where subscription_id = s.id and id >= ${ulidFloor(since)} and id < ${idAfter(until)}
                  and started_at >= ${since} and started_at < ${until} offset 0) a
       where s.state <> 'deleted'
       group by 1, 2, 3, 4
    )
    insert into attempt_figures (subscription_id, step_s, bucket_at, outcome, bins, counts)
    select id, ${stepMs / 1000}, bucket_at, outcome, array_agg(bin), array_agg(count) from counted group by 1, 3, 4
        on conflict (subscription_id, step_s, bucket_at, outcome) do update
       set bins = excluded.bins, counts = excluded.counts`;
}

/** Sums shorter buckets up to longer ones; one that is not over yet is summed again later. */
export async function sumBuckets(
  tx: Tx,
  { since, until }: Pick<Range, "since" | "until">,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<void> {
  await tx.sql`
    with summed as (
      select s.id, date_bin(${toMs} * interval '1 millisecond', f.bucket_at, 'epoch') as bucket_at, f.outcome, u.bin,
             sum(u.count)::int as count
        from webhook_subscriptions s cross join lateral (
               select bucket_at, outcome, bins, counts from attempt_figures
                where subscription_id = s.id and step_s = ${fromMs / 1000}
                  and bucket_at >= ${since} and bucket_at < ${until} offset 0) f
       cross join lateral unnest(f.bins, f.counts) as u(bin, count)
       where s.state <> 'deleted'
       group by 1, 2, 3, 4
    )
    insert into attempt_figures (subscription_id, step_s, bucket_at, outcome, bins, counts)
    select id, ${toMs / 1000}, bucket_at, outcome, array_agg(bin), array_agg(count) from summed group by 1, 3, 4
        on conflict (subscription_id, step_s, bucket_at, outcome) do update
       set bins = excluded.bins, counts = excluded.counts`;
}

export async function countBacklogs(tx: Tx, bucketAt: Date): Promise<void> {
  await tx.sql`
    insert into backlog_figures (subscription_id, bucket_at, entries)
    select subscription_id, ${bucketAt}, count(*) from outbox group by subscription_id
        on conflict (subscription_id, bucket_at) do update set entries = excluded.entries`;
}

export async function moveProgress(tx: Tx, until: Date): Promise<void> {
  await tx.sql`
    insert into figures_progress (counted_until) values (${until})
        on conflict (id) do update set counted_until = excluded.counted_until`;
}

/** By way of the subscriptions, so that the primary keys serve and no index is needed for the age alone. */
export async function dropFigures(tx: Tx, before: Date): Promise<void> {
  await tx.sql`
    with backlog as (
      delete from backlog_figures f using webhook_subscriptions s
       where f.subscription_id = s.id and f.bucket_at < ${before}
    )
    delete from attempt_figures f using webhook_subscriptions s
     where f.subscription_id = s.id and f.bucket_at < ${before}`;
}

/** Ids never run backwards, so after the clock did they are ahead of their instant; by more than this is lost to figures. */
const ID_AHEAD_MS = 60_000;

function idAfter(until: Date): string {
  return ulidFloor(addMs(until, ID_AHEAD_MS));
}
