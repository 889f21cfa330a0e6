import { and, asc, eq, gt, lte, sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { auditLog, auditWebhooks } from "../../../db/schema/companies.ts";
import { onlyRow } from "../../../db/statement.ts";

export type AuditWebhook = typeof auditWebhooks.$inferSelect;

/** The id of the one row. */
const PLATFORM = "platform";
const isIt = eq(auditWebhooks.id, PLATFORM);

export async function auditWebhookOf(db: DbOrTx): Promise<AuditWebhook | undefined> {
  const [row] = await db.select().from(auditWebhooks).where(isIt);
  return row;
}

/** Returns the audit webhook unless it waits after a failure. */
export async function dueAuditWebhook(db: DbOrTx, now: Date): Promise<AuditWebhook | undefined> {
  const [row] = await db
    .select()
    .from(auditWebhooks)
    .where(and(isIt, lte(auditWebhooks.nextAt, now)));
  return row;
}

interface Settings extends Pick<AuditWebhook, "url" | "sealedSecret"> {
  /** The position of a new row; an existing one takes it only if `isMoved`. */
  readonly afterId: number;
  readonly isMoved: boolean;
}

/** Creates or replaces the settings. A failure under the former ones is forgotten, so the next POST is due at once. */
export async function putAuditWebhook(
  tx: Tx,
  { url, sealedSecret, afterId, isMoved }: Settings,
  now: Date,
): Promise<AuditWebhook> {
  const settled = { failures: 0, lastError: null, failedAt: null, nextAt: now, updatedAt: now };
  const given = { url, sealedSecret, ...settled };
  const moved = isMoved ? { afterId, lostRows: 0 } : {};
  const rows = await tx
    .insert(auditWebhooks)
    .values({ ...given, id: PLATFORM, version: 1, afterId, createdAt: now })
    .onConflictDoUpdate({
      target: auditWebhooks.id,
      set: { ...given, ...moved, version: sql`${auditWebhooks.version} + 1` },
    })
    .returning();
  return onlyRow(rows);
}

/** Deletes the settings; returns them, or undefined if there are none. */
export async function deleteAuditWebhook(tx: Tx): Promise<AuditWebhook | undefined> {
  const [row] = await tx.delete(auditWebhooks).where(isIt).returning();
  return row;
}

/**
 * Records the result of a POST, unless the settings or the position have changed since `posted` was read. Returns
 * whether it was recorded.
 */
export async function movePosted(
  db: DbOrTx,
  posted: AuditWebhook,
  change: Partial<Omit<AuditWebhook, "id">>,
): Promise<boolean> {
  const { version, afterId } = auditWebhooks;
  const isUnchanged = and(isIt, eq(version, posted.version), eq(afterId, posted.afterId));
  const { count } = await db.update(auditWebhooks).set(change).where(isUnchanged);
  return count > 0;
}

/** Returns the time of the first row of the audit log after a position; undefined if there is none. */
export async function firstAuditAfter(db: DbOrTx, afterId: number): Promise<Date | undefined> {
  const [row] = await db
    .select({ at: auditLog.at })
    .from(auditLog)
    .where(gt(auditLog.id, afterId))
    .orderBy(asc(auditLog.id))
    .limit(1);
  return row?.at;
}
