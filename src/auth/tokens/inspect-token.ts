import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { decideRefresh, secondsToRefresh } from "../decide.ts";
import { type Claims, claimsMatch, claimsOf, type KeyRing } from "../keys/key-ring.ts";
import type { TokenKind } from "../../http/principal.ts";
import { deleteFamily, deleteGrant, lockFamily } from "../sign-in/session-queries.ts";
import { findBearers } from "../access/queries.ts";
import { deleteToken, findRefreshToken } from "./queries.ts";
import { earliest, readToken } from "../access/authenticate.ts";

interface InspectDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly keys: KeyRing;
  readonly config: Pick<
    Config,
    "sessionLimits" | "operatorsRequireSecondFactor" | "refreshLeewayS" | "refreshMaxDays"
  >;
}

/** A token that an OAuth client has sent, with the data of its row and its claims. */
interface ClientToken {
  readonly kind: TokenKind;
  readonly claims: Claims;
  readonly userId: number;
  readonly companyId: number;
  readonly impersonatorId: number | null;
  readonly familyId: string | null;
}

/**
 * Finds the token if it was issued to this client and has not expired; returns undefined for any other text. A refresh
 * token that was already used is found too, so that the client can revoke the sign-in that it belongs to.
 */
async function findClientToken(
  deps: InspectDeps,
  token: string,
  clientId: string,
): Promise<ClientToken | undefined> {
  const claims =
    (await deps.keys.verify("at+jwt", token)) ?? (await deps.keys.verify("rt+jwt", token));
  if (claims === undefined || claims.client_id !== clientId) return undefined;
  const now = deps.clock.now();
  const bearer = await findBearer(deps, claims.jti);
  const row = bearer?.kind === "refresh" ? await findRefreshToken(deps.db, claims.jti) : bearer;
  if (row === undefined || row.clientId !== clientId || !claimsMatch(claims, row)) return undefined;
  if (row.expiresAt !== null && row.expiresAt <= now) return undefined;
  const { kind, userId, companyId, impersonatorId, familyId } = row;
  return { kind, claims, userId, companyId, impersonatorId, familyId };
}

const findBearer = async ({ db, config }: InspectDeps, jti: string) =>
  (await findBearers(db, [jti], config.sessionLimits)).get(jti);

/** The OAuth client that sends the request, with its current scopes and grants. */
interface AskingClient {
  readonly clientId: string;
  readonly scopes: readonly string[];
  readonly grantTypes: readonly string[];
}

/**
 * Returns the claims of a client's token, with the scopes that it has now and its earliest end. Returns undefined for
 * text that is now neither a valid bearer token nor a refresh token that can be redeemed.
 */
export async function inspectClientToken(
  deps: InspectDeps,
  token: string,
  client: AskingClient,
): Promise<{ readonly claims: Claims; readonly isBearer: boolean } | undefined> {
  const live = await readToken(deps, (jti) => findBearer(deps, jti), token);
  if (live === undefined) return inspectRefreshToken(deps, token, client);
  const { principal, endsAt: expiresAt } = live;
  if (principal.clientId !== client.clientId) return undefined;
  const scope = [...principal.scopes].join(" ");
  return { claims: claimsOf({ ...principal, scope, expiresAt }, principal.jti), isBearer: true };
}

/**
 * Returns the claims that a redemption of this refresh token would give now, by the rule of `decideRefresh` (contract
 * 5.3).
 */
async function inspectRefreshToken(
  { db, clock, keys, config }: InspectDeps,
  token: string,
  { clientId, scopes: ceiling, grantTypes }: AskingClient,
) {
  const claims = await keys.verify("rt+jwt", token);
  const row = claims && (await findRefreshToken(db, claims.jti));
  if (claims === undefined || !row?.isActive || row.signedInAt === null) return undefined;
  if (!claimsMatch(claims, row) || !grantTypes.includes("refresh_token")) return undefined;
  const { signedInAt } = row;
  const now = clock.now();
  const { refreshLeewayS: leewayS, refreshMaxDays: maxDays } = config;
  const request = { clientId, scopes: undefined, ceiling };
  const decision = decideRefresh({ ...row, signedInAt }, request, { now, leewayS, maxDays });
  if (decision.kind !== "redeem") return undefined;
  const leftS = secondsToRefresh(signedInAt, { now, maxDays });
  const lastDay = Number.isFinite(leftS) ? addMs(now, leftS * 1000) : null;
  const expiresAt = earliest(row.expiresAt, lastDay);
  const { scope } = decision;
  return { claims: claimsOf({ ...row, scope, expiresAt }, claims.jti), isBearer: false };
}

/**
 * Revokes a token of a client by the rules of RFC 7009, 2.1. A refresh token ends its whole sign-in. An access token
 * ends together with the refresh tokens of its sign-in and every token that was created with one of them. A text that
 * is not a live token of the client changes nothing.
 */
export async function revokeClientToken(
  deps: InspectDeps,
  { token, clientId }: { readonly token: string; readonly clientId: string },
  requestContext: RequestContext,
): Promise<void> {
  const found = await findClientToken(deps, token, clientId);
  if (found === undefined) return;
  const { kind, claims, familyId, ...actor } = found;
  const at = deps.clock.now();
  const details = { kind, jti: claims.jti };
  await deps.db.transaction(async (tx) => {
    if (!(await endClientToken(tx, { kind, jti: claims.jti, familyId }))) return;
    await recordAudit(tx, { at, action: "TOKEN_REVOKED", actor, requestContext, details });
  });
}

/** Revokes a client's token. Returns false if the token had already ended. */
async function endClientToken(
  tx: Tx,
  { kind, jti, familyId }: Pick<ClientToken, "kind" | "familyId"> & { readonly jti: string },
): Promise<boolean> {
  if (familyId === null) return deleteToken(tx, jti);
  await lockFamily(tx, familyId);
  const ended = await (kind === "refresh"
    ? deleteFamily(tx, familyId)
    : deleteGrant(tx, { jti, familyId }));
  return ended > 0;
}
