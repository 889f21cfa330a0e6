import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "./audit.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { claimsMatch, type Claims } from "../claims.ts";
import { decideRefresh } from "../decide.ts";
import type { KeyRing } from "../key-ring.ts";
import { deleteFamily, lockFamily } from "../queries/sessions.ts";
import { findRefreshToken, redeemToken, shareClient, type RefreshRow } from "../queries/tokens.ts";
import { holdUser } from "../queries/users.ts";
import { issueToken, type IssuedToken } from "./open-session.ts";

interface RefreshDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly keys: KeyRing;
  readonly config: Pick<Config, "accessTokenTtlS" | "refreshTokenTtlS" | "refreshLeewayS">;
}

interface Refresh {
  readonly token: string;
  /** The id of the client that authenticated itself. */
  readonly clientId: string | null;
  /** The scopes of the new access token; undefined for those of the old one. */
  readonly scopes?: readonly string[];
  /** The scopes that the client is registered for; undefined where nothing limits it. */
  readonly ceiling?: readonly string[];
}

type RefreshOutcome =
  | {
      readonly kind: "refreshed";
      readonly access: IssuedToken;
      readonly refresh: IssuedToken;
      readonly scope: string;
    }
  /** Unknown, foreign, expired, used and replayed tokens all have this one answer. */
  | { readonly kind: "refused" }
  | { readonly kind: "too_wide" };

/** Redeems a refresh token: of any number of parallel redemptions exactly one wins (contract 5.3). */
export async function refreshSession(
  deps: RefreshDeps,
  refresh: Refresh,
  requestContext: RequestContext,
): Promise<RefreshOutcome> {
  // Verified before the transaction, because an unknown key is looked up in the database.
  const claims = await deps.keys.verify("rt+jwt", refresh.token);
  if (claims === undefined) return { kind: "refused" };
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    const row = await holdRefreshToken(tx, claims);
    if (row === undefined) return { kind: "refused" };
    const { scopes, clientId, ceiling } = refresh;
    const leewayS = deps.config.refreshLeewayS;
    const decision = decideRefresh(row, { clientId, scopes, ceiling }, { now, leewayS });
    if (decision.kind === "replayed") return endReplayed(tx, row, requestContext, now);
    if (decision.kind !== "redeem") return decision;
    await redeemToken(tx, row.jti, now);
    return issuePair(tx, deps, { row, scope: decision.scope, requestContext, now });
  });
}

type HeldRow = RefreshRow & { readonly familyId: string };

/**
 * Takes the locks in the order that all do: user (against a reset), client (against its deletion), family (against
 * logout, the end of the session and other redemptions). The row counts as it is after them.
 */
async function holdRefreshToken(tx: Tx, claims: Claims): Promise<HeldRow | undefined> {
  const known = await findRefreshToken(tx, claims.jti);
  if (known === undefined || known.familyId === null) return undefined;
  if (!(await holdUser(tx, known.userId))) return undefined;
  if (known.clientId !== null && !(await shareClient(tx, known.clientId))) return undefined;
  await lockFamily(tx, known.familyId);
  const row = await findRefreshToken(tx, claims.jti);
  if (row === undefined || !row.isActive || !claimsMatch(claims, row)) return undefined;
  return { ...row, familyId: known.familyId };
}

/**
 * Ends the whole sign-in: two parties have the token, and nobody knows which of them is the client (RFC 9700, 4.14.2).
 */
async function endReplayed(
  tx: Tx,
  { userId, companyId, familyId }: HeldRow,
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
  }: { row: HeldRow; scope: string; requestContext: RequestContext; now: Date },
): Promise<RefreshOutcome> {
  const { userId, companyId, familyId, clientId } = row;
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
  // The new refresh token has the scope of the old one, also where this access token is narrower (RFC 6749, 6).
  const holder = { userId, familyId, clientId, scope: row.scope, now };
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

/** Issues the refresh token of a sign-in, beside the access token that `openSession` issues. */
export function issueRefreshToken(
  tx: Tx,
  { keys, config }: Pick<RefreshDeps, "keys"> & { config: Pick<Config, "refreshTokenTtlS"> },
  holder: { userId: number; familyId: string; clientId: string | null; scope: string; now: Date },
): Promise<IssuedToken> {
  const ttlS = config.refreshTokenTtlS;
  return issueToken(tx, keys, { kind: "refresh", impersonatorId: null, ...holder, ttlS });
}
