import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import { type Page } from "../../http/list.ts";
import { isUlid } from "../../http/ids.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { Problem } from "../../lib/problem.ts";
import { emailDigest } from "../email.ts";
import type { VerifyTokenAnswer } from "../model.ts";
import { forgetLock } from "./queries.ts";
import * as queries from "./session-queries.ts";
import {
  deleteFamily,
  findSession,
  lockFamily,
  type SessionRow,
  sessionsOf,
  stampLogout,
  stampLogoutOf,
} from "./session-queries.ts";
import { deleteToken } from "../tokens/queries.ts";
import { findPerson } from "../user-queries.ts";
import { recordAccessDenied } from "../access/access-denied.ts";
import { readContext } from "./open-session.ts";

export interface SessionDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: Pick<Config, "sessionLimits">;
}

const momentOf = ({ clock, config }: Pick<SessionDeps, "clock" | "config">) => ({
  now: clock.now(),
  limits: config.sessionLimits,
});

export function listSessions(
  deps: SessionDeps,
  { userId }: Pick<Principal, "userId">,
  page: Page,
): Promise<SessionRow[]> {
  return sessionsOf(deps.db, { userId }, { ...momentOf(deps), page });
}

/** Lists the sessions of all users of the caller's company. */
export function listTeamSessions(
  deps: SessionDeps,
  { companyId }: Principal,
  page: Page,
): Promise<SessionRow[]> {
  return sessionsOf(deps.db, { companyId }, { ...momentOf(deps), page });
}

/**
 * Loads one of the caller's sessions. Throws 404 if there is no live session with this id, and 403 with an
 * AUTHZ_DENIED row if it belongs to another user (contract 2.6).
 */
export function findOwnSession(deps: SessionDeps, caller: Caller, id: string): Promise<SessionRow> {
  return findSessionFor(deps, caller, id, ({ userId }) => userId === caller.principal.userId);
}

/** Loads a session of a user of the caller's company, as `findOwnSession` does. */
export function findTeamSession(
  deps: SessionDeps,
  caller: Caller,
  id: string,
): Promise<SessionRow> {
  const { companyId } = caller.principal;
  return findSessionFor(deps, caller, id, (row) => row.companyId === companyId);
}

/** Loads a session of this user for an operator. Throws 404 if the user has no live session with this id. */
export async function findSessionOf(
  deps: SessionDeps,
  userId: number,
  id: string,
): Promise<SessionRow> {
  const row = await liveSession(deps, id);
  if (row.userId !== userId) throw new Problem("not_found");
  return row;
}

async function liveSession(deps: SessionDeps, id: string): Promise<SessionRow> {
  const row = isUlid(id) ? await findSession(deps.db, id, momentOf(deps)) : undefined;
  if (row === undefined) throw new Problem("not_found");
  return row;
}

async function findSessionFor(
  deps: SessionDeps,
  { principal, requestContext }: Caller,
  id: string,
  isTheirs: (row: SessionRow) => boolean,
): Promise<SessionRow> {
  const row = await liveSession(deps, id);
  if (isTheirs(row)) return row;
  const details = { session_id: id, reason: "foreign_record" };
  await recordAccessDenied(deps, principal, { requestContext, details });
  throw new Problem("forbidden");
}

/**
 * Ends every token of the sign-in. The lock on the token family makes a concurrent refresh wait, so that the refresh
 * cannot issue a new token.
 */
export async function endSession(
  { db, clock }: Pick<SessionDeps, "db" | "clock">,
  { principal: actor, requestContext }: Caller,
  { id, userId }: SessionRow,
): Promise<void> {
  const at = clock.now();
  await db.transaction(async (tx) => {
    await lockFamily(tx, id);
    const revoked = await deleteFamily(tx, id);
    if (revoked === 0) throw new Problem("not_found");
    await stampLogoutOf(tx, id, at);
    const details = { session_id: id, revoked, user_id: userId };
    await recordAudit(tx, { at, action: "SESSION_REVOKED", actor, requestContext, details });
  });
}

interface SignOutDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * Handles `GET /logout`: ends the sign-in with all its tokens. A logout with a personal access token ends only that
 * token (contract 4.11).
 */
export async function logOut(
  deps: SignOutDeps,
  { principal, requestContext }: Caller,
): Promise<void> {
  const { userId, jti, impersonatorId } = principal;
  const at = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    await endToken(tx, principal);
    await stampLogout(tx, { userId, impersonated: impersonatorId !== null, at });
    const details = { jti };
    await recordAudit(tx, { at, action: "AUTH_LOGOUT", actor: principal, requestContext, details });
  });
}

/**
 * Handles `GET /sso/revoking-token`. This route ends the same tokens as `GET /logout`, but the audit log records
 * TOKEN_REVOKED and not a logout.
 */
export async function revokeOwnToken(
  deps: SignOutDeps,
  { principal, requestContext }: Caller,
): Promise<void> {
  const { jti, tokenKind: kind } = principal;
  const at = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    await endToken(tx, principal);
    const details = { kind, jti };
    await recordAudit(tx, {
      at,
      action: "TOKEN_REVOKED",
      actor: principal,
      requestContext,
      details,
    });
  });
}

/**
 * Ends all tokens of a sign-in. The lock on the token family makes a concurrent refresh wait, so that no new token
 * outlives the sign-in. Returns false if the sign-in had no token left.
 */
async function endSignIn(tx: Tx, familyId: string): Promise<boolean> {
  await lockFamily(tx, familyId);
  return (await deleteFamily(tx, familyId)) > 0;
}

async function endToken(tx: Tx, { jti, familyId }: Principal): Promise<void> {
  const isEnded = await (familyId === null ? deleteToken(tx, jti) : endSignIn(tx, familyId));
  // If two requests end the same token at the same time, the second one finds it deleted and gets a 401.
  if (!isEnded) throw new Problem("unauthenticated");
}

/**
 * Handles `GET /verify-token`: returns the user, the company and, for an impersonation, the impersonator. For the
 * session of a portal link, names and addresses are omitted, because the viewer is not the person who created the link
 * (contract 6.20).
 */
export async function verifyToken(
  deps: { db: Db },
  principal: Principal,
): Promise<VerifyTokenAnswer> {
  const { context: found } = await readContext(deps.db, principal.userId);
  const hidden = principal.tokenKind === "portal" ? { email: "", name: "" } : {};
  const context = { ...found, user: { ...found.user, ...hidden } };
  if (principal.impersonatorId === null) return context;
  const person = await findPerson(deps.db, principal.impersonatorId);
  if (person === undefined) throw new Error(`User ${principal.impersonatorId} does not exist.`);
  const { id, email, name, companyId } = person;
  return {
    ...context,
    impersonation: { impersonator: { id, email, name, company_id: companyId, ...hidden } },
  };
}

/**
 * Ends all access of the users: their tokens, the tokens with which they act for other users, and their unused codes
 * (contract 4.3). The caller must be in the transaction that deactivates the users, after their rows are locked.
 * Returns the number of ended tokens.
 */
export async function endAccess(tx: Tx, userIds: readonly number[], now: Date): Promise<number> {
  await queries.consumeCodesOf(tx, userIds, now);
  await queries.consumeSsoCodesOf(tx, userIds, now);
  await queries.deleteAuthorizationCodesOf(tx, userIds);
  return queries.deleteTokensOf(tx, userIds);
}

/**
 * Ends the sign-ins of a user that an identity provider may have confirmed, and the user's unfinished sign-ins.
 * Passwords and tokens outside of a sign-in stay valid. The caller must have locked the user's row. Returns the number
 * of ended tokens.
 */
export async function endSsoAccess(tx: Tx, userId: number, now: Date): Promise<number> {
  await queries.consumeSsoCodesOf(tx, [userId], now);
  await queries.deleteAuthorizationCodesOf(tx, [userId]);
  return queries.deleteSsoTokensOf(tx, userId);
}

/** Locks all users of these companies and ends their access. Returns the number of ended tokens. */
export async function endAccessOfCompanies(
  tx: Tx,
  companyIds: readonly number[],
  now: Date,
): Promise<number> {
  return endAccess(tx, await queries.holdUsersOf(tx, companyIds), now);
}

/** Deletes the sign-in lock of an email with its counters, so that the next lock has the duration of a first lock. */
export async function liftLock(tx: Tx, email: string): Promise<void> {
  await forgetLock(tx, emailDigest(email));
}
