import { sql, type SQL } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { attemptStats } from "../../../db/schema/stats.ts";
import { instant, rows, statement, value } from "../../../db/statement.ts";
import { addMs } from "../../lib/clock.ts";
import {
  READ_PER_SLICE,
  segmentsOf,
  slicesOf,
  type CountedAttempts,
  type Range,
} from "../stats.ts";
import { BIN, binned, ID_AHEAD_MS, STEP } from "./buckets.ts";

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
                and bucket_at >= g.since and bucket_at < g.until) f
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
                      where ${within} order by id limit ${READ_PER_SLICE}) r) a
     group by 1, 2, 3`;
}

const counting = statement({
  name: "stats.counts",
  reason: "Groups by a computed step and bin, over several ranges that are one parameter.",
  params: COUNT_PARAMS,
  columns: { ...COUNT_COLUMNS, outcome: value("text") },
  text: counts,
});

export interface PointCount extends CountedAttempts {
  readonly at: Date;
}

/** Where the counts of a range are, if all buckets before `countedUntil` are counted. */
export function whereCounted(id: string, range: Range, countedUntil: Date, now: Date) {
  const parts = segmentsOf(range, countedUntil);
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

export function countsOf(
  db: DbOrTx,
  where: ReturnType<typeof whereCounted>,
): Promise<PointCount[]> {
  return db.run(counting, where);
}
