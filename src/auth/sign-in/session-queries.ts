import {
  and,
  desc,
  eq,
  gt,
  inArray,
  isNull,
  lt,
  max,
  ne,
  notInArray,
  or,
  sql,
  type SQL,
} from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { sessionEnd } from "../access/queries.ts";
import { anyOf } from "../../../db/conditions.ts";
import { users } from "../../../db/schema/companies.ts";
import { emailCodes, ssoCodes } from "../../../db/schema/sign-in.ts";
import { authenticationEvents, authorizationCodes, tokens } from "../../../db/schema/tokens.ts";
import type { Page } from "../../http/list.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Config } from "../../lib/config.ts";
import { networkOf } from "../../lib/network.ts";
import type { AuthenticationEvent } from "./queries.ts";
import { endTokens } from "../tokens/queries.ts";

const { id, userId, method, clientId, ip, userAgent, at, factorAt } = authenticationEvents;
const eventColumns = { id, userId, method, clientId, ip, userAgent, at, factorAt };

/** Number of a user's newest sign-ins whose networks count as known. */
const NEWEST_NETWORKS = 50;

/**
 * Returns whether one of the newest sign-ins of the email's user came from the network of `address`; false if no user
 * has the email.
 */
export async function hasSignedInFrom(
  db: DbOrTx,
  email: string,
  address: string,
): Promise<boolean> {
  const network = networkOf(address);
  const newest = db
    .select({ ip, method })
    .from(authenticationEvents)
    .innerJoin(users, eq(users.id, userId))
    .where(eq(users.email, email))
    .orderBy(desc(id))
    .limit(NEWEST_NETWORKS)
    .as("newest");
  // Sign-ins by impersonation and portal link are excluded, because another person acts for the user in such a
  // session.
  const isInPerson = notInArray(newest.method, ["impersonation", "portal"]);
  const known = await db.selectDistinct({ ip: newest.ip }).from(newest).where(isInPerson);
  return known.some((one) => one.ip !== null && networkOf(one.ip) === network);
}

/** Number of a user's newest sign-ins whose devices count as known. */
const NEWEST_DEVICES = 200;
/** Ways to sign in on the product's own pages. */
const PAGE_METHODS: readonly string[] = ["login", "sso", "password_reset"];

/**
 * Returns whether none of the user's newest sign-ins on the product's own pages came from this browser and network. The
 * first sign-in of a user does not count as a new device.
 */
export async function isNewDevice(
  db: DbOrTx,
  ownerId: number,
  device: Pick<RequestContext, "ip" | "userAgent">,
): Promise<boolean> {
  const newest = await db
    .select({ ip, userAgent, method })
    .from(authenticationEvents)
    .where(eq(userId, ownerId))
    .orderBy(desc(id))
    .limit(NEWEST_DEVICES);
  const isKnown = newest.some(
    (one) =>
      PAGE_METHODS.includes(one.method) &&
      one.ip !== null &&
      networkOf(one.ip) === networkOf(device.ip) &&
      browserOf(one.userAgent) === browserOf(device.userAgent),
  );
  return newest.length > 0 && !isKnown;
}

/** Removes the version numbers from a user agent, so that an update does not count as a new browser. */
const browserOf = (agent: string | null) => agent?.replaceAll(/[\d._]+/g, "") ?? "";

/**
 * Locks a token family until the commit. A transaction that issues a token into the family and a transaction that
 * ends the family wait for each other, so that no token survives a revocation.
 */
export async function lockFamily(tx: Tx, familyId: string): Promise<void> {
  await tx.select({ id }).from(authenticationEvents).where(eq(id, familyId)).for("update");
}

/**
 * Stamps the logout time on the user's latest sign-in (contract 4.11). An impersonation is not a sign-in of the user,
 * so its logout stamps only the latest impersonation.
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

/**
 * Deletes one access token of a sign-in, the refresh tokens of that sign-in, and every token that any of them
 * created. Returns the number of deleted tokens.
 */
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
  readonly factorAt: Date | null;
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date;
  readonly userName: string;
  readonly companyId: number;
}

interface SessionSelection {
  readonly where: SQL | undefined;
  readonly moment: SessionMoment;
  readonly limit: number;
}

/** The current time, and the session limits that decide which sessions have ended by this time. */
interface SessionMoment {
  readonly now: Date;
  readonly limits: Config["sessionLimits"];
}

/**
 * Returns the SQL expression of the instant at which a token of a sign-in ends, by its own expiry or by the session
 * limits.
 */
function endsAt({ maxHours, idleMinutes }: Config["sessionLimits"]): SQL {
  const rows = { token: sql`${tokens}`, signIn: sql`${authenticationEvents}` };
  const limits = { maxHours: sql`${maxHours}::int`, idleMinutes: sql`${idleMinutes}::int` };
  return sql`least(${tokens.expiresAt}, ${sessionEnd(rows, limits)})`;
}

/** Selects sign-ins that still have a live token, newest first. */
function selectSessions(
  db: DbOrTx,
  { where, moment: { now, limits }, limit }: SessionSelection,
): Promise<SessionRow[]> {
  const isLive = and(gt(endsAt(limits), now), isNull(tokens.redeemedAt));
  return db
    .select({
      ...eventColumns,
      userName: users.name,
      companyId: users.companyId,
      lastUsedAt: max(tokens.lastUsedAt),
      expiresAt: sql`max(${endsAt(limits)})`.mapWith(tokens.expiresAt),
    })
    .from(authenticationEvents)
    .innerJoin(tokens, eq(tokens.familyId, id))
    .innerJoin(users, eq(users.id, userId))
    .where(and(where, isLive))
    .groupBy(id, users.id)
    .orderBy(desc(id))
    .limit(limit);
}

/** Lists the sign-ins of a user, or of all users of a company. */
export function sessionsOf(
  db: DbOrTx,
  owner: { readonly userId: number } | { readonly companyId: number },
  { page, ...moment }: SessionMoment & { readonly page: Page },
): Promise<SessionRow[]> {
  const afterCursor = page.after === undefined ? undefined : lt(id, page.after);
  const isTheirs =
    "userId" in owner
      ? eq(tokens.userId, owner.userId)
      : inArray(tokens.userId, usersOfCompany(db, owner.companyId));
  const where = and(isTheirs, afterCursor);
  return selectSessions(db, { where, moment, limit: page.limit + 1 });
}

const usersOfCompany = (db: DbOrTx, companyId: number) =>
  db.select({ id: users.id }).from(users).where(eq(users.companyId, companyId));

export async function findSession(
  db: DbOrTx,
  familyId: string,
  moment: SessionMoment,
): Promise<SessionRow | undefined> {
  const where = eq(id, familyId);
  const [row] = await selectSessions(db, { where, moment, limit: 1 });
  return row;
}

/** Deletes all tokens of a sign-in and every token that they created. Returns the number of deleted tokens. */
export function deleteFamily(tx: Tx, familyId: string): Promise<number> {
  return endTokens(tx, eq(tokens.familyId, familyId));
}

export async function stampLogoutOf(tx: Tx, familyId: string, now: Date): Promise<void> {
  await tx.update(authenticationEvents).set({ logoutTime: now }).where(eq(id, familyId));
}

/**
 * Locks the rows of all users of these companies, so that no other transaction can issue a token to them before the
 * commit.
 */
export async function holdUsersOf(tx: Tx, companyIds: readonly number[]): Promise<number[]> {
  const rows = await tx
    .select({ id: users.id })
    .from(users)
    .where(anyOf(users.companyId, companyIds))
    .orderBy(users.id)
    .for("no key update");
  return rows.map((row) => row.id);
}

/**
 * Deletes all tokens of these users, and the tokens with which they act for other users. Returns the number of
 * deleted tokens.
 */
export function deleteTokensOf(tx: Tx, userIds: readonly number[]): Promise<number> {
  return endTokens(tx, or(anyOf(tokens.userId, userIds), anyOf(tokens.impersonatorId, userIds)));
}

/**
 * Deletes all tokens of those sign-ins of a user that an identity provider may have confirmed, and every token that was
 * created with them. Sign-ins at the authorize page are included, because they do not record how the person signed in.
 */
export function deleteSsoTokensOf(tx: Tx, ownerId: number): Promise<number> {
  const families = tx
    .select({ id })
    .from(authenticationEvents)
    .where(and(eq(userId, ownerId), inArray(method, ["sso", "authorization_code"])));
  return endTokens(tx, and(eq(tokens.userId, ownerId), inArray(tokens.familyId, families)));
}

/**
 * Sets `consumed_at` of the unused mailed codes of these users, which ends the codes. The rows are kept, because the
 * cooldown between codes still counts them.
 */
export async function consumeCodesOf(tx: Tx, userIds: readonly number[], now: Date): Promise<void> {
  await tx
    .update(emailCodes)
    .set({ consumedAt: now })
    .where(and(anyOf(emailCodes.userId, userIds), isNull(emailCodes.consumedAt)));
}

/**
 * Deletes pending authorizations of these users: sign-ins at the authorize page, and codes that no client has
 * redeemed yet.
 */
export async function deleteAuthorizationCodesOf(
  tx: Tx,
  userIds: readonly number[],
): Promise<void> {
  await tx.delete(authorizationCodes).where(anyOf(authorizationCodes.userId, userIds));
}

/**
 * Sets `consumed_at` of the unused SSO codes of these users, which ends the codes. These codes belong to sign-ins that
 * an identity provider has confirmed and that were not exchanged for a token yet.
 */
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
