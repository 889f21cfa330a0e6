import { asc, eq, min, sql, type SQL } from "drizzle-orm";

import type { Tx } from "../../../db/client.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { NO_LIMIT, queueLength, queuesOf } from "../../../db/log.ts";
import { attemptStats, backlogStats, statsProgress } from "../../../db/schema/stats.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { instant, statement, value, type Shapes } from "../../../db/statement.ts";
import type { Range } from "../stats.ts";
import { BIN, binned, idsWithin, STEP } from "./stats.ts";

// The job that counts attempts into buckets. Its statements stay SQL: they write what they have counted without taking it
// to the process and back, group by `date_bin`, and are written so that each subscription is one range of an index,
// whatever the planner thinks of the tables.

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

const INTO = {
  ...STEP,
  stepS: attemptStats.stepS,
  since: attemptStats.bucketAt,
  until: attemptStats.bucketAt,
};

/** Counts what is in `part` (at, outcome, bin, count) of each subscription `s` into buckets, where they may be already. */
function countingInto<P extends Shapes>(
  { params, ...rest }: { readonly name: string; readonly params: P },
  part: (given: { readonly [K in keyof (P & typeof INTO)]: SQL }) => SQL,
) {
  return statement({
    ...rest,
    params: { ...params, ...INTO },
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

const counting = countingInto(
  {
    name: "stats.countAttempts",
    // Hot; writes what it has counted, without taking it to the process and back.
    params: { firstId: deliveryAttempts.id, endId: deliveryAttempts.id },
  },
  // The offset keeps it one index range per subscription, whatever the planner thinks.
  ({ since, until, firstId, endId }) => sql`
    select started_at as at, outcome, ${BIN} as bin, 1 as count from delivery_attempts
     where subscription_id = s.id and id >= ${firstId} and id < ${endId}
       and started_at >= ${since} and started_at < ${until} offset 0`,
);

/** Counts the attempts of whole buckets anew: once more is no harm. Answers how many rows that made. */
export async function countAttempts(tx: Tx, range: Range): Promise<number> {
  const given = { ...range, ...idsWithin(range), stepS: range.stepMs / 1000 };
  return (await tx.run(counting, given)).count;
}

const summing = countingInto(
  {
    name: "stats.sumBuckets",
    // Hot; writes what it has summed, without taking it to the process and back.
    params: { fromS: attemptStats.stepS },
  },
  ({ since, until, fromS }) => sql`
    select bucket_at as at, outcome, unnest(bins) as bin, unnest(counts) as count from attempt_stats
     where subscription_id = s.id and step_s = ${fromS} and bucket_at >= ${since} and bucket_at < ${until} offset 0`,
);

/** Sums shorter buckets up to longer ones; one that is not over yet is summed again later. */
export async function sumBuckets(
  tx: Tx,
  range: Pick<Range, "since" | "until">,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<void> {
  const levels = { fromS: fromMs / 1000, stepS: toMs / 1000, stepMs: toMs };
  await tx.run(summing, { ...range, ...levels, origin: range.since });
}

/** Entries that are counted one by one, of each subscription. */
export const COUNTED = 10_000;

const backlogs = statement({
  name: "stats.countBacklogs",
  // Built on the SQL of queues, each of which it walks for a bounded while.
  params: { bucketAt: backlogStats.bucketAt, limit: value("integer") },
  text: ({ bucketAt, limit }) => sql`
    with recursive asked as (select id as shard from shards), ${queuesOf(limit)}
    insert into backlog_stats (subscription_id, bucket_at, entries)
    select s.id, ${bucketAt}, s.entries
      from (select s.id, ${queueLength(COUNTED)} as entries
              from queues q join webhook_subscriptions s on s.id = q.subscription_id) s
     where s.entries > 0
        on conflict (subscription_id, bucket_at) do update set entries = excluded.entries`,
});

export async function countBacklogs(tx: Tx, bucketAt: Date): Promise<void> {
  await tx.run(backlogs, { bucketAt, limit: NO_LIMIT });
}

export async function moveProgress(tx: Tx, until: Date): Promise<void> {
  await tx
    .insert(statsProgress)
    .values({ countedUntil: until })
    .onConflictDoUpdate({ target: statsProgress.id, set: { countedUntil: until } });
}

const dropping = statement({
  name: "stats.drop",
  // The builder has no `delete … using`, by which the primary keys serve.
  params: { before: instant },
  text: ({ before }) => sql`
    with backlog as (
      delete from backlog_stats f using webhook_subscriptions s
       where f.subscription_id = s.id and f.bucket_at < ${before}
    )
    delete from attempt_stats f using webhook_subscriptions s
     where f.subscription_id = s.id and f.bucket_at < ${before}`,
});

/** By way of the subscriptions, so that the primary keys serve and no index is needed for the age alone. */
export async function dropStats(tx: Tx, before: Date): Promise<void> {
  await tx.run(dropping, { before });
}
