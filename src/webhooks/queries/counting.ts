import { asc, eq, min, sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { NO_LIMIT, queueLength, queuesOf } from "../../../db/queue.ts";
import { attemptStats, backlogStats, statsProgress } from "../../../db/schema/stats.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { serverTime } from "../../../db/server-time.ts";
import { instant, statement, value } from "../../../db/statement.ts";
import type { Range } from "../stats.ts";
import { BIN, binned, idsWithin, STEP, WITHIN } from "./buckets.ts";

// The job that counts attempts into buckets. Its statements stay SQL: they write what they have counted without taking it
// to the process and back, group by `date_bin`, and are written so that each subscription is one range of an index,
// whatever the planner thinks of the tables.

const holding = statement({
  name: "stats.holdCounting",
  reason: "Selects from no table.",
  params: {},
  columns: { held: value("boolean") },
  text: () => sql`select pg_try_advisory_xact_lock(hashtext('reviewrelay:stats')) as held`,
});

/** One process counts at a time; false if another one does. */
export async function holdCounting(tx: Tx): Promise<boolean> {
  const [row] = await tx.run(holding, {});
  return row?.held ?? false;
}

/** Which buckets are over, and which are too old to keep: Postgres' time, not that of the machine that asks. */
export function countingTime(db: DbOrTx): Promise<Date> {
  return serverTime(db);
}

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

const intoBuckets = sql`
        on conflict (subscription_id, step_s, bucket_at, outcome) do update
       set bins = excluded.bins, counts = excluded.counts`;

const counting = statement({
  name: "stats.countAttempts",
  reason: "Hot; writes what it has counted, without taking it to the process and back.",
  params: { ...WITHIN, ...STEP, stepS: attemptStats.stepS },
  columns: {},
  text: ({ since, until, firstId, endId, stepMs, origin, stepS }) => sql`
    with counted as (
      select s.id, ${binned(stepMs, sql`a.started_at`, origin)} as bucket_at,
             a.outcome, ${BIN} as bin, count(*)::int as count
        from webhook_subscriptions s cross join lateral (
               select started_at, outcome, duration_ms from delivery_attempts
                where subscription_id = s.id and id >= ${firstId} and id < ${endId}
                  and started_at >= ${since} and started_at < ${until}) a
       where s.state <> 'deleted'
       group by 1, 2, 3, 4
    )
    insert into attempt_stats (subscription_id, step_s, bucket_at, outcome, bins, counts)
    select id, ${stepS}, bucket_at, outcome, array_agg(bin), array_agg(count) from counted group by 1, 3, 4
    ${intoBuckets}`,
});

/** Counts the attempts of whole buckets anew: once more is no harm. */
export async function countAttempts(tx: Tx, range: Range): Promise<void> {
  await tx.run(counting, { ...range, ...idsWithin(range), stepS: range.stepMs / 1000 });
}

const summing = statement({
  name: "stats.sumBuckets",
  reason: "Hot; writes what it has summed, without taking it to the process and back.",
  params: {
    since: attemptStats.bucketAt,
    until: attemptStats.bucketAt,
    fromS: attemptStats.stepS,
    toS: attemptStats.stepS,
    toMs: value("double precision"),
  },
  columns: {},
  text: ({ since, until, fromS, toS, toMs }) => sql`
    with summed as (
      select s.id, ${binned(toMs, sql`f.bucket_at`, sql`'epoch'`)} as bucket_at, f.outcome, u.bin,
             sum(u.count)::int as count
        from webhook_subscriptions s cross join lateral (
               select bucket_at, outcome, bins, counts from attempt_stats
                where subscription_id = s.id and step_s = ${fromS}
                  and bucket_at >= ${since} and bucket_at < ${until}) f
       cross join lateral unnest(f.bins, f.counts) as u(bin, count)
       where s.state <> 'deleted'
       group by 1, 2, 3, 4
    )
    insert into attempt_stats (subscription_id, step_s, bucket_at, outcome, bins, counts)
    select id, ${toS}, bucket_at, outcome, array_agg(bin), array_agg(count) from summed group by 1, 3, 4
    ${intoBuckets}`,
});

/** Sums shorter buckets up to longer ones; one that is not over yet is summed again later. */
export async function sumBuckets(
  tx: Tx,
  { since, until }: Pick<Range, "since" | "until">,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<void> {
  await tx.run(summing, { since, until, fromS: fromMs / 1000, toS: toMs / 1000, toMs });
}

/** Entries that are counted one by one, of each subscription. */
const COUNTED = 10_000;

const backlogs = statement({
  name: "stats.countBacklogs",
  reason: "Built on the SQL of queues, each of which it walks for a bounded while.",
  params: { bucketAt: backlogStats.bucketAt, limit: value("integer") },
  columns: {},
  text: ({ bucketAt, limit }) => sql`
    with recursive asked as (select id as shard from shards), ${queuesOf(limit)}
    insert into backlog_stats (subscription_id, bucket_at, entries)
    select s.id, ${bucketAt}, s.entries
      from (select s.id, ${queueLength(COUNTED)} as entries
              from queues q cross join lateral (
                     select id, shard, number from webhook_subscriptions where id = q.subscription_id) s) s
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
  reason: "The builder has no `delete … using`, by which the primary keys serve.",
  params: { before: instant },
  columns: {},
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
