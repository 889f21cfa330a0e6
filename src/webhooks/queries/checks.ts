import { and, desc, eq, not } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { endpointChecks, isOpenCheck } from "../../../db/schema/checks.ts";

type Check = typeof endpointChecks.$inferSelect;

/** Reads a check of a subscription. */
export async function checkOf(db: DbOrTx, subscriptionId: string, id: string) {
  const { id: key, subscriptionId: owner } = endpointChecks;
  const [row] = await db
    .select()
    .from(endpointChecks)
    .where(and(eq(key, id), eq(owner, subscriptionId)));
  return row;
}

/** Returns the id of the pending or running check of a subscription. */
export async function openCheckOf(tx: Tx, subscriptionId: string): Promise<string | undefined> {
  const { id, subscriptionId: owner } = endpointChecks;
  const [row] = await tx
    .select({ id })
    .from(endpointChecks)
    .where(and(eq(owner, subscriptionId), isOpenCheck));
  return row?.id;
}

/** Reads the newest checks of a partner, of all its subscriptions. */
export function newestChecks(tx: Tx, partnerId: number, limit: number) {
  const { id, createdAt } = endpointChecks;
  return tx
    .select({ id, createdAt })
    .from(endpointChecks)
    .where(eq(endpointChecks.partnerId, partnerId))
    .orderBy(desc(id))
    .limit(limit);
}

export async function insertCheck(
  tx: Tx,
  check: Pick<Check, "id" | "subscriptionId" | "partnerId" | "createdAt">,
): Promise<void> {
  await tx.insert(endpointChecks).values(check);
}

/** Deletes the checks of a partner that have ended, except these. */
export async function deleteOtherChecks(
  tx: Tx,
  partnerId: number,
  kept: readonly string[],
): Promise<void> {
  const { id, partnerId: owner } = endpointChecks;
  await tx
    .delete(endpointChecks)
    .where(and(eq(owner, partnerId), not(anyOf(id, kept)), not(isOpenCheck)));
}

/**
 * Ends the checks of a subscription and deletes their findings. The rows stay for a while, because they count towards
 * the partner's limit.
 */
export async function endChecksOf(tx: Tx, subscriptionId: string, finishedAt: Date): Promise<void> {
  const ended = { state: "interrupted", reason: "subscription_changed", findings: null } as const;
  await tx
    .update(endpointChecks)
    .set({ ...ended, finishedAt })
    .where(eq(endpointChecks.subscriptionId, subscriptionId));
}
