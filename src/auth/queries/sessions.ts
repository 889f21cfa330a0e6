import { and, desc, eq, gt, inArray, isNull, lt, max, ne, sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { prepared } from "../../../db/prepared.ts";
import { authenticationEvents, tokens } from "../../../db/schema/tokens.ts";
import type { Page } from "../../http/list.ts";

/** A sign-in: the family of the tokens that come from it. */
type AuthenticationEvent = Omit<typeof authenticationEvents.$inferSelect, "logoutTime">;

const { id, userId, method, clientId, ip, userAgent, at } = authenticationEvents;
const columns = { id, userId, method, clientId, ip, userAgent, at };

const insertion = prepared(columns, (db, given) => db.insert(authenticationEvents).values(given));

export async function insertAuthenticationEvent(tx: Tx, event: AuthenticationEvent): Promise<void> {
  await insertion(tx, event);
}

const families = prepared({ id }, (db, given) =>
  db.select({ id }).from(authenticationEvents).where(eq(id, given.id)).for("update"),
);

/** Makes whoever issues into the family, or ends it, wait for the other: no token slips past a revocation. */
export async function lockFamily(tx: Tx, familyId: string): Promise<void> {
  await families(tx, { id: familyId });
}

/**
 * Stamps the latest sign-in of the user (contract 4.11). A session of an impersonator is no sign-in of the
 * user's own and leaves those alone.
 */
export async function stampLogout(
  tx: Tx,
  logout: { userId: number; impersonated: boolean; at: Date },
): Promise<void> {
  const isOfKind = (logout.impersonated ? eq : ne)(method, "impersonation");
  const latest = tx
    .select({ id })
    .from(authenticationEvents)
    .where(and(eq(userId, logout.userId), isOfKind))
    .orderBy(desc(id))
    .limit(1);
  await tx.update(authenticationEvents).set({ logoutTime: logout.at }).where(eq(id, latest));
}

export async function deleteRefreshTokens(tx: DbOrTx, familyId: string): Promise<void> {
  await tx.delete(tokens).where(and(eq(tokens.familyId, familyId), eq(tokens.kind, "refresh")));
}

/** A sign-in that still has a live token. */
export interface SessionRow extends AuthenticationEvent {
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date;
}

interface Sessions {
  readonly where: SQL | undefined;
  readonly now: Date;
  readonly limit: number;
}

/** Newest first. */
function selectSessions(db: DbOrTx, { where, now, limit }: Sessions): Promise<SessionRow[]> {
  const isLive = and(gt(tokens.expiresAt, now), isNull(tokens.redeemedAt));
  return db
    .select({
      ...columns,
      lastUsedAt: max(tokens.lastUsedAt),
      expiresAt: sql`max(${tokens.expiresAt})`.mapWith(tokens.expiresAt),
    })
    .from(authenticationEvents)
    .innerJoin(tokens, and(eq(tokens.familyId, id), isLive))
    .where(where)
    .groupBy(id)
    .orderBy(desc(id))
    .limit(limit);
}

export function sessionsOf(
  db: DbOrTx,
  ownerId: number,
  { now, page }: { now: Date; page: Page },
): Promise<SessionRow[]> {
  const behind = page.after === undefined ? undefined : lt(id, page.after);
  const where = and(eq(tokens.userId, ownerId), behind);
  return selectSessions(db, { where, now, limit: page.limit + 1 });
}

export async function findSession(
  db: DbOrTx,
  familyId: string,
  now: Date,
): Promise<SessionRow | undefined> {
  const where = eq(id, familyId);
  const [row] = await selectSessions(db, { where, now, limit: 1 });
  return row;
}

/** Ends a sign-in; in one order, as every deletion of several tokens. */
export async function deleteFamily(tx: Tx, familyId: string): Promise<number> {
  const { jti } = tokens;
  const held = tx
    .select({ jti })
    .from(tokens)
    .where(eq(tokens.familyId, familyId))
    .orderBy(jti)
    .for("update");
  const { count } = await tx.delete(tokens).where(inArray(jti, held));
  return count;
}

export async function stampLogoutOf(tx: Tx, familyId: string, now: Date): Promise<void> {
  await tx.update(authenticationEvents).set({ logoutTime: now }).where(eq(id, familyId));
}
