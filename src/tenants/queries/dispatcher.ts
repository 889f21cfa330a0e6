import { and, asc, desc, eq, gt, isNull, not, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

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
import type { Page } from "../../http/list.ts";
import { quarantinedOf } from "../../webhooks/stats-model.ts";
import {
  type Backlog,
  BACKLOG_LIMITS,
  type BacklogOrder,
  type BlockedRow,
  type DisabledRow,
  type DispatcherRow,
  type DispatcherState,
  type HeadRow,
  type QuarantinedRow,
  type QueueCounts,
  readBacklogKey,
  type ShardRow,
  STATE_LIMITS,
} from "../dispatcher-model.ts";

const { subscriptions, rows, counted } = STATE_LIMITS;

/**
 * Reads the state of all dispatchers and queues from PostgreSQL alone, so that it can be shown while no dispatcher
 * runs (contract 10.4).
 */
export async function dispatcherState(db: DbOrTx, at: Date): Promise<DispatcherState> {
  const [processes, ownedShards, heads, blocked, disabled, quarantined, counts] = await Promise.all(
    [
      dispatchers(db),
      shards(db),
      queueHeads(db),
      blockedHeads(db),
      disabledSubscriptions(db),
      quarantinedLanes(db),
      queueCounts(db),
    ],
  );
  return {
    at,
    dispatchers: processes,
    shards: ownedShards,
    heads,
    blocked,
    disabled,
    quarantined,
    counts,
  };
}

// The states are literals in the SQL and no parameters, because the planner uses a partial index only if the statement
// contains the condition of the index.
const isWaiting = sql`${outbox.state} = 'waiting'`;
const isDisabled = sql`${webhookSubscriptions.state} = 'disabled'`;
const isQueued = sql`${mails.state} = 'queued'`;

function dispatchers(db: DbOrTx): Promise<DispatcherRow[]> {
  const { id, startedAt, renewedAt, memoryMb, outage, outageSince } = dispatcherTable;
  const silence = sql`greatest(0, extract(epoch from now() - ${renewedAt}) * 1000)::int`;
  return db
    .select({
      id,
      startedAt,
      renewedAt,
      memoryMb,
      silentMs: silence.mapWith(Number),
      outage,
      outageSince,
    })
    .from(dispatcherTable)
    .orderBy(id)
    .limit(rows);
}

function shards(db: DbOrTx): Promise<ShardRow[]> {
  return db.select().from(shardTable).orderBy(shardTable.id);
}

/**
 * Selects at most `limit` subscriptions with queued entries, as a table `q`. It is raw SQL, because Drizzle's query
 * builder does not support a recursive `with`.
 */
const queues = (limit: number) => sql`(
  with recursive asked as (select id as shard from shards), ${queuesOf(sql`${limit}`)}
  select subscription_id from queues limit ${limit}) q`;

/** The subscription of a queue. The SQL fragments of db/log.ts refer to it by the name `s`. */
const s = alias(webhookSubscriptions, "s");

/**
 * Reads the first queued event of each subscription with one index probe per subscription, so the cost does not
 * depend on the length of the queue.
 */
function queueHeads(db: DbOrTx): Promise<HeadRow[]> {
  return db
    .select({
      shard: s.shard,
      subscriptionId: s.id,
      isActive: sql`${s.state} = 'active'`.mapWith(Boolean),
      isWaiting: sql`e.state = 'waiting'`.mapWith(Boolean),
      recordedAt: sql`e.recorded_at`.mapWith(outbox.recordedAt),
    })
    .from(queues(subscriptions + 1))
    .innerJoin(s, eq(s.id, sql`q.subscription_id`))
    .crossJoinLateral(sql`(${firstQueued()}) e`);
}

/**
 * Reads the entries of `outbox` that wait for a retry. The next entries of their lanes wait for them. Test events are
 * left out, because no other event waits for them.
 */
async function blockedHeads(db: DbOrTx): Promise<BlockedRow[]> {
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

/** Reads the quarantined lanes that each dispatcher wrote into its row at its last renewal. */
async function quarantinedLanes(db: DbOrTx): Promise<QuarantinedRow[]> {
  const { id, quarantined } = dispatcherTable;
  const found = await db.select({ id, quarantined }).from(dispatcherTable).orderBy(id).limit(rows);
  return found.flatMap(({ id: dispatcherId, quarantined: lanes }) =>
    lanes.map((lane) => ({
      dispatcherId,
      subscriptionId: lane.subscription_id,
      ...quarantinedOf(lane),
    })),
  );
}

/** Reads disabled webhook subscriptions, the most recently disabled first. */
async function disabledSubscriptions(db: DbOrTx): Promise<DisabledRow[]> {
  const { id, partnerId, label, disabledAt, disabledReason, consecutiveFailureCount } =
    webhookSubscriptions;
  const found = await db
    .select({ id, partnerId, label, disabledAt, disabledReason, consecutiveFailureCount })
    .from(webhookSubscriptions)
    .where(isDisabled)
    .orderBy(desc(disabledAt), asc(id))
    .limit(rows + 1);
  return found.map((one) => ({
    ...one,
    disabledAt: neverNull(one.disabledAt),
    disabledReason: neverNull(one.disabledReason),
  }));
}

async function queueCounts(db: DbOrTx): Promise<QueueCounts> {
  const someMails = db
    .select({ id: mails.id })
    .from(mails)
    .where(isQueued)
    .limit(counted + 1);
  const [[found], queued, [next]] = await Promise.all([
    db
      .select({ entries: sql`coalesce(sum(${queueLength(counted)}), 0)`.mapWith(Number) })
      .from(queues(NO_LIMIT))
      .crossJoinLateral(
        sql`(select id, shard, number from webhook_subscriptions where id = q.subscription_id offset 0) s`,
      ),
    db.$count(someMails.as("queued")),
    db.select({ dueAt: mails.dueAt }).from(mails).where(isQueued).orderBy(mails.dueAt).limit(1),
  ]);
  return {
    entries: Math.min(found?.entries ?? 0, counted + 1),
    mails: queued,
    mailDueAt: next?.dueAt ?? null,
  };
}

/**
 * The start of the year 10000 in ms since 1970. The rank by age is the time from the oldest queued event to this
 * instant. So an older event gives a higher rank, just as a longer queue does in the order by depth.
 */
const LAST_MS = sql.raw("253402300800000");

const rankedBacklogs = statement({
  name: "backlogs.ranked",
  // Raw SQL, because Drizzle's query builder does not support a recursive `with`.
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
    tlsReason: deliveryAttempts.tlsReason,
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
           error.started_at as "errorAt", error.status_code as "statusCode", error.error_code as "errorCode",
           error.tls_reason as "tlsReason"
      from page p
      join webhook_subscriptions s on s.id = p.subscription_id
      join companies c on c.id = s.partner_id
      join shards h on h.id = p.shard
      left join lateral (
             select started_at, status_code, error_code, tls_reason
               from (select id, outcome, started_at, status_code, error_code, tls_reason from delivery_attempts
                      where subscription_id = p.subscription_id order by id desc limit ${attempts}) a
              where outcome <> 'delivered' order by id desc limit 1) error on true
     order by p.rank desc, p.subscription_id desc`,
});

/**
 * Lists subscriptions by the length or the age of their queues, longest or oldest first (contract 10.4). The queues
 * change while a client reads one page after another. So a subscription may be on two pages or on none.
 */
export function listBacklogs(
  db: DbOrTx,
  order: BacklogOrder,
  { limit, after }: Page,
): Promise<Backlog[]> {
  const { ranked: most, attempts } = BACKLOG_LIMITS;
  const range = { byAge: order === "age", ...readBacklogKey(after), limit: limit + 1 };
  return db.run(rankedBacklogs, { ...range, ranked: most, attempts });
}
