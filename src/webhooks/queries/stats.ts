import { sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { backlogStats, statsProgress } from "../../../db/schema/stats.ts";
import { instant, rows, statement, value } from "../../../db/statement.ts";
import { eventSlices, type Range } from "../stats.ts";
import { binned, idsWithin, STEP } from "./buckets.ts";

/** Up to when attempts are counted in buckets; those of older times may have none. */
export async function countedUntil(db: DbOrTx): Promise<Date | undefined> {
  const [row] = await db.select({ until: statsProgress.countedUntil }).from(statsProgress);
  return row?.until;
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

const events = statement({
  name: "stats.events",
  reason: "Reads the first attempts of each of many steps alone.",
  params: {
    id: deliveryAttempts.subscriptionId,
    slices: rows({
      since: instant,
      until: instant,
      first_id: deliveryAttempts.id,
      end_id: deliveryAttempts.id,
    }),
    limit: value("bigint"),
  },
  columns: { at: instant, event: deliveryAttempts.event, count: value("integer") },
  text: ({ id, slices, limit }) => sql`
    select s.since as at, a.event, count(*)::int as count
      from (select * from ${slices}) s cross join lateral (
             select event, outcome, started_at from delivery_attempts
              where subscription_id = ${id} and id >= s.first_id and id < s.end_id and started_at >= s.since
              order by id limit ${limit}) a
     where a.started_at < s.until and a.outcome <> 'interrupted'
     group by 1, 2 order by 1, 2`,
});

/** Attempts of each step by event, of so many that were read. */
export function eventCounts(db: DbOrTx, id: string, range: Range, now: Date) {
  const { steps, limit } = eventSlices(range, now);
  const slices = steps.map(({ since, until }) => {
    const { firstId, endId } = idsWithin({ since, until });
    return { since, until, first_id: firstId, end_id: endId };
  });
  return db.run(events, { id, slices, limit });
}

/** The highest backlog of each step. */
export function backlogs(db: DbOrTx, id: string, range: Range): Promise<Backlog[]> {
  return db.run(highest, { id, ...range });
}
