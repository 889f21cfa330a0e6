// One raw statement (db/statement.ts): the walk over the heads of the outbox, which recurses.

import { and, asc, desc, eq, gt, isNull, not, sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { firstQueued, NO_LIMIT, queueLength, queuesOf, skippedThrough } from "../../../db/log.ts";
import { mails } from "../../../db/schema/alerts.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { companies } from "../../../db/schema/companies.ts";
import {
  dispatchers as dispatcherTable,
  shards as shardTable,
} from "../../../db/schema/dispatchers.ts";
import { outbox } from "../../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { neverNull, nullable, statement, value } from "../../../db/statement.ts";
import {
  type Backlog,
  BACKLOG_LIMITS,
  type BlockedRow,
  type DisabledRow,
  type DispatcherRow,
  type HeadRow,
  LOOK_LIMITS,
  type QueueCounts,
  type ShardRow,
} from "../dispatcher-model.ts";

const { subscriptions, rows, counted } = LOOK_LIMITS;

// Literals, for the partial indexes: a plan for any state would use none of them.
const isWaiting = sql`${outbox.state} = 'waiting'`;
const isDisabled = sql`${webhookSubscriptions.state} = 'disabled'`;
const isQueued = sql`${mails.state} = 'queued'`;

export function dispatchers(db: DbOrTx): Promise<DispatcherRow[]> {
  const { id, startedAt, renewedAt, memoryMb } = dispatcherTable;
  const silence = sql`greatest(0, extract(epoch from now() - ${renewedAt}) * 1000)::int`;
  return db
    .select({ id, startedAt, renewedAt, memoryMb, silentMs: silence.mapWith(Number) })
    .from(dispatcherTable)
    .orderBy(id)
    .limit(rows);
}

export function shards(db: DbOrTx): Promise<ShardRow[]> {
  return db.select().from(shardTable).orderBy(shardTable.id);
}

const headsOfOutbox = statement({
  name: "headsOfOutbox",
  // The builder has no recursion.
  params: { limit: value("integer") },
  columns: {
    shard: webhookSubscriptions.shard,
    subscriptionId: webhookSubscriptions.id,
    isActive: value("boolean"),
    isWaiting: value("boolean"),
    recordedAt: outbox.recordedAt,
  },
  text: ({ limit }) => sql`
    with recursive asked as (select id as shard from shards), ${queuesOf(limit)}
    select s.shard, s.id as "subscriptionId", s.state = 'active' as "isActive", e.state = 'waiting' as "isWaiting",
           e.recorded_at as "recordedAt"
      from (select subscription_id from queues limit ${limit}::integer) q
      join webhook_subscriptions s on s.id = q.subscription_id
     cross join lateral (${firstQueued()}) e`,
});

/** The heads of the subscriptions that have unsettled entries: one index probe each, however long their queues are. */
export function heads(db: DbOrTx): Promise<HeadRow[]> {
  return db.run(headsOfOutbox, { limit: subscriptions + 1 });
}

/** Entries that wait for a retry and block what is behind them; a test event blocks nothing. */
export async function blockedHeads(db: DbOrTx): Promise<BlockedRow[]> {
  const { subscriptionId, shard, sequence, eventId, event, attempt, dueAt, recordedAt } = outbox;
  const { id, partnerId } = webhookSubscriptions;
  const isActive = eq(webhookSubscriptions.state, "active");
  const entry = { subscriptionId, shard, sequence, eventId, event, attempt, dueAt, recordedAt };
  const found = await db
    .select({ ...entry, partnerId })
    .from(outbox)
    .innerJoin(webhookSubscriptions, eq(id, subscriptionId))
    .where(
      and(
        isWaiting,
        not(outbox.isTest),
        isNull(outbox.skippedAt),
        isActive,
        gt(sequence, skippedThrough(sql`${id}`)),
      ),
    )
    .orderBy(subscriptionId, sequence)
    .limit(rows + 1);
  return found.map((one) => ({ ...one, dueAt: neverNull(one.dueAt) }));
}

/** Those disabled last come first. */
export async function disabledSubscriptions(db: DbOrTx): Promise<DisabledRow[]> {
  const { id, partnerId, label, disabledAt, disabledReason } = webhookSubscriptions;
  const { consecutiveFailureCount: failures } = webhookSubscriptions;
  const found = await db
    .select({ id, partnerId, label, disabledAt, reason: disabledReason, failures })
    .from(webhookSubscriptions)
    .where(isDisabled)
    .orderBy(desc(disabledAt), asc(id))
    .limit(rows + 1);
  return found.map((one) => ({
    ...one,
    disabledAt: neverNull(one.disabledAt),
    reason: neverNull(one.reason),
  }));
}

const countOfQueues = statement({
  name: "countOfQueues",
  // The builder has no recursion.
  params: { limit: value("integer") },
  columns: { entries: value("bigint") },
  text: ({ limit }) => sql`
    with recursive asked as (select id as shard from shards), ${queuesOf(limit)}
    select coalesce(sum(${queueLength(counted)}), 0)::bigint as entries
      from queues q cross join lateral (
             select id, shard, number from webhook_subscriptions where id = q.subscription_id offset 0) s`,
});

export async function queueCounts(db: DbOrTx): Promise<QueueCounts> {
  const someMails = db
    .select({ id: mails.id })
    .from(mails)
    .where(isQueued)
    .limit(counted + 1);
  const [[found], queued, [next]] = await Promise.all([
    db.run(countOfQueues, { limit: NO_LIMIT }),
    db.$count(someMails.as("queued")),
    db.select({ dueAt: mails.dueAt }).from(mails).where(isQueued).orderBy(mails.dueAt).limit(1),
  ]);
  return {
    entries: Math.min(found?.entries ?? 0, counted + 1),
    mails: queued,
    mailDueAt: next?.dueAt ?? null,
  };
}

/** As a rank an age must rise with what is older: so many ms before the year 10000. */
const LAST_MS = sql.raw("253402300800000");

const ranked = statement({
  name: "backlogs.ranked",
  // The builder has no recursion.
  params: {
    byAge: value("boolean"),
    afterRank: nullable(value("bigint")),
    afterId: nullable(webhookSubscriptions.id),
    limit: value("bigint"),
    ranked: value("integer"),
    attempts: value("bigint"),
  },
  columns: {
    rank: value("bigint"),
    subscriptionId: webhookSubscriptions.id,
    label: webhookSubscriptions.label,
    partnerId: webhookSubscriptions.partnerId,
    partnerName: companies.name,
    isActive: value("boolean"),
    queued: value("integer"),
    oldestRecordedAt: outbox.recordedAt,
    dueAt: outbox.dueAt,
    shard: webhookSubscriptions.shard,
    dispatcherId: shardTable.dispatcherId,
    errorAt: nullable(deliveryAttempts.startedAt),
    statusCode: deliveryAttempts.statusCode,
    errorCode: deliveryAttempts.errorCode,
  },
  text: ({ byAge, afterRank, afterId, limit, ranked: most, attempts }) => sql`
    with recursive asked as (select id as shard from shards), ${queuesOf(most)}, sized as materialized (
      select s.shard, s.id as subscription_id, first.recorded_at, first.due_at,
             ${queueLength(BACKLOG_LIMITS.counted)} as queued
        from (select subscription_id from queues limit ${most}::integer) f
       cross join lateral (
               select id, shard, number from webhook_subscriptions where id = f.subscription_id offset 0) s
       cross join lateral (${firstQueued()}) first
    ), page as materialized (
      select * from (
        select *, case when ${byAge}::boolean
                       then ${LAST_MS}::bigint - (extract(epoch from recorded_at) * 1000)::bigint
                       else queued end as rank from sized) r
       where ${afterRank}::bigint is null or (rank, subscription_id) < (${afterRank}::bigint, ${afterId}::text collate "C")
       order by rank desc, subscription_id desc limit ${limit}
    )
    select p.rank, p.subscription_id as "subscriptionId", s.label, s.partner_id as "partnerId",
           c.name as "partnerName", s.state = 'active' as "isActive", p.queued::int as queued,
           p.recorded_at as "oldestRecordedAt", p.due_at as "dueAt", p.shard, h.dispatcher_id as "dispatcherId",
           error.started_at as "errorAt", error.status_code as "statusCode", error.error_code as "errorCode"
      from page p
      join webhook_subscriptions s on s.id = p.subscription_id
      join companies c on c.id = s.partner_id
      join shards h on h.id = p.shard
      left join lateral (
             select started_at, status_code, error_code
               from (select id, outcome, started_at, status_code, error_code from delivery_attempts
                      where subscription_id = p.subscription_id order by id desc limit ${attempts}) a
              where outcome <> 'delivered' order by id desc limit 1) error on true
     order by p.rank desc, p.subscription_id desc`,
});

interface Wanted {
  readonly byAge: boolean;
  readonly afterRank: number | null;
  readonly afterId: string | null;
  readonly limit: number;
}

/** Subscriptions by the depth or the age of their queues, the worst first. */
export function backlogsOf(db: DbOrTx, wanted: Wanted): Promise<Backlog[]> {
  const { ranked: most, attempts } = BACKLOG_LIMITS;
  return db.run(ranked, { ...wanted, ranked: most, attempts });
}
