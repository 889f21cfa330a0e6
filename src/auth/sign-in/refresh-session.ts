import type { Db, Tx } from "../../../db/client.ts";
import { neverNull } from "../../../db/statement.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { type Claims, claimsMatch, type KeyRing } from "../keys/key-ring.ts";
import { decideRefresh, secondsToRefresh } from "../decide.ts";
import { deleteFamily, lockFamily } from "./session-queries.ts";
import { findRefreshToken, redeemToken, shareClient, type RefreshRow } from "../tokens/queries.ts";
import { holdUser } from "../user-queries.ts";
import { issueToken, type IssuedToken } from "./open-session.ts";

interface RefreshDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly keys: KeyRing;
  readonly config: Pick<
    Config,
    "accessTokenTtlS" | "refreshTokenTtlS" | "refreshMaxDays" | "refreshLeewayS"
  >;
}

export type ClientTokenLives = Pick<Config, "refreshTokenTtlS" | "refreshMaxDays">;

interface RefreshRequest {
  readonly token: string;
  /** The client that authenticated this refresh request. */
  readonly clientId: string | null;
  /**
   * Scopes that the client requests for the new access token; undefined requests those scopes of the refresh token that
   * `ceiling` allows.
   */
  readonly scopes?: readonly string[];
  /** Scopes for which the client is registered at present; undefined means no limit. */
  readonly ceiling?: readonly string[];
}

type RefreshOutcome =
  | {
      readonly kind: "refreshed";
      readonly access: IssuedToken;
      readonly refresh: IssuedToken;
      readonly scope: string;
    }
  /**
   * The refresh token is rejected. The answer is the same for unknown, foreign, expired, used and replayed tokens, so
   * that it reveals nothing about the token.
   */
  | { readonly kind: "refused" }
  | { readonly kind: "too_wide" };

/** Redeems a refresh token. Of several parallel redemptions of one token exactly one succeeds (contract 5.3). */
export async function refreshSession(
  deps: RefreshDeps,
  refresh: RefreshRequest,
  requestContext: RequestContext,
): Promise<RefreshOutcome> {
  // The token is verified before the transaction begins, because for an unknown key id the key ring reads PostgreSQL
  // over a second connection.
  const claims = await deps.keys.verify("rt+jwt", refresh.token);
  if (claims === undefined) return { kind: "refused" };
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    const row = await holdRefreshToken(tx, claims);
    if (row === undefined) return { kind: "refused" };
    const { scopes, clientId, ceiling } = refresh;
    const { refreshLeewayS: leewayS, refreshMaxDays: maxDays } = deps.config;
    const decision = decideRefresh(row, { clientId, scopes, ceiling }, { now, leewayS, maxDays });
    if (decision.kind === "replayed") return endReplayed(tx, row, requestContext, now);
    if (decision.kind !== "redeem") return decision;
    await redeemToken(tx, row.jti, now);
    return issuePair(tx, deps, { row, scope: decision.scope, requestContext, now });
  });
}

type HeldRefreshToken = RefreshRow & { readonly familyId: string; readonly signedInAt: Date };

/**
 * Locks the user, the client and the token family, in the order that every transaction uses. So a password reset, a
 * deletion of the client, a logout, a revocation and another redemption wait for this redemption. The row of the
 * refresh token is read again after the locks, and only this second version counts.
 */
async function holdRefreshToken(tx: Tx, claims: Claims): Promise<HeldRefreshToken | undefined> {
  const known = await findRefreshToken(tx, claims.jti);
  if (known === undefined || known.familyId === null) return undefined;
  if (!(await holdUser(tx, known.userId))) return undefined;
  if (known.clientId !== null && !(await shareClient(tx, known.clientId))) return undefined;
  await lockFamily(tx, known.familyId);
  const row = await findRefreshToken(tx, claims.jti);
  if (row === undefined || !row.isActive || !claimsMatch(claims, row)) return undefined;
  return { ...row, familyId: known.familyId, signedInAt: neverNull(row.signedInAt) };
}

/**
 * Ends the whole sign-in of a refresh token that was used twice, because two parties hold the token and the server
 * cannot tell which of them is the legitimate client (RFC 9700, 4.14.2).
 */
async function endReplayed(
  tx: Tx,
  { userId, companyId, familyId }: HeldRefreshToken,
  requestContext: RequestContext,
  at: Date,
): Promise<RefreshOutcome> {
  const revoked = await deleteFamily(tx, familyId);
  const actor = { userId, companyId, impersonatorId: null };
  const details = { session_id: familyId, revoked };
  await recordAudit(tx, { at, action: "REFRESH_REPLAYED", actor, requestContext, details });
  return { kind: "refused" };
}

async function issuePair(
  tx: Tx,
  deps: RefreshDeps,
  {
    row,
    scope,
    requestContext,
    now,
  }: { row: HeldRefreshToken; scope: string; requestContext: RequestContext; now: Date },
): Promise<RefreshOutcome> {
  const { userId, companyId, familyId, clientId, signedInAt } = row;
  const access = await issueToken(tx, deps.keys, {
    kind: "access",
    userId,
    familyId,
    clientId,
    impersonatorId: null,
    scope,
    now,
    ttlS: deps.config.accessTokenTtlS,
  });
  // The new refresh token keeps the scope of the old refresh token, even if the access token issued with it has a
  // narrower scope (RFC 6749, 6).
  const holder = { userId, familyId, clientId, scope: row.scope, signedInAt, now };
  const refresh = await issueRefreshToken(tx, deps, holder);
  await recordAudit(tx, {
    at: now,
    action: "TOKEN_REFRESHED",
    actor: { userId, companyId, impersonatorId: null },
    requestContext,
    details: { session_id: familyId, jti: access.jti },
  });
  return { kind: "refreshed", access, refresh, scope };
}

interface RefreshHolder {
  readonly userId: number;
  readonly familyId: string;
  readonly clientId: string | null;
  readonly scope: string;
  readonly signedInAt: Date;
  readonly now: Date;
}

/**
 * Issues a refresh token of a sign-in. The token does not outlive the longest allowed duration of the sign-in.
 * `openSession` issues the access token of the same sign-in.
 */
export function issueRefreshToken(
  tx: Tx,
  { keys, config }: Pick<RefreshDeps, "keys"> & { config: ClientTokenLives },
  { signedInAt, ...holder }: RefreshHolder,
): Promise<IssuedToken> {
  const left = secondsToRefresh(signedInAt, { now: holder.now, maxDays: config.refreshMaxDays });
  const ttlS = Math.min(config.refreshTokenTtlS, Math.floor(left));
  return issueToken(tx, keys, { kind: "refresh", impersonatorId: null, ...holder, ttlS });
}
