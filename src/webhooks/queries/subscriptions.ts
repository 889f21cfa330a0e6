import { and, desc, eq, getTableColumns, lt, ne, sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { prepared } from "../../../db/prepared.ts";
import { outboxOffsets, outboxSequences } from "../../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { value } from "../../../db/statement.ts";
import type { Page } from "../../http/list.ts";
import type { Subscription, SubscriptionSettings } from "../model.ts";

const {
  sealedSecret,
  sealedPreviousSecret: _sealed,
  ...shown
} = getTableColumns(webhookSubscriptions);

/** Every column but what is sealed. */
export const SHOWN = shown;

const isThere: SQL = ne(webhookSubscriptions.state, "deleted");

const { id: ulid, partnerId: tenant } = shown;

const pages = prepared({ tenant, before: ulid, limit: value("integer") }, (db, given) =>
  db
    .select(SHOWN)
    .from(webhookSubscriptions)
    .where(and(eq(tenant, given.tenant), isThere, lt(ulid, given.before)))
    .orderBy(desc(ulid))
    .limit(sql.placeholder("limit")),
);
/** The first character of a ULID is at most 7. */
const BEHIND_ALL = "8";

/** Newest first: the ids are ULIDs. */
export function subscriptionsOf(
  db: DbOrTx,
  partnerId: number,
  { after = BEHIND_ALL, limit }: Page,
): Promise<Subscription[]> {
  return pages(db, { tenant: partnerId, before: after, limit: limit + 1 });
}

const byUlid = prepared({ ulid, tenant }, (db, given) =>
  db
    .select(SHOWN)
    .from(webhookSubscriptions)
    .where(and(eq(ulid, given.ulid), eq(tenant, given.tenant), isThere)),
);

/** A subscription that is not deleted, within its tenant. */
export async function subscriptionById(
  db: DbOrTx,
  partnerId: number,
  id: string,
): Promise<Subscription | undefined> {
  const [row] = await byUlid(db, { ulid: id, tenant: partnerId });
  return row;
}

export async function insertSubscription(tx: Tx, one: Subscription, sealed: string): Promise<void> {
  await tx.insert(webhookSubscriptions).values({ ...one, sealedSecret: sealed });
}

/** From here on entries can be appended. */
export async function insertSequence(tx: Tx, subscriptionId: string): Promise<void> {
  await tx.insert(outboxSequences).values({ subscriptionId });
  await tx.insert(outboxOffsets).values({ subscriptionId });
}

/**
 * Ends appending: waits for whoever appends now, and nobody can afterwards. Answers the last number given out, or
 * nothing if somebody else has done it.
 */
export async function deleteSequence(tx: Tx, subscriptionId: string): Promise<number | undefined> {
  const [row] = await tx
    .delete(outboxSequences)
    .where(eq(outboxSequences.subscriptionId, subscriptionId))
    .returning({ last: outboxSequences.lastSequence });
  return row?.last;
}

/** Contract 6.3: deleted_at set and is_active false; why it was disabled before stays readable. */
export async function markDeleted(tx: Tx, subscriptionId: string, now: Date): Promise<void> {
  await tx
    .update(webhookSubscriptions)
    .set({ state: "deleted", deletedAt: now, updatedAt: now })
    .where(eq(webhookSubscriptions.id, subscriptionId));
}

/** The subscription as it is now, held until the commit: nobody changes it in between. */
export async function lockSubscription(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "partnerId">,
): Promise<Subscription | undefined> {
  const [row] = await tx
    .select(SHOWN)
    .from(webhookSubscriptions)
    .where(and(eq(ulid, subscription.id), eq(tenant, subscription.partnerId), isThere))
    .for("no key update");
  return row;
}

export async function updateSettings(
  tx: Tx,
  id: string,
  { deliveryKind: _fixed, ...settings }: SubscriptionSettings & Pick<Subscription, "nextBatchAt">,
  now: Date,
): Promise<void> {
  await tx
    .update(webhookSubscriptions)
    .set({ ...settings, updatedAt: now })
    .where(eq(webhookSubscriptions.id, id));
}

/** The sealed secret; read it together with what is done with it. */
export async function sealedSecretOf(tx: Tx, id: string): Promise<string | undefined> {
  const [row] = await tx
    .select({ sealed: sealedSecret })
    .from(webhookSubscriptions)
    .where(and(eq(webhookSubscriptions.id, id), isThere));
  return row?.sealed;
}

interface RotatedSecret {
  readonly sealedSecret: string;
  readonly secretFingerprint: string;
  /** The secret until now, for as long as deliveries carry its signature too; null without a grace period. */
  readonly previous: { readonly sealedSecret: string; readonly expiresAt: Date } | null;
}

/** Ciphertext and fingerprint in one statement (contract 6.11). */
export async function replaceSecret(
  tx: Tx,
  id: string,
  { previous, ...secret }: RotatedSecret,
  now: Date,
): Promise<void> {
  await tx
    .update(webhookSubscriptions)
    .set({
      ...secret,
      sealedPreviousSecret: previous?.sealedSecret ?? null,
      previousSecretExpiresAt: previous?.expiresAt ?? null,
      updatedAt: now,
    })
    .where(eq(webhookSubscriptions.id, id));
}

/** From the next attempt on there is one signature. */
export async function dropPreviousSecret(tx: Tx, id: string, now: Date): Promise<void> {
  await tx
    .update(webhookSubscriptions)
    .set({ sealedPreviousSecret: null, previousSecretExpiresAt: null, updatedAt: now })
    .where(eq(webhookSubscriptions.id, id));
}

/** active → disabled, by hand. */
export async function markDisabled(
  tx: Tx,
  id: string,
  { now, reason }: { readonly now: Date; readonly reason: string },
): Promise<void> {
  await tx
    .update(webhookSubscriptions)
    .set({ state: "disabled", disabledAt: now, disabledReason: reason, updatedAt: now })
    .where(eq(webhookSubscriptions.id, id));
}

/** disabled → active. */
export async function markEnabled(tx: Tx, id: string, now: Date): Promise<void> {
  await tx
    .update(webhookSubscriptions)
    .set({
      state: "active",
      disabledAt: null,
      disabledReason: null,
      consecutiveFailureCount: 0,
      updatedAt: now,
    })
    .where(eq(webhookSubscriptions.id, id));
}

/** Of an active subscription the counter alone; answers when it was changed last, and nothing for one that is disabled. */
export async function forgetFailures(tx: Tx, id: string, now: Date): Promise<Date | undefined> {
  const { consecutiveFailureCount, updatedAt } = webhookSubscriptions;
  const [row] = await tx
    .update(webhookSubscriptions)
    .set({
      consecutiveFailureCount: 0,
      updatedAt: sql`case when ${consecutiveFailureCount} > 0 then ${now} else ${updatedAt} end`,
    })
    .where(and(eq(webhookSubscriptions.id, id), eq(webhookSubscriptions.state, "active")))
    .returning({ updatedAt });
  return row?.updatedAt;
}

export async function moveBatchCursor(
  tx: Tx,
  { id, cursor, nextBatchAt }: { id: string; cursor: Date; nextBatchAt: Date },
): Promise<void> {
  await tx
    .update(webhookSubscriptions)
    .set({ lastBatchDispatchedAt: cursor, nextBatchAt })
    .where(eq(webhookSubscriptions.id, id));
}
