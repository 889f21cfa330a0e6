import { and, eq, gte, lt, sql, type SQL } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { DbOrTx } from "../../../db/client.ts";
import { isAttemptOf } from "../../../db/conditions.ts";
import { batchLength, firstQueued, queueLength, skippedThrough } from "../../../db/log.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import {
  attemptStats,
  backlogStats,
  deliveryAttempts,
  statsProgress,
} from "../../../db/schema/attempts.ts";
import { dispatchers } from "../../../db/schema/dispatchers.ts";
import { outbox, outboxSkips } from "../../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import {
  asTable,
  instant,
  nullable,
  onlyRow,
  rows,
  statement,
  table,
  value,
  type ValuesOf,
} from "../../../db/statement.ts";
import { addMs } from "../../lib/clock.ts";
import {
  EXACT_MS,
  eventSlices,
  GROWTH,
  READ_PER_SLICE,
  segmentsOf,
  slicesOf,
  type Range,
} from "../stats.ts";
import { ID_AHEAD_MS } from "./attempts.ts";

/** Computes the bin of an attempt's duration; src/webhooks/stats.ts defines the bins. */
export const BIN = sql`
  case when duration_ms < ${EXACT_MS}::int then duration_ms
       else ${EXACT_MS}::int + floor(ln(duration_ms / ${EXACT_MS}::float8) / ln(${GROWTH}::float8))::int end`;

/** Computes the start of the step that an instant falls into. */
export const binned = (stepMs: SQL, at: SQL, origin: SQL): SQL =>
  sql`date_bin(${stepMs} * interval '1 millisecond', ${at}, ${origin})`;

export const STEP = { stepMs: value("double precision"), origin: instant };

/** Bounds the ids of attempts that started within a range. The bounds also limit which partitions are read. */
export function idsWithin({ since, until }: Pick<Range, "since" | "until">) {
  return { firstId: ulidFloor(since), endId: ulidFloor(addMs(until, ID_AHEAD_MS)) };
}

/**
 * Excludes the attempts of tests, which say nothing about the partner's events (contract 6.12). Only a test, or an
 * attempt of release 0.1.0, has no payload format; its stored request tells which.
 */
export const NO_TEST_ATTEMPT = sql`(payload_format is not null or request_headers ->> 'X-SVC-Test' is null)`;

/** The most queued entries of a subscription that are counted exactly, and the most events that wait for a batch. */
export const COUNTED_ENTRIES = 10_000;

/*
 * Counts of attempts by step, outcome and bin come from two sources: whole buckets (`segments`), and attempts that no
 * bucket has counted yet (`slices`). Each part is read by a subquery with `offset` or `limit`. So the planner must read
 * one index range per part and cannot choose a wider scan.
 */

const COUNT_PARAMS = {
  id: attemptStats.subscriptionId,
  segments: rows({ since: instant, until: instant, step_s: attemptStats.stepS }),
  slices: rows({ since: instant, first_id: deliveryAttempts.id, end_id: deliveryAttempts.id }),
  ...STEP,
};

const COUNT_COLUMNS = {
  at: instant,
  outcome: attemptStats.outcome,
  bin: value("integer"),
  count: value("integer"),
};

/** A limit above any number of segments or slices. It keeps the planner from assuming hundreds of them. */
const MAX_PARTS = 16;

/**
 * Selects counts by step, outcome and bin. If a slice has more attempts than `READ_PER_SLICE`, only the first ones are
 * read, as a sample. Their counts are multiplied by the ratio of two spans of sequence numbers: that of the whole slice
 * and that of the sample. The spans are proportional to the attempts, because each delivery takes the next number.
 *
 * The limit of the sample is a subquery, because the planner then walks the index in order instead of sorting the
 * slice.
 */
function counts(
  given: { readonly [K in keyof typeof COUNT_PARAMS]: SQL },
  stepOf = (at: SQL) => binned(given.stepMs, at, given.origin),
): SQL {
  const { id, segments, slices } = given;
  const within = sql`subscription_id = ${id} and id >= s.first_id and id < s.end_id and started_at >= s.since
                       and ${NO_TEST_ATTEMPT}`;
  return sql`
    select ${stepOf(sql`f.bucket_at`)} as at, f.outcome, u.bin::int as bin, sum(u.count)::int as count
      from (select * from ${segments} limit ${MAX_PARTS}) g
     cross join lateral (
             select bucket_at, outcome, bins, counts from attempt_stats
              where subscription_id = ${id} and step_s = g.step_s
                and bucket_at >= g.since and bucket_at < g.until offset 0) f
     cross join lateral unnest(f.bins, f.counts) as u(bin, count)
     group by 1, 2, 3
     union all
    select ${stepOf(sql`a.started_at`)}, a.outcome, ${BIN},
           round(sum(case when a.read < ${READ_PER_SLICE} then 1
                          else greatest(1, (l.sequence - a.first + 1)::float8 / (a.last - a.first + 1)) end))::int
      from (select * from ${slices} limit ${MAX_PARTS}) s
     cross join lateral (
             select sequence from delivery_attempts where ${within} order by id desc limit 1) l
     cross join lateral (
             select started_at, outcome, duration_ms, count(*) over () as read,
                    min(sequence) over () as first, max(sequence) over () as last
               from (select started_at, outcome, duration_ms, sequence from delivery_attempts
                      where ${within} order by id limit (select ${READ_PER_SLICE}::bigint)) r) a
     group by 1, 2, 3`;
}

const countsStatement = statement({
  name: "stats.counts",
  // Raw SQL, because the statement groups by a computed step and bin, over ranges that are one parameter.
  params: COUNT_PARAMS,
  columns: { ...COUNT_COLUMNS, outcome: value("text") },
  text: (given) => counts(given),
});

/**
 * Derives the segments and slices that contain the counts of a range, if buckets are complete up to `counted`. A part
 * of the range before the origin of its steps is counted in one step; no segment crosses the origin.
 */
export function countRange(id: string, range: Range, counted: Date, now: Date) {
  const { stepMs, origin } = range;
  const parts = [
    ...segmentsOf({ ...range, until: origin }, counted),
    ...segmentsOf({ ...range, since: origin }, counted),
  ];
  // The parts without buckets are adjacent and the last ones, so they are divided into slices together.
  const open = parts.filter(({ levelMs }) => levelMs === null);
  const [first, last] = [open[0], open.at(-1)];
  const rest = first && last ? slicesOf({ since: first.since, until: last.until }, now) : [];
  return {
    id,
    segments: parts.flatMap(({ levelMs, since, until }) =>
      levelMs === null ? [] : [{ since, until, step_s: levelMs / 1000 }],
    ),
    slices: rest.map(({ since, until }, i) => ({
      since: rest[0]?.since ?? since,
      first_id: ulidFloor(since),
      end_id: ulidFloor(i === rest.length - 1 ? addMs(until, ID_AHEAD_MS) : until),
    })),
    stepMs,
    origin,
  };
}

export function readCounts(db: DbOrTx, where: ReturnType<typeof countRange>) {
  return db.run(countsStatement, where);
}

/** Reads the instant up to which attempts are counted into buckets. */
export async function countedUntil(db: DbOrTx): Promise<Date | undefined> {
  const [row] = await db.select({ until: statsProgress.countedUntil }).from(statsProgress);
  return row?.until;
}

const eventsStatement = statement({
  name: "stats.events",
  // Raw SQL, because the statement reads the first attempts of each of many steps by one index probe per step.
  params: {
    id: deliveryAttempts.subscriptionId,
    slices: rows({
      since: instant,
      until: instant,
      firstId: deliveryAttempts.id,
      endId: deliveryAttempts.id,
    }),
    limit: value("bigint"),
  },
  columns: { at: instant, event: deliveryAttempts.event, count: value("integer") },
  // The limit is a subquery, because the planner then walks the index in order instead of sorting.
  text: ({ id, slices, limit }) => sql`
    select s.since as at, a.event, count(*)::int as count
      from (select * from ${slices}) s cross join lateral (
             select event, outcome, started_at from delivery_attempts
              where subscription_id = ${id} and id >= s."firstId" and id < s."endId" and started_at >= s.since
                and ${NO_TEST_ATTEMPT}
              order by id limit (select ${limit}::bigint)) a
     where a.started_at < s.until and a.outcome <> 'interrupted'
     group by 1, 2 order by 1, 2`,
});

/** Counts the attempts of each step by event, in a sample of the first attempts of the step. */
export function eventCounts(db: DbOrTx, id: string, range: Range, now: Date) {
  const { steps, limit } = eventSlices(range, now);
  const slices = steps.map((step) => ({ ...step, ...idsWithin(step) }));
  return db.run(eventsStatement, { id, slices, limit });
}

/** Reads the largest backlog, in deliveries, of each interval (`stepMs`). */
export function backlogs(db: DbOrTx, id: string, { since, until, stepMs, origin }: Range) {
  const { subscriptionId, bucketAt, entries } = backlogStats;
  const at = binned(sql`${stepMs}`, sql`${bucketAt}`, sql`${origin}`);
  return db
    .select({ at: at.mapWith(bucketAt), entries: sql`max(${entries})`.mapWith(entries) })
    .from(backlogStats)
    .where(and(eq(subscriptionId, id), gte(bucketAt, since), lt(bucketAt, until)))
    .groupBy(sql`1`);
}

// States, outcomes and reasons are literals in the following statement, because the planner uses a partial index only
// if the statement repeats its condition.

/** The first entry of the subscription `s` that waits for a retry, with the start of its first attempt. */
const BLOCKING_ENTRY = sql`
             select o.event_id, a.started_at, o.attempt - 1 as attempts, o.due_at
               from (select event_id, round, attempt, due_at from outbox
                      where subscription_id = s.id and shard = s.shard and state = 'waiting' and not is_test
                        and skipped_at is null
                        and sequence > ${skippedThrough(sql`s.id`)}
                      order by sequence limit 1) o
               left join lateral (
                      select started_at from delivery_attempts
                       where ${isAttemptOf(sql`delivery_attempts.event_id`, sql`o.event_id`)}
                         and subscription_id || '' = s.id and round = o.round
                       order by id limit 1) a on true`;

const healthStatement = statement({
  name: "stats.health",
  // Raw SQL, because the statement reads all figures at one moment, each from a bounded part of an index, independent
  // of the estimates of the planner.
  params: { ...COUNT_PARAMS, expiredSince: outboxSkips.skippedAt },
  columns: {
    queued: value("integer"),
    waitingForBatch: value("integer"),
    oldestRecordedAt: nullable(outbox.recordedAt),
    blockedBy: nullable(outbox.eventId),
    blockedSince: nullable(deliveryAttempts.startedAt),
    blockedAttempts: value("integer"),
    lastStartedAt: nullable(deliveryAttempts.startedAt),
    lastDurationMs: nullable(deliveryAttempts.durationMs),
    expired: value("integer"),
    outageSince: dispatchers.outageSince,
    quarantined: dispatchers.quarantined,
    counts: table(COUNT_COLUMNS),
  },
  text: ({ expiredSince, ...where }) => sql`
    select ${queueLength(COUNTED_ENTRIES)}::int as queued,
           ${batchLength(COUNTED_ENTRIES)}::int as "waitingForBatch", first.recorded_at as "oldestRecordedAt",
           head.event_id as "blockedBy", head.started_at as "blockedSince",
           coalesce(head.attempts, 0)::int as "blockedAttempts",
           success.started_at as "lastStartedAt", success.duration_ms as "lastDurationMs",
           (select coalesce(sum(entries), 0)::int from outbox_skips
             where subscription_id = s.id and reason = 'expired' and skipped_at >= ${expiredSince}) as expired,
           (select d.outage_since from shards h join dispatchers d on d.id = h.dispatcher_id
             where h.id = s.shard) as "outageSince",
           (select coalesce(jsonb_agg(q), '[]')
              from shards h join dispatchers d on d.id = h.dispatcher_id
             cross join lateral jsonb_array_elements(d.quarantined) q
             where h.id = s.shard and q ->> 'subscription_id' = s.id) as quarantined,
           ${asTable(counts(where, (at) => sql`greatest(${binned(where.stepMs, at, where.origin)}, ${where.origin}::timestamptz - interval '1 second')`))} as counts
      from webhook_subscriptions s
      left join lateral (${firstQueued()}) first on true
      left join lateral (${BLOCKING_ENTRY}) head on true
      left join lateral (
             select started_at, duration_ms from delivery_attempts
              where subscription_id = s.id and outcome = 'delivered'
              order by id desc limit 1) success on true
     where s.id = ${where.id}`,
});

/**
 * Reads the figures of a subscription's health: the length and age of its queue, the number of events that wait for a
 * batch, the first entry that waits for a retry, the last 2xx, the number of expired entries, and the counts of
 * attempts by step. All attempts before the origin of the steps are counted in one step.
 */
export async function healthOf(db: DbOrTx, given: ValuesOf<typeof healthStatement.params>) {
  return onlyRow(await db.run(healthStatement, given));
}

/**
 * Reads the first event that waits for a retry: the start of its first attempt, the number of its attempts, and the
 * time of the next one.
 */
export async function blockingEntry(db: DbOrTx, id: string) {
  const s = alias(webhookSubscriptions, "s");
  const [row] = await db
    .select({
      startedAt: sql`head.started_at`.mapWith(deliveryAttempts.startedAt),
      attempts: sql`head.attempts`.mapWith(Number),
      dueAt: sql`head.due_at`.mapWith(outbox.dueAt),
    })
    .from(s)
    .crossJoinLateral(sql`(${BLOCKING_ENTRY}) head`)
    .where(eq(s.id, id));
  return row;
}
