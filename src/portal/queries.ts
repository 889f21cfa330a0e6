import { and, eq, gt, isNull, or } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../db/client.ts";
import { portalLinks, portalSettings } from "../../db/schema/portal.ts";
import { tokens } from "../../db/schema/tokens.ts";

type SettingsRow = typeof portalSettings.$inferSelect;

export async function settingsOf(db: DbOrTx, partnerId: number): Promise<SettingsRow | undefined> {
  const [row] = await db
    .select()
    .from(portalSettings)
    .where(eq(portalSettings.partnerId, partnerId));
  return row;
}

/** Makes the partner's row, unless it has one; its key never changes. */
export async function insertSettings(db: DbOrTx, fresh: SettingsRow): Promise<void> {
  await db.insert(portalSettings).values(fresh).onConflictDoNothing();
}

export async function updateOrigins(
  tx: Tx,
  { partnerId, origins }: Pick<SettingsRow, "partnerId" | "origins">,
): Promise<void> {
  await tx.update(portalSettings).set({ origins }).where(eq(portalSettings.partnerId, partnerId));
}

export async function originsOfKey(db: DbOrTx, key: string): Promise<string[]> {
  const [row] = await db
    .select({ origins: portalSettings.origins })
    .from(portalSettings)
    .where(eq(portalSettings.key, key));
  return row?.origins ?? [];
}

export async function insertLink(tx: Tx, link: typeof portalLinks.$inferInsert): Promise<void> {
  await tx.insert(portalLinks).values(link);
}

/** A link that is still good, with whom its token acts as. */
export async function findLink(db: DbOrTx, hash: string, now: Date) {
  const { jti, codeHash, scope, pages, expiresAt } = portalLinks;
  const isMakerLive = or(isNull(tokens.expiresAt), gt(tokens.expiresAt, now));
  const [row] = await db
    .select({ userId: tokens.userId, clientId: tokens.clientId, scope, pages })
    .from(portalLinks)
    .innerJoin(tokens, eq(tokens.jti, jti))
    .where(and(eq(codeHash, hash), gt(expiresAt, now), isMakerLive));
  return row;
}

/** False if it is gone: of two at once one has it. */
export async function consumeLink(tx: Tx, hash: string): Promise<boolean> {
  const { count } = await tx.delete(portalLinks).where(eq(portalLinks.codeHash, hash));
  return count > 0;
}
