import { and, asc, desc, eq, getTableColumns, lt, ne, sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { companies } from "../../../db/schema/companies.ts";
import { outboxOffsets, outboxSequences } from "../../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import type { Page } from "../../http/list.ts";
import type { Subscription } from "../model.ts";

const {
  sealedSecret,
  sealedPreviousSecret: _sealed,
  sealedHeaders: _headers,
  beginsAt: _begin,
  ...shown
} = getTableColumns(webhookSubscriptions);

/** The columns of a `Subscription`. */
export const SHOWN = shown;

const isNotDeleted: SQL = ne(webhookSubscriptions.state, "deleted");

const { id: idColumn, partnerId: partnerColumn } = shown;

/** Selects the subscriptions of a partner that are not deleted and meet the condition. */
function selectOf(db: DbOrTx, partnerId: number, condition?: SQL) {
  return db
    .select(SHOWN)
    .from(webhookSubscriptions)
    .where(and(eq(partnerColumn, partnerId), isNotDeleted, condition));
}

/** Lists subscriptions, the newest first: their ids are ULIDs. */
export function listSubscriptions(db: DbOrTx, partnerId: number, { after, limit }: Page) {
  const isAfter = after === undefined ? undefined : lt(idColumn, after);
  return selectOf(db, partnerId, isAfter)
    .orderBy(desc(idColumn))
    .limit(limit + 1);
}

/** Reads all subscriptions of a partner, the oldest first; there is at most one for each slot (contract 6.2). */
export function subscriptionsOfPartner(db: DbOrTx, partnerId: number) {
  return selectOf(db, partnerId).orderBy(asc(idColumn));
}

/** Returns the id of a partner, which need not be active; undefined if there is none with this id. */
export async function findPartner(db: DbOrTx, wanted: number): Promise<number | undefined> {
  const { id, type } = companies;
  const [row] = await db
    .select({ id })
    .from(companies)
    .where(and(eq(id, wanted), eq(type, "partner")));
  return row?.id;
}

/** Returns whether a partner is active, and locks its row, so that the state cannot change before the commit. */
export async function isActivePartner(tx: Tx, partnerId: number): Promise<boolean> {
  const [row] = await tx
    .select({ isActive: companies.isActive })
    .from(companies)
    .where(eq(companies.id, partnerId))
    .for("share");
  return row?.isActive ?? false;
}

/** Reads a subscription of the partner that is not deleted. */
export async function subscriptionById(db: DbOrTx, partnerId: number, id: string) {
  const [row] = await selectOf(db, partnerId, eq(idColumn, id));
  return row;
}

type SealedValues = Pick<
  typeof webhookSubscriptions.$inferSelect,
  "sealedSecret" | "sealedHeaders"
>;

/** Inserts a subscription with its sequence and offset, without which no entries can be appended. */
export async function insertSubscription(tx: Tx, one: Subscription & SealedValues): Promise<void> {
  const subscriptionId = one.id;
  await tx.insert(webhookSubscriptions).values(one);
  await tx.insert(outboxSequences).values({ subscriptionId });
  await tx.insert(outboxOffsets).values({ subscriptionId });
}

/**
 * Deletes the sequence of a subscription, after which no entries can be appended. Waits for transactions that are
 * appending entries. Returns the last number in use, or undefined if the sequence was already deleted.
 */
export async function deleteSequence(tx: Tx, subscriptionId: string): Promise<number | undefined> {
  const [row] = await tx
    .delete(outboxSequences)
    .where(eq(outboxSequences.subscriptionId, subscriptionId))
    .returning({ last: outboxSequences.lastSequence });
  return row?.last;
}

/**
 * Updates columns of a subscription. A caller that writes settings or the state has called `lockSubscription` first.
 */
export async function changeSubscription(
  tx: Tx,
  id: string,
  values: Partial<typeof webhookSubscriptions.$inferInsert>,
): Promise<void> {
  await tx.update(webhookSubscriptions).set(values).where(eq(idColumn, id));
}

/** Locks a subscription until the commit, and reads it. */
export async function lockSubscription(tx: Tx, partnerId: number, id: string) {
  const [row] = await selectOf(tx, partnerId, eq(idColumn, id)).for("no key update");
  return row;
}

/**
 * Reads the sealed secret of a subscription that is not deleted. A caller that replaces the secret has called
 * `lockSubscription` first.
 */
export async function sealedSecretOf(tx: Tx, id: string): Promise<string | undefined> {
  const [row] = await tx
    .select({ sealed: sealedSecret })
    .from(webhookSubscriptions)
    .where(and(eq(webhookSubscriptions.id, id), isNotDeleted));
  return row?.sealed;
}

/**
 * Resets the failure counter of an active subscription. Returns `updatedAt`, or undefined if the subscription is
 * disabled.
 */
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
