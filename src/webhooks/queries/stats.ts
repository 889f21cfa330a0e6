import { sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { backlogStats, statsProgress } from "../../../db/schema/stats.ts";
import { statement } from "../../../db/statement.ts";
import type { Range } from "../stats.ts";
import { binned, STEP } from "./buckets.ts";

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

/** The highest backlog of each step. */
export function backlogs(db: DbOrTx, id: string, range: Range): Promise<Backlog[]> {
  return db.run(highest, { id, ...range });
}
