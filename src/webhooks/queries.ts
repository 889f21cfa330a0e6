import type { DbOrTx, Tx } from "../../db/client.ts";
import { ulidFloor } from "../../db/partitions.ts";
import type { Page } from "../http/page.ts";
import { addMs } from "../lib/clock.ts";
import type { Attempt, AttemptFilter, Subscription } from "./model.ts";

/** Columns as `Subscription` names them; nothing sealed among them. */
const columns = (db: DbOrTx) => db.sql`
  id, partner_id as "partnerId", shard, label, webhook_url as "webhookUrl", delivery_kind as "deliveryKind",
  batch_interval_hours as "batchIntervalHours", events, payload_mode as "payloadMode",
  suppress_native_notifications as "suppressNativeNotifications", ordering, state,
  consecutive_failure_count as "consecutiveFailureCount", disabled_at as "disabledAt",
  disabled_reason as "disabledReason", last_batch_dispatched_at as "lastBatchDispatchedAt",
  next_batch_at as "nextBatchAt", secret_fingerprint as "secretFingerprint", created_at as "createdAt",
  updated_at as "updatedAt", deleted_at as "deletedAt"`;

/** Newest first: the ids are ULIDs. */
export async function subscriptionsOf(
  db: DbOrTx,
  partnerId: number,
  page: Page,
): Promise<Subscription[]> {
  const before = page.after === undefined ? db.sql`` : db.sql`and id < ${page.after}`;
  return db.sql<Subscription[]>`
    select ${columns(db)} from webhook_subscriptions
     where partner_id = ${partnerId} and state <> 'deleted' ${before}
     order by id desc limit ${page.limit + 1}`;
}

/** A subscription that is not deleted, within its tenant. */
export async function subscriptionById(
  db: DbOrTx,
  partnerId: number,
  id: string,
): Promise<Subscription | undefined> {
  const [row] = await db.sql<Subscription[]>`
    select ${columns(db)} from webhook_subscriptions
     where id = ${id} and partner_id = ${partnerId} and state <> 'deleted'`;
  return row;
}

export async function insertSubscription(
  tx: Tx,
  one: Subscription,
  sealedSecret: string,
): Promise<void> {
  await tx.sql`
    insert into webhook_subscriptions
      (id, partner_id, shard, label, webhook_url, delivery_kind, batch_interval_hours, events, payload_mode,
       suppress_native_notifications, ordering, state, sealed_secret, secret_fingerprint, next_batch_at,
       created_at, updated_at)
    values
      (${one.id}, ${one.partnerId}, ${one.shard}, ${one.label}, ${one.webhookUrl}, ${one.deliveryKind},
       ${one.batchIntervalHours}, ${one.events}::text[], ${one.payloadMode}, ${one.suppressNativeNotifications},
       ${one.ordering}, ${one.state}, ${sealedSecret}, ${one.secretFingerprint}, ${one.nextBatchAt},
       ${one.createdAt}, ${one.updatedAt})`;
}

/** From here on entries can be appended. */
export async function insertSequence(tx: Tx, subscriptionId: string): Promise<void> {
  await tx.sql`insert into outbox_sequences (subscription_id) values (${subscriptionId})`;
}

/**
 * Ends appending: waits for whoever appends now, and nobody can afterwards. What waits for the next batch goes with
 * it. False if somebody else has done it.
 */
export async function deleteSequence(tx: Tx, subscriptionId: string): Promise<boolean> {
  const { count } = await tx.sql`
    delete from outbox_sequences where subscription_id = ${subscriptionId}`;
  return count === 1;
}

/** interface.md 3.1: deleted_at set and is_active false; why it was disabled before stays readable. */
export async function markDeleted(tx: Tx, subscriptionId: string, now: Date): Promise<void> {
  await tx.sql`
    update webhook_subscriptions set state = 'deleted', deleted_at = ${now}, updated_at = ${now}
     where id = ${subscriptionId}`;
}

/** decisions.md 4, soft delete: what is still queued is settled as skipped. */
export async function settleAsDeleted(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "shard">,
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
       batch_job_id, round, state, reason, recorded_at, settled_at)
    select subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id, review_id,
           batch_job_id, round, 'skipped', 'deleted', recorded_at, ${now}
      from taken`;
}

/**
 * Newest first by id. The ids are ULIDs of the start, so a time is a bound on them, and only the partitions between
 * the bounds are read.
 */
export async function attemptsOf(
  db: DbOrTx,
  subscriptionId: string,
  filter: AttemptFilter,
  page: Page,
): Promise<Attempt[]> {
  const { sql } = db;
  const conditions = [
    filter.event === undefined ? sql`` : sql`and event = ${filter.event}`,
    filter.eventId === undefined ? sql`` : sql`and event_id = ${filter.eventId}`,
    filter.outcome === undefined ? sql`` : sql`and outcome = ${filter.outcome}`,
    filter.since === undefined ? sql`` : sql`and id >= ${idAt(filter.since)}`,
    filter.until === undefined ? sql`` : sql`and id < ${idAt(filter.until)}`,
    page.after === undefined ? sql`` : sql`and id < ${page.after}`,
  ];
  return sql<Attempt[]>`
    select id, event_id as "eventId", event, attempt, round, sequence, started_at as "startedAt",
           duration_ms as "durationMs", outcome, status_code as "statusCode", error_code as "errorCode",
           request_headers as "requestHeaders", request_body as "requestBody",
           response_headers as "responseHeaders", response_excerpt as "responseExcerpt",
           response_truncated as "responseTruncated", next_attempt_at as "nextAttemptAt"
      from delivery_attempts
     where subscription_id = ${subscriptionId} ${conditions}
     order by id desc limit ${page.limit + 1}`;
}

/** The smallest id of an attempt that started at `at`. ULIDs know no time before 1970. */
function idAt(at: Date): string {
  return ulidFloor(addMs(at, Math.max(0, -at.getTime())));
}
