// One raw statement (db/statement.ts): the walk over the heads of the outbox, which recurses.
import { and, asc, desc, eq, gt, isNull, not, sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { skippedThrough, firstQueued, NO_LIMIT, queueLength, queuesOf } from "../../../db/log.ts";
import { neverNull, statement, value } from "../../../db/statement.ts";
import {
  dispatchers as dispatcherTable,
  shards as shardTable,
} from "../../../db/schema/dispatchers.ts";
import { mails } from "../../../db/schema/alerts.ts";
import { outbox } from "../../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import {
  LOOK_LIMITS,
  type BlockedRow,
  type DisabledRow,
  type DispatcherRow,
  type HeadRow,
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
