import type { DbOrTx, Tx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { fromMs } from "../../lib/clock.ts";
import { TEST_EVENT } from "../../outbox/event.ts";
import type { DeliveryRow, SettledEntry } from "../delivery-model.ts";
import type { Subscription } from "../model.ts";

/**
 * Holds the sequence until the commit, so that whoever appends goes before or after; answers the last number given
 * out, or nothing if the subscription is deleted. Of the locks of a subscription it is the first: then entries by
 * sequence, then the subscription.
 */
export async function lockSequence(tx: Tx, subscriptionId: string): Promise<number | undefined> {
  const [row] = await tx.sql<{ last: number }[]>`
    select last_sequence as last from outbox_sequences
     where subscription_id = ${subscriptionId} for no key update`;
  return row?.last;
}

/** Settles all that is queued as skipped, in the order of its sequence, which is the order in which others lock it. */
export async function settleQueued(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "shard">,
  reason: "deleted" | "skipped",
  now: Date,
): Promise<void> {
  await tx.sql`
    with held as materialized (
      select shard, subscription_id, sequence from outbox
       where shard = ${subscription.shard} and subscription_id = ${subscription.id}
       order by sequence for update
    ), taken as (
      delete from outbox o using held h
       where o.shard = h.shard and o.subscription_id = h.subscription_id and o.sequence = h.sequence
      returning o.*
    )
    insert into settled_entries
      (subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id, review_id,
       batch_job_id, round, reason, recorded_at, settled_at)
    select subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id, review_id,
           batch_job_id, round, ${reason}, recorded_at, ${now}
      from taken`;
}

/** What waits for the next batch goes without a trace: it was never queued. */
export async function dropBatchEntries(tx: Tx, subscriptionId: string): Promise<void> {
  await tx.sql`delete from batch_entries where subscription_id = ${subscriptionId}`;
}

/** Under the lock of the sequence. */
export async function appendTest(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "shard" | "payloadMode">,
  entry: { readonly sequence: number; readonly eventId: string; readonly now: Date },
): Promise<void> {
  const { id, shard, payloadMode } = subscription;
  await tx.sql`
    with counted as (
      update outbox_sequences set last_sequence = ${entry.sequence} where subscription_id = ${id}
    )
    insert into outbox (shard, subscription_id, sequence, event_id, event, is_test, payload_mode, recorded_at)
    values (${shard}, ${id}, ${entry.sequence}, ${entry.eventId}, ${TEST_EVENT}, true, ${payloadMode}, ${entry.now})`;
}

export async function isQueued(tx: Tx, subscriptionId: string, eventId: string): Promise<boolean> {
  const rows = await tx.sql`
    select from outbox where event_id = ${eventId} and subscription_id = ${subscriptionId} limit 1`;
  return rows.length > 0;
}

/**
 * The rounds of an event that have ended since then: skipped, or with the attempt that was their last.
 */
function endedRounds(
  { sql }: DbOrTx,
  subscriptionId: string,
  eventId: ReturnType<DbOrTx["sql"]>,
  since = fromMs(0),
) {
  return sql`
    select event_id, event, sequence, round, is_test, payload_mode, review_history_id, review_id, batch_job_id,
           'skipped' as state, recorded_at, settled_at
      from settled_entries
     where event_id = ${eventId} and subscription_id = ${subscriptionId} and settled_at >= ${since}
     union all
    select a.event_id, a.event, a.sequence, a.round, a.event = ${TEST_EVENT}, a.payload_mode, told.id, told.review_id,
           a.batch_job_id, a.outcome, a.recorded_at, a.started_at + a.duration_ms * interval '1 millisecond'
      from delivery_attempts a left join review_history told on told.event_id = a.event_id
     where a.event_id = ${eventId} and a.subscription_id = ${subscriptionId} and a.id >= ${ulidFloor(since)}
       and a.recorded_at is not null`;
}

/** The last round of an event that is settled. */
export async function lastSettled(
  tx: Tx,
  subscriptionId: string,
  eventId: string,
): Promise<SettledEntry | undefined> {
  const [row] = await tx.sql<SettledEntry[]>`
    select event, is_test as "isTest", payload_mode as "payloadMode", review_history_id as "reviewHistoryId",
           review_id as "reviewId", batch_job_id as "batchJobId", round, recorded_at as "recordedAt"
      from (${endedRounds(tx, subscriptionId, tx.sql`${eventId}`)}) e
     order by round desc, sequence desc limit 1`;
  return row;
}

/** Queues a settled event again, as its next round. Under the lock of the sequence. */
export async function appendRound(
  tx: Tx,
  { id, shard }: Pick<Subscription, "id" | "shard">,
  settled: SettledEntry,
  entry: { readonly sequence: number; readonly eventId: string; readonly recordedAt: Date },
): Promise<void> {
  await tx.sql`
    with counted as (
      update outbox_sequences set last_sequence = ${entry.sequence} where subscription_id = ${id}
    )
    insert into outbox (shard, subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id,
                        review_id, batch_job_id, round, recorded_at)
    values (${shard}, ${id}, ${entry.sequence}, ${entry.eventId}, ${settled.event}, ${settled.isTest},
            ${settled.payloadMode}, ${settled.reviewHistoryId}, ${settled.reviewId}, ${settled.batchJobId},
            ${settled.round + 1}, ${entry.recordedAt})`;
}

export interface Recovery {
  readonly since: Date;
  readonly until: Date;
  /** Nothing of the window was settled earlier: spares a look at the days before. */
  readonly settledSince: Date;
  /** At most so many, the oldest first. */
  readonly limit: number;
  /** The event values that the subscription is to get. */
  readonly events: readonly string[];
  readonly lastSequence: number;
  readonly now: Date;
}

/**
 * Queues the events of a window that were neither delivered nor are queued, in the order of the audit trail; answers
 * how many. An event that was tried before is queued as its next round, with the body that it had. Under the lock of
 * the sequence.
 */
export async function appendUndelivered(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "shard" | "partnerId" | "payloadMode">,
  window: Recovery,
): Promise<number> {
  const { id, shard, partnerId, payloadMode } = subscription;
  const rounds = endedRounds(tx, id, tx.sql`h.event_id`, window.settledSince);
  const roundsOfMissed = endedRounds(tx, id, tx.sql`m.event_id`, window.settledSince);
  const [row] = await tx.sql<{ queued: number }[]>`
    with missed as materialized (
      select h.id, h.event_id, h.event, h.review_id
        from review_history h
       where h.partner_id = ${partnerId} and h.recorded_at >= ${window.since} and h.recorded_at < ${window.until}
         and h.event = any(${window.events}::text[])
         and not exists (select from outbox o where o.event_id = h.event_id and o.subscription_id = ${id})
         and not exists (select from batch_entries b where b.subscription_id = ${id} and b.review_history_id = h.id)
         and not exists (select from (${rounds}) d where d.state = 'delivered')
       order by h.id limit ${window.limit}
    ), entries as (
      insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id,
                          review_id, batch_job_id, round, recorded_at)
      select ${shard}, ${id}, ${window.lastSequence}::bigint + row_number() over (order by m.id), m.event_id, m.event,
             coalesce(s.payload_mode, ${payloadMode}), m.id, m.review_id, s.batch_job_id, coalesce(s.round, 0) + 1,
             ${window.now}
        from missed m
        left join lateral (
               select payload_mode, batch_job_id, round from (${roundsOfMissed}) d order by round desc limit 1) s on true
      returning 1
    ), counted as (
      update outbox_sequences set last_sequence = last_sequence + (select count(*) from entries)
       where subscription_id = ${id}
    )
    select count(*)::int as queued from entries`;
  return row?.queued ?? 0;
}

/** Where the last round of an event stands, queued or settled. */
export async function deliveryOf(
  db: DbOrTx,
  subscriptionId: string,
  eventId: string,
): Promise<DeliveryRow | undefined> {
  const [row] = await db.sql<DeliveryRow[]>`
    select e.event_id as "eventId", e.event, e.sequence, e.state, e.settled_at as "settledAt",
           coalesce(h.recorded_at, e.recorded_at) as "createdAt"
      from (select event_id, event, sequence, round, state, null::timestamptz as settled_at, review_history_id,
                   recorded_at
              from outbox where event_id = ${eventId} and subscription_id = ${subscriptionId}
             union all
            select event_id, event, sequence, round, state, settled_at, review_history_id, recorded_at
              from (${endedRounds(db, subscriptionId, db.sql`${eventId}`)}) ended) e
      left join review_history h on h.id = e.review_history_id
     order by e.round desc, e.sequence desc limit 1`;
  return row;
}
