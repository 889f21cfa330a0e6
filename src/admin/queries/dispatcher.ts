import type { DbOrTx } from "../../../db/client.ts";
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

export async function dispatchers(db: DbOrTx): Promise<DispatcherRow[]> {
  return db.sql<DispatcherRow[]>`
    select id, started_at as "startedAt", renewed_at as "renewedAt",
           greatest(0, extract(epoch from now() - renewed_at) * 1000)::int as "silentMs"
      from dispatchers order by id limit ${rows}`;
}

export async function shards(db: DbOrTx): Promise<ShardRow[]> {
  return db.sql<ShardRow[]>`
    select id, dispatcher_id as "dispatcherId", epoch from shards order by id`;
}

/** The heads of the subscriptions that have unsettled entries: one index probe each, however long their queues are. */
export async function heads(db: DbOrTx): Promise<HeadRow[]> {
  return db.sql<HeadRow[]>`
    with recursive found as (
      select s.id as shard, first.subscription_id
        from shards s cross join lateral (
               select subscription_id from outbox where shard = s.id order by subscription_id limit 1) first
      union all
      select f.shard, following.subscription_id
        from found f cross join lateral (
               select subscription_id from outbox
                where shard = f.shard and subscription_id > f.subscription_id
                order by subscription_id limit 1) following
    )
    select f.shard, f.subscription_id as "subscriptionId", s.state = 'active' as "isActive",
           e.state = 'waiting' as "isWaiting", e.recorded_at as "recordedAt"
      from (select shard, subscription_id from found limit ${subscriptions + 1}) f
      join webhook_subscriptions s on s.id = f.subscription_id
     cross join lateral (
             select state, recorded_at from outbox
              where shard = f.shard and subscription_id = f.subscription_id
              order by sequence limit 1) e`;
}

/** Entries that wait for a retry and block what is behind them; a test event blocks nothing. */
export async function blockedHeads(db: DbOrTx): Promise<BlockedRow[]> {
  return db.sql<BlockedRow[]>`
    select o.subscription_id as "subscriptionId", s.partner_id as "partnerId", o.shard, o.sequence,
           o.event_id as "eventId", o.event, o.attempt, o.due_at as "dueAt", o.recorded_at as "recordedAt"
      from outbox o join webhook_subscriptions s on s.id = o.subscription_id
     where o.state = 'waiting' and not o.is_test and s.state = 'active'
     order by o.subscription_id, o.sequence limit ${rows + 1}`;
}

/** Those disabled last come first. */
export async function disabledSubscriptions(db: DbOrTx): Promise<DisabledRow[]> {
  return db.sql<DisabledRow[]>`
    select id, partner_id as "partnerId", label, disabled_at as "disabledAt", disabled_reason as reason,
           consecutive_failure_count as failures
      from webhook_subscriptions where state = 'disabled'
     order by disabled_at desc, id limit ${rows + 1}`;
}

export async function queueCounts(db: DbOrTx): Promise<QueueCounts> {
  const [row] = await db.sql<QueueCounts[]>`
    select (select count(*)::int from (select 1 from outbox limit ${counted + 1}) o) as entries,
           (select count(*)::int from (select 1 from mails where state = 'queued' limit ${counted + 1}) m) as mails,
           (select due_at from mails where state = 'queued' order by due_at limit 1) as "mailDueAt"`;
  return row ?? { entries: 0, mails: 0, mailDueAt: null };
}
