import { and, asc, eq, lt, min, sql, type SQL } from "drizzle-orm";

import type { Tx } from "../../../db/client.ts";
import { arrayOf } from "../../../db/conditions.ts";
import { NO_LIMIT, queueLength, queuesOf } from "../../../db/log.ts";
import {
  attemptStats,
  backlogStats,
  deliveryAttempts,
  statsProgress,
} from "../../../db/schema/attempts.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { type Shapes, statement } from "../../../db/statement.ts";
import type { Range } from "../stats.ts";
import { BIN, binned, COUNTED_ENTRIES, idsWithin, NO_TEST_ATTEMPT, STEP } from "./stats.ts";

/*
 * Statements of the job that counts attempts into buckets. They are raw SQL, because they write their counts without
 * a round trip to the process, group by `date_bin`, and must read one index range per subscription regardless of the
 * estimates of the planner.
 */

/** Finds the start of the earliest attempt, from which the first run of the job counts. */
export async function firstAttemptAt(tx: Tx): Promise<Date | undefined> {
  const first = tx
    .select({ startedAt: deliveryAttempts.startedAt })
    .from(deliveryAttempts)
    .where(eq(deliveryAttempts.subscriptionId, webhookSubscriptions.id))
    .orderBy(asc(deliveryAttempts.id))
    .limit(1)
    .as("first");
  const [row] = await tx
    .select({ at: min(first.startedAt) })
    .from(webhookSubscriptions)
    .crossJoinLateral(first);
  return row?.at ?? undefined;
}

const BUCKET_PARAMS = {
  ...STEP,
  stepS: attemptStats.stepS,
  since: attemptStats.bucketAt,
  until: attemptStats.bucketAt,
};

/**
 * Makes a statement that counts the rows of `part` (at, outcome, bin, count) of each subscription `s` into buckets,
 * or recounts them.
 */
function countingInto<P extends Shapes>(
  name: string,
  params: P,
  part: (given: { readonly [K in keyof (P & typeof BUCKET_PARAMS)]: SQL }) => SQL,
) {
  return statement({
    name,
    // Raw SQL, because the statement aggregates and writes without a round trip to the process.
    params: { ...params, ...BUCKET_PARAMS },
    text: (given) => sql`
    with counted as (
      select s.id, ${binned(given.stepMs, sql`p.at`, given.origin)} as bucket_at, p.outcome, p.bin, sum(p.count)::int as count
        from webhook_subscriptions s cross join lateral (${part(given)}) p
       where s.state <> 'deleted'
       group by 1, 2, 3, 4
    )
    insert into attempt_stats (subscription_id, step_s, bucket_at, outcome, bins, counts)
    select id, ${given.stepS}, bucket_at, outcome, array_agg(bin), array_agg(count) from counted group by 1, 3, 4
        on conflict (subscription_id, step_s, bucket_at, outcome) do update
       set bins = excluded.bins, counts = excluded.counts`,
  });
}

const attemptsStatement = countingInto(
  "stats.countAttempts",
  { firstId: deliveryAttempts.id, endId: deliveryAttempts.id },
  // The offset makes the planner read one index range per subscription.
  ({ since, until, firstId, endId }) => sql`
    select started_at as at, outcome, ${BIN} as bin, 1 as count from delivery_attempts
     where subscription_id = s.id and id >= ${firstId} and id < ${endId}
       and started_at >= ${since} and started_at < ${until} and ${NO_TEST_ATTEMPT} offset 0`,
);

/**
 * Counts the attempts of whole buckets, without tests. If a bucket is counted again, the new counts replace the old ones. Returns the
 * number of rows written.
 */
export async function countAttempts(tx: Tx, range: Range): Promise<number> {
  const given = { ...range, ...idsWithin(range), stepS: range.stepMs / 1000 };
  return (await tx.run(attemptsStatement, given)).count;
}

const bucketsStatement = countingInto(
  "stats.sumBuckets",
  { fromS: attemptStats.stepS },
  ({ since, until, fromS }) => sql`
    select bucket_at as at, outcome, unnest(bins) as bin, unnest(counts) as count from attempt_stats
     where subscription_id = s.id and step_s = ${fromS} and bucket_at >= ${since} and bucket_at < ${until} offset 0`,
);

/** Sums shorter buckets into longer ones. A longer bucket that has not ended yet is summed again by a later run. */
export async function sumBuckets(tx: Tx, range: Range, fromMs: number): Promise<void> {
  await tx.run(bucketsStatement, { ...range, fromS: fromMs / 1000, stepS: range.stepMs / 1000 });
}

const backlogsStatement = statement({
  name: "stats.countBacklogs",
  // Raw SQL, because the statement is built from the SQL parts of db/log.ts, which walk a bounded part of each queue.
  params: { bucketAt: backlogStats.bucketAt },
  text: ({ bucketAt }) => sql`
    with recursive asked as (select id as shard from shards), ${queuesOf(sql`${NO_LIMIT}`)}
    insert into backlog_stats (subscription_id, bucket_at, entries)
    select s.id, ${bucketAt}, s.entries
      from (select s.id, ${queueLength(COUNTED_ENTRIES)} as entries
              from queues q join webhook_subscriptions s on s.id = q.subscription_id) s
     where s.entries > 0
        on conflict (subscription_id, bucket_at) do update set entries = excluded.entries`,
});

/** Records the length of every queue, as the backlog of the bucket. */
export async function countBacklogs(tx: Tx, bucketAt: Date): Promise<void> {
  await tx.run(backlogsStatement, { bucketAt });
}

export async function moveProgress(tx: Tx, until: Date): Promise<void> {
  await tx
    .insert(statsProgress)
    .values({ countedUntil: until })
    .onConflictDoUpdate({ target: statsProgress.id, set: { countedUntil: until } });
}

/**
 * Deletes stats before an instant. The primary keys begin with the subscription, so the condition lists all
 * subscriptions. No index by age is needed.
 */
export async function dropStats(tx: Tx, before: Date): Promise<void> {
  const ids = arrayOf(tx.select({ id: webhookSubscriptions.id }).from(webhookSubscriptions));
  for (const stats of [backlogStats, attemptStats])
    await tx
      .delete(stats)
      .where(and(sql`${stats.subscriptionId} = any (${ids})`, lt(stats.bucketAt, before)));
}
