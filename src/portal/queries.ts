import { and, asc, eq, gt, isNull, ne, or, sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../db/client.ts";
import { anyOf } from "../../db/conditions.ts";
import { portalLinks, portalSettings, tokens } from "../../db/schema/tokens.ts";
import { users } from "../../db/schema/companies.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";

type SettingsRow = typeof portalSettings.$inferSelect;

export async function settingsOf(db: DbOrTx, partnerId: number): Promise<SettingsRow | undefined> {
  const [row] = await db
    .select()
    .from(portalSettings)
    .where(eq(portalSettings.partnerId, partnerId));
  return row;
}

/** Reads the origins that may frame the portal, and locks them until the commit. */
export async function lockOrigins(tx: Tx, partnerId: number): Promise<string[]> {
  const [row] = await tx
    .select({ origins: portalSettings.origins })
    .from(portalSettings)
    .where(eq(portalSettings.partnerId, partnerId))
    .for("no key update");
  return row?.origins ?? [];
}

/**
 * Inserts the portal settings of a partner. Changes nothing if the partner has settings, so that the key of its portal
 * never changes.
 */
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

/** Finds the first active owner of a partner; the session of an operator's link acts as this user. */
export async function activeOwnerOf(db: DbOrTx, partnerId: number): Promise<number | undefined> {
  const { id, companyId, role, isActive } = users;
  const [row] = await db
    .select({ id })
    .from(users)
    .where(and(eq(companyId, partnerId), eq(role, "partner_owner"), isActive))
    .orderBy(asc(id))
    .limit(1);
  return row?.id;
}

/** Returns the ids of those subscriptions among `ids` that belong to the partner and are not deleted. */
export async function ownSubscriptions(
  db: DbOrTx,
  partnerId: number,
  ids: readonly string[],
): Promise<Set<string>> {
  const { id, state, ...of } = webhookSubscriptions;
  const rows = await db
    .select({ id })
    .from(webhookSubscriptions)
    .where(and(eq(of.partnerId, partnerId), anyOf(id, ids), ne(state, "deleted")));
  return new Set(rows.map((row) => row.id));
}

export async function insertLink(tx: Tx, link: typeof portalLinks.$inferInsert): Promise<void> {
  await tx.insert(portalLinks).values(link);
}

/**
 * Finds a portal link that is not expired, by its code and the key of the partner's portal. Returns it with the user
 * whom its session acts as and, if an operator created it, the operator.
 */
export async function findLink(
  db: DbOrTx,
  { hash, key, now }: { readonly hash: string; readonly key: string; readonly now: Date },
) {
  const { jti, codeHash, scope, pages, expiresAt, actsAs } = portalLinks;
  const isMakerLive = or(isNull(tokens.expiresAt), gt(tokens.expiresAt, now));
  const [row] = await db
    .select({
      parentJti: jti,
      makerId: tokens.userId,
      clientId: tokens.clientId,
      scope,
      pages,
      actsAs,
    })
    .from(portalLinks)
    .innerJoin(tokens, eq(tokens.jti, jti))
    .innerJoin(users, eq(users.id, sql`coalesce(${actsAs}, ${tokens.userId})`))
    .innerJoin(portalSettings, eq(portalSettings.partnerId, users.companyId))
    .where(and(eq(codeHash, hash), gt(expiresAt, now), isMakerLive, eq(portalSettings.key, key)));
  if (row === undefined) return undefined;
  const { makerId, actsAs: ownerId, ...link } = row;
  return ownerId === null
    ? { ...link, userId: makerId, impersonatorId: null }
    : { ...link, userId: ownerId, impersonatorId: makerId };
}

/** Deletes a portal link. Returns false if another request has already used it. */
export async function consumeLink(tx: Tx, hash: string): Promise<boolean> {
  const { count } = await tx.delete(portalLinks).where(eq(portalLinks.codeHash, hash));
  return count > 0;
}
