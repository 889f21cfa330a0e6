import type { DbOrTx, Tx } from "../../../db/client.ts";
import type { Page } from "../../http/list.ts";
import type { Subscription, SubscriptionSettings } from "../model.ts";

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

/** The subscription as it is now, held until the commit: nobody changes it in between. */
export async function lockSubscription(
  tx: Tx,
  { id, partnerId }: Pick<Subscription, "id" | "partnerId">,
): Promise<Subscription | undefined> {
  const [row] = await tx.sql<Subscription[]>`
    select ${columns(tx)} from webhook_subscriptions
     where id = ${id} and partner_id = ${partnerId} and state <> 'deleted'
       for no key update`;
  return row;
}

export async function updateSettings(
  tx: Tx,
  id: string,
  settings: SubscriptionSettings & Pick<Subscription, "nextBatchAt">,
  now: Date,
): Promise<void> {
  await tx.sql`
    update webhook_subscriptions
       set label = ${settings.label}, webhook_url = ${settings.webhookUrl},
           batch_interval_hours = ${settings.batchIntervalHours}, events = ${settings.events}::text[],
           payload_mode = ${settings.payloadMode},
           suppress_native_notifications = ${settings.suppressNativeNotifications},
           ordering = ${settings.ordering}, next_batch_at = ${settings.nextBatchAt}, updated_at = ${now}
     where id = ${id}`;
}

/** The sealed secret; read it together with what is done with it. */
export async function sealedSecretOf(tx: Tx, id: string): Promise<string | undefined> {
  const [row] = await tx.sql<{ sealed: string }[]>`
    select sealed_secret as sealed from webhook_subscriptions where id = ${id} and state <> 'deleted'`;
  return row?.sealed;
}

interface RotatedSecret {
  readonly sealedSecret: string;
  readonly secretFingerprint: string;
  /** The secret until now, for as long as deliveries carry its signature too; null without a grace period. */
  readonly previous: { readonly sealedSecret: string; readonly expiresAt: Date } | null;
}

/** Ciphertext and fingerprint in one statement (interface.md 4.5). */
export async function replaceSecret(
  tx: Tx,
  id: string,
  secret: RotatedSecret,
  now: Date,
): Promise<void> {
  await tx.sql`
    update webhook_subscriptions
       set sealed_secret = ${secret.sealedSecret}, secret_fingerprint = ${secret.secretFingerprint},
           sealed_previous_secret = ${secret.previous?.sealedSecret ?? null},
           previous_secret_expires_at = ${secret.previous?.expiresAt ?? null}, updated_at = ${now}
     where id = ${id}`;
}

/** disabled → active. */
export async function markEnabled(tx: Tx, id: string, now: Date): Promise<void> {
  await tx.sql`
    update webhook_subscriptions
       set state = 'active', disabled_at = null, disabled_reason = null, consecutive_failure_count = 0,
           updated_at = ${now}
     where id = ${id}`;
}

/** Of an active subscription the counter alone; answers when it was changed last, and nothing for one that is disabled. */
export async function forgetFailures(tx: Tx, id: string, now: Date): Promise<Date | undefined> {
  const [row] = await tx.sql<{ updatedAt: Date }[]>`
    update webhook_subscriptions
       set consecutive_failure_count = 0,
           updated_at = case when consecutive_failure_count > 0 then ${now} else updated_at end
     where id = ${id} and state = 'active'
    returning updated_at as "updatedAt"`;
  return row?.updatedAt;
}

export async function moveBatchCursor(
  tx: Tx,
  { id, cursor, nextBatchAt }: { id: string; cursor: Date; nextBatchAt: Date },
): Promise<void> {
  await tx.sql`
    update webhook_subscriptions set last_batch_dispatched_at = ${cursor}, next_batch_at = ${nextBatchAt}
     where id = ${id}`;
}
