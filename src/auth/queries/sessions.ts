import { and, desc, eq, gt, isNull, lt, max, ne, notInArray, or, sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { users } from "../../../db/schema/companies.ts";
import { emailCodes, ssoCodes } from "../../../db/schema/sign-in.ts";
import { authenticationEvents, authorizationCodes, tokens } from "../../../db/schema/tokens.ts";
import { prepared } from "../../../db/session.ts";
import type { Page } from "../../http/list.ts";
import { networkOf } from "../../lib/network.ts";
import { endTokens } from "./tokens.ts";

/** A sign-in: the family of the tokens that come from it. */
type AuthenticationEvent = Omit<typeof authenticationEvents.$inferSelect, "logoutTime">;

const { id, userId, method, clientId, ip, userAgent, at } = authenticationEvents;
const columns = { id, userId, method, clientId, ip, userAgent, at };

const insertion = prepared(columns, (db, given) => db.insert(authenticationEvents).values(given));

export async function insertAuthenticationEvent(tx: Tx, event: AuthenticationEvent): Promise<void> {
  await insertion(tx, event);
}

/** The sign-ins of a user that say from where the user signs in. */
const NEWEST = 50;

const newestAddresses = prepared({ email: users.email }, (db, given) => {
  const newest = db
    .select({ ip, method })
    .from(authenticationEvents)
    .innerJoin(users, eq(users.id, userId))
    .where(eq(users.email, given.email))
    .orderBy(desc(id))
    .limit(NEWEST)
    .as("newest");
  // The others act for the user: an impersonator, and the viewer of a portal link.
  const isInPerson = notInArray(newest.method, ["impersonation", "portal"]);
  return db.selectDistinct({ ip: newest.ip }).from(newest).where(isInPerson);
});

/** Whether one of the newest sign-ins of the email's user, if it has one, came from the network of an address. */
export async function hasSignedInFrom(
  db: DbOrTx,
  email: string,
  address: string,
): Promise<boolean> {
  const network = networkOf(address);
  const known = await newestAddresses(db, { email });
  return known.some((one) => one.ip !== null && networkOf(one.ip) === network);
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

/** Ends one access token of a sign-in, its refresh tokens, and what any of its tokens made; answers how many. */
export function deleteGrant(
  tx: DbOrTx,
  { jti, familyId }: { readonly jti: string; readonly familyId: string },
): Promise<number> {
  const ofFamily = eq(tokens.familyId, familyId);
  const isEnding = or(eq(tokens.jti, jti), eq(tokens.kind, "refresh"));
  return endTokens(tx, and(ofFamily, isEnding), ofFamily);
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

/** Ends a sign-in with all its tokens, and what they made; answers how many. */
export function deleteFamily(tx: Tx, familyId: string): Promise<number> {
  return endTokens(tx, eq(tokens.familyId, familyId));
}

export async function stampLogoutOf(tx: Tx, familyId: string, now: Date): Promise<void> {
  await tx.update(authenticationEvents).set({ logoutTime: now }).where(eq(id, familyId));
}

/** Locks these users' rows until the commit, so that no token can be issued to them meanwhile. */
export async function holdUsersOf(tx: Tx, companyIds: readonly number[]): Promise<number[]> {
  const rows = await tx
    .select({ id: users.id })
    .from(users)
    .where(anyOf(users.companyId, companyIds))
    .orderBy(users.id)
    .for("no key update");
  return rows.map((row) => row.id);
}

/** Ends all tokens that the users have or are behind; answers how many. */
export function deleteTokensOf(tx: Tx, userIds: readonly number[]): Promise<number> {
  return endTokens(tx, or(anyOf(tokens.userId, userIds), anyOf(tokens.impersonatorId, userIds)));
}

/** The rows stay for the cooldown. */
export async function consumeCodesOf(tx: Tx, userIds: readonly number[], now: Date): Promise<void> {
  await tx
    .update(emailCodes)
    .set({ consumedAt: now })
    .where(and(anyOf(emailCodes.userId, userIds), isNull(emailCodes.consumedAt)));
}

/** What is pending at the authorize page, and between it and a client. */
export async function deleteAuthorizationCodesOf(
  tx: Tx,
  userIds: readonly number[],
): Promise<void> {
  await tx.delete(authorizationCodes).where(anyOf(authorizationCodes.userId, userIds));
}

/** Sign-ins that an identity provider has confirmed, waiting for their exchange. */
export async function consumeSsoCodesOf(
  tx: Tx,
  userIds: readonly number[],
  now: Date,
): Promise<void> {
  await tx
    .update(ssoCodes)
    .set({ consumedAt: now })
    .where(and(anyOf(ssoCodes.userId, userIds), isNull(ssoCodes.consumedAt)));
}
