import { and, asc, count, desc, eq, gt, gte, sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { markedThrough } from "../../../db/marks.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { outbox, settledEntries } from "../../../db/schema/outbox.ts";
import { attemptStats, backlogStats, statsProgress } from "../../../db/schema/stats.ts";
import { instant, nullable, rows, statement, value } from "../../../db/statement.ts";
import { addMs } from "../../lib/clock.ts";
import type { CountedAttempts, Range, Segment } from "../stats.ts";
import type { Subscription } from "../model.ts";
import { BIN, binned, idsWithin, STEP, WITHIN } from "./buckets.ts";

// Statements that count stay SQL: they group by `date_bin`, take arrays apart, and are written so that each subscription
// is one range of an index, whatever the planner thinks of the tables (`bun run bench attempts`).

type Key = Pick<Subscription, "id" | "shard">;

interface QueueCounts {
  readonly queued: number;
  readonly oldestRecordedAt: Date | null;
}

const queue = statement({
  name: "stats.queue",
  reason: "Both counts are of one moment.",
  params: { id: outbox.subscriptionId, shard: outbox.shard, limit: value("bigint") },
  columns: { queued: value("integer"), oldestRecordedAt: nullable(outbox.recordedAt) },
  text: ({ id, shard, limit }) => sql`
    with first as materialized (
      select sequence, recorded_at from outbox where shard = ${shard} and subscription_id = ${id}
         and sequence > ${markedThrough(id)}
       order by sequence limit 1
    ), last as materialized (
      select sequence from outbox where shard = ${shard} and subscription_id = ${id} order by sequence desc limit 1
    ), counted as (
      -- Between two numbers, so that no plan can read more.
      select count(*) as queued from outbox
       where shard = ${shard} and subscription_id = ${id}
         and sequence between (select sequence from first) and (select sequence + ${limit}::bigint - 1 from first)
    )
    select (queued + greatest(0, coalesce((select sequence from last) - (select sequence from first) - ${limit}::bigint + 1,
                                          0)))::int as queued,
           (select recorded_at from first) as "oldestRecordedAt"
      from counted`,
});

/** How much is queued: within the first `limit` numbers counted, behind them all of the numbers; and since when. */
export async function queueOf(db: DbOrTx, { id, shard }: Key, limit: number): Promise<QueueCounts> {
  const [row] = await db.run(queue, { id, shard, limit });
  return row ?? { queued: 0, oldestRecordedAt: null };
}

interface Blocking {
  readonly eventId: string;
  /** When its first attempt of this round failed. */
  readonly since: Date | null;
}

/** The first entry that waits for a retry, and with it whatever stands behind it in its lane. */
export async function blockingEntry(db: DbOrTx, { id, shard }: Key): Promise<Blocking | undefined> {
  const head = db
    .select({ eventId: outbox.eventId, round: outbox.round })
    .from(outbox)
    .where(
      and(
        eq(outbox.subscriptionId, id),
        eq(outbox.shard, shard),
        // Literals: the plan for all parameters would not use the partial index of what waits.
        sql`${outbox.state} = 'waiting' and not ${outbox.isTest}`,
        gt(outbox.sequence, markedThrough(sql`${id}`)),
      ),
    )
    .orderBy(asc(outbox.sequence))
    .limit(1)
    .as("head");
  const first = db
    .select({ startedAt: deliveryAttempts.startedAt })
    .from(deliveryAttempts)
    .where(
      and(
        eq(deliveryAttempts.eventId, head.eventId),
        eq(deliveryAttempts.subscriptionId, id),
        eq(deliveryAttempts.round, head.round),
      ),
    )
    .orderBy(asc(deliveryAttempts.id))
    .limit(1)
    .as("first");
  const [row] = await db
    .select({ eventId: head.eventId, since: first.startedAt })
    .from(head)
    .leftJoinLateral(first, sql`true`);
  return row;
}

/** When a 2xx was last received. */
export async function lastSuccessAt(db: DbOrTx, subscriptionId: string): Promise<Date | undefined> {
  const { startedAt, durationMs } = deliveryAttempts;
  const [row] = await db
    .select({ startedAt, durationMs })
    .from(deliveryAttempts)
    .where(
      and(
        eq(deliveryAttempts.subscriptionId, subscriptionId),
        // A literal: the plan for any outcome would not know that nearly all are.
        sql`${deliveryAttempts.outcome} = 'delivered'`,
      ),
    )
    .orderBy(desc(deliveryAttempts.id))
    .limit(1);
  return row && addMs(row.startedAt, row.durationMs);
}

/** Events that were held for longer than the retention time. */
export async function expiredSince(
  db: DbOrTx,
  subscriptionId: string,
  since: Date,
): Promise<number> {
  const [row] = await db
    .select({ expired: count() })
    .from(settledEntries)
    .where(
      and(
        eq(settledEntries.subscriptionId, subscriptionId),
        // A literal, for the partial index of what expired.
        sql`${settledEntries.reason} = 'expired'`,
        gte(settledEntries.settledAt, since),
      ),
    );
  return row?.expired ?? 0;
}

/** Up to when attempts are counted in buckets; those of older times may have none. */
export async function countedUntil(db: DbOrTx): Promise<Date | undefined> {
  const [row] = await db.select({ until: statsProgress.countedUntil }).from(statsProgress);
  return row?.until;
}

export interface PointCount extends CountedAttempts {
  readonly at: Date;
}

const POINT = { at: attemptStats.bucketAt, bin: value("integer"), count: value("integer") };

const bucketCounts = statement({
  name: "stats.countsOfBuckets",
  reason: "Sums what it takes out of arrays, over several ranges that are one parameter.",
  params: {
    id: attemptStats.subscriptionId,
    segments: rows({ since: instant, until: instant, step_s: attemptStats.stepS }),
    ...STEP,
  },
  columns: { ...POINT, outcome: attemptStats.outcome, bin: value("smallint") },
  text: ({ id, segments, stepMs, origin }) => sql`
    select ${binned(stepMs, sql`f.bucket_at`, origin)} as at, f.outcome, u.bin, sum(u.count)::int as count
      from ${segments}
     cross join lateral (
             select bucket_at, outcome, bins, counts from attempt_stats
              where subscription_id = ${id} and step_s = segments.step_s
                and bucket_at >= segments.since and bucket_at < segments.until offset 0) f
     cross join lateral unnest(f.bins, f.counts) as u(bin, count)
     group by 1, 2, 3`,
});

/** Attempts per step, outcome and bin, from whole buckets. */
export function countsOfBuckets(
  db: DbOrTx,
  id: string,
  parts: readonly Segment[],
  { stepMs, origin }: Pick<Range, "stepMs" | "origin">,
): Promise<PointCount[]> {
  const segments = parts.map(({ since, until, levelMs }) => ({
    since,
    until,
    step_s: (levelMs ?? 0) / 1000,
  }));
  return db.run(bucketCounts, { id, segments, stepMs, origin });
}

const attemptCounts = statement({
  name: "stats.countsOfAttempts",
  reason: "Groups by a computed step and bin.",
  params: { id: deliveryAttempts.subscriptionId, ...WITHIN, ...STEP },
  columns: { ...POINT, outcome: deliveryAttempts.outcome },
  text: ({ id, since, until, firstId, endId, stepMs, origin }) => sql`
    select ${binned(stepMs, sql`started_at`, origin)} as at, outcome, ${BIN} as bin, count(*)::int as count
      from delivery_attempts
     where subscription_id = ${id} and id >= ${firstId} and id < ${endId}
       and started_at >= ${since} and started_at < ${until}
     group by 1, 2, 3`,
});

/** The same from the attempts themselves. */
export function countsOfAttempts(db: DbOrTx, id: string, range: Range): Promise<PointCount[]> {
  return db.run(attemptCounts, { id, ...range, ...idsWithin(range) });
}

interface Backlog {
  readonly at: Date;
  readonly entries: number;
}

const highest = statement({
  name: "stats.backlogs",
  reason: "Groups by a computed step.",
  params: {
    id: backlogStats.subscriptionId,
    since: backlogStats.bucketAt,
    until: backlogStats.bucketAt,
    ...STEP,
  },
  columns: { at: backlogStats.bucketAt, entries: backlogStats.entries },
  text: ({ id, since, until, stepMs, origin }) => sql`
    select ${binned(stepMs, sql`bucket_at`, origin)} as at, max(entries) as entries
      from backlog_stats
     where subscription_id = ${id} and bucket_at >= ${since} and bucket_at < ${until}
     group by 1`,
});

/** The highest backlog of each step. */
export function backlogs(db: DbOrTx, id: string, range: Range): Promise<Backlog[]> {
  return db.run(highest, { id, ...range });
}
