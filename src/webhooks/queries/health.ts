import { asc, eq, min, sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { isAttemptOf } from "../../../db/conditions.ts";
import { firstQueued, NO_LIMIT, queueLength, queuesOf, skippedThrough } from "../../../db/log.ts";
import {
  attemptStats,
  backlogStats,
  deliveryAttempts,
  statsProgress,
} from "../../../db/schema/attempts.ts";
import { outbox, outboxSkips } from "../../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import {
  asTable,
  instant,
  nullable,
  onlyRow,
  type Shapes,
  statement,
  table,
  value,
} from "../../../db/statement.ts";
import type { Range } from "../stats.ts";
import {
  BIN,
  binned,
  COUNT_COLUMNS,
  COUNT_PARAMS,
  counts,
  idsWithin,
  STEP,
  type whereCounted,
} from "./stats.ts";

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
const COUNTED = 10_000;

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

// The literals of states, outcomes and reasons are for the partial indexes: the plan for any of them would not use one.

const health = statement({
  name: "stats.health",
  // All figures are of one moment, and each is bounded whatever the planner thinks of the tables.
  params: { ...COUNT_PARAMS, expiredSince: outboxSkips.skippedAt },
  columns: {
    queued: value("integer"),
    oldestRecordedAt: nullable(outbox.recordedAt),
    blockedBy: nullable(outbox.eventId),
    blockedSince: nullable(deliveryAttempts.startedAt),
    blockedAttempts: value("integer"),
    lastStartedAt: nullable(deliveryAttempts.startedAt),
    lastDurationMs: nullable(deliveryAttempts.durationMs),
    expired: value("integer"),
    counts: table(COUNT_COLUMNS),
  },
  text: ({ expiredSince, ...where }) => sql`
    select ${queueLength(COUNTED)}::int as queued, first.recorded_at as "oldestRecordedAt",
           head.event_id as "blockedBy", head.started_at as "blockedSince",
           coalesce(head.attempts, 0)::int as "blockedAttempts",
           success.started_at as "lastStartedAt", success.duration_ms as "lastDurationMs",
           (select coalesce(sum(entries), 0)::int from outbox_skips
             where subscription_id = s.id and reason = 'expired' and skipped_at >= ${expiredSince}) as expired,
           ${asTable(counts(where))} as counts
      from webhook_subscriptions s
      left join lateral (${firstQueued()}) first on true
      left join lateral (
             select o.event_id, a.started_at, o.attempt - 1 as attempts
               from (select event_id, round, attempt from outbox
                      where subscription_id = s.id and shard = s.shard and state = 'waiting' and not is_test
                        and skipped_at is null
                        -- One that was never tried waits for the answer to a test.
                        and attempt > 1 and sequence > ${skippedThrough(sql`s.id`)}
                      order by sequence limit 1) o
               left join lateral (
                      select started_at from delivery_attempts
                       where ${isAttemptOf(sql`delivery_attempts.event_id`, sql`o.event_id`)}
                         and subscription_id || '' = s.id and round = o.round
                       order by id limit 1) a on true) head on true
      left join lateral (
             select started_at, duration_ms from delivery_attempts
              where subscription_id = s.id and outcome = 'delivered'
              order by id desc limit 1) success on true
     where s.id = ${where.id}`,
});

/**
 * How much is queued, and since when; the first entry that waits for a retry, with whatever stands behind it in its lane,
 * when the first attempt of its round failed and how many have; when a 2xx was last received; what expired; and the counts.
 */
export async function healthOf(
  db: DbOrTx,
  where: ReturnType<typeof whereCounted>,
  expiredSince: Date,
) {
  return onlyRow(await db.run(health, { ...where, expiredSince }));
}
