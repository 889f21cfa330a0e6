import { sql, type SQL } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import {
  attemptStats,
  backlogStats,
  deliveryAttempts,
  statsProgress,
} from "../../../db/schema/attempts.ts";
import { instant, rows, statement, value } from "../../../db/statement.ts";
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

/** The bin of an attempt's duration, as src/webhooks/stats.ts spans them. */
export const BIN = sql`
  case when duration_ms < ${EXACT_MS}::int then duration_ms
       else ${EXACT_MS}::int + floor(ln(duration_ms / ${EXACT_MS}::float8) / ln(${GROWTH}::float8))::int end`;

/** The step that an instant falls into. */
export const binned = (stepMs: SQL, at: SQL, origin: SQL): SQL =>
  sql`date_bin(${stepMs} * interval '1 millisecond', ${at}, ${origin})`;

export const STEP = { stepMs: value("double precision"), origin: instant };

/** The ids of attempts that started within a range: they are near their instants, and bound the partitions that are read. */
export function idsWithin({ since, until }: Pick<Range, "since" | "until">) {
  return { firstId: ulidFloor(since), endId: ulidFloor(addMs(until, ID_AHEAD_MS)) };
}

/** Ids never run backwards, so after the clock did they are ahead of their instant; by more than this is lost to stats. */
export const ID_AHEAD_MS = 60_000;

// Attempts per step, outcome and bin: of whole buckets, and of the attempts that no bucket has counted yet. All of it is
// read in ranges of indexes, each behind an offset or a limit, so that no plan reads more, and no plan seems dear.

export const COUNT_PARAMS = {
  id: attemptStats.subscriptionId,
  segments: rows({ since: instant, until: instant, step_s: attemptStats.stepS }),
  slices: rows({ since: instant, first_id: deliveryAttempts.id, end_id: deliveryAttempts.id }),
  ...STEP,
};

export const COUNT_COLUMNS = {
  at: instant,
  outcome: attemptStats.outcome,
  bin: value("integer"),
  count: value("integer"),
};

// A limit that the planner does not know has it walk the index in order, rather than read all of a slice and sort it.

/** More than there ever are, so that the planner does not expect hundreds. */
const PARTS = 16;

/**
 * Of a slice with more attempts than are read the first ones stand for all: for as many as there are by the numbers of
 * their entries, of which each delivery takes the next.
 */
export function counts(given: { readonly [K in keyof typeof COUNT_PARAMS]: SQL }): SQL {
  const { id, segments, slices, stepMs, origin } = given;
  const within = sql`subscription_id = ${id} and id >= s.first_id and id < s.end_id and started_at >= s.since`;
  return sql`
    select ${binned(stepMs, sql`f.bucket_at`, origin)} as at, f.outcome, u.bin::int as bin, sum(u.count)::int as count
      from (select * from ${segments} limit ${PARTS}) g
     cross join lateral (
             select bucket_at, outcome, bins, counts from attempt_stats
              where subscription_id = ${id} and step_s = g.step_s
                and bucket_at >= g.since and bucket_at < g.until offset 0) f
     cross join lateral unnest(f.bins, f.counts) as u(bin, count)
     group by 1, 2, 3
     union all
    select ${binned(stepMs, sql`a.started_at`, origin)}, a.outcome, ${BIN},
           round(sum(case when a.read < ${READ_PER_SLICE} then 1
                          else greatest(1, (l.sequence - a.first + 1)::float8 / (a.last - a.first + 1)) end))::int
      from (select * from ${slices} limit ${PARTS}) s
     cross join lateral (
             select sequence from delivery_attempts where ${within} order by id desc limit 1) l
     cross join lateral (
             select started_at, outcome, duration_ms, count(*) over () as read,
                    min(sequence) over () as first, max(sequence) over () as last
               from (select started_at, outcome, duration_ms, sequence from delivery_attempts
                      where ${within} order by id limit (select ${READ_PER_SLICE}::bigint)) r) a
     group by 1, 2, 3`;
}

const counting = statement({
  name: "stats.counts",
  // Groups by a computed step and bin, over several ranges that are one parameter.
  params: COUNT_PARAMS,
  columns: { ...COUNT_COLUMNS, outcome: value("text") },
  text: counts,
});

/** Where the counts of a range are, if all buckets before `counted` are. */
export function whereCounted(id: string, range: Range, counted: Date, now: Date) {
  const parts = segmentsOf(range, counted);
  const rest = parts.filter(({ levelMs }) => levelMs === null).flatMap((one) => slicesOf(one, now));
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
    stepMs: range.stepMs,
    origin: range.origin,
  };
}

export function countsOf(db: DbOrTx, where: ReturnType<typeof whereCounted>) {
  return db.run(counting, where);
}

/** Up to when attempts are counted in buckets; those of older times may have none. */
export async function countedUntil(db: DbOrTx): Promise<Date | undefined> {
  const [row] = await db.select({ until: statsProgress.countedUntil }).from(statsProgress);
  return row?.until;
}

const highest = statement({
  name: "stats.backlogs",
  // Groups by a computed step.
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

const events = statement({
  name: "stats.events",
  // Reads the first attempts of each of many steps alone.
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
  // The limit is one that the planner does not know, so that it walks the index.
  text: ({ id, slices, limit }) => sql`
    select s.since as at, a.event, count(*)::int as count
      from (select * from ${slices}) s cross join lateral (
             select event, outcome, started_at from delivery_attempts
              where subscription_id = ${id} and id >= s."firstId" and id < s."endId" and started_at >= s.since
              order by id limit (select ${limit}::bigint)) a
     where a.started_at < s.until and a.outcome <> 'interrupted'
     group by 1, 2 order by 1, 2`,
});

/** Attempts of each step by event, of so many that were read. */
export function eventCounts(db: DbOrTx, id: string, range: Range, now: Date) {
  const { steps, limit } = eventSlices(range, now);
  const slices = steps.map((step) => ({ ...step, ...idsWithin(step) }));
  return db.run(events, { id, slices, limit });
}

/** The highest backlog of each step. */
export function backlogs(db: DbOrTx, id: string, range: Range) {
  return db.run(highest, { id, ...range });
}
