import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../queries/audit.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { type Claims, claimsMatch, type KeyRing } from "../key-ring.ts";
import type { TokenKind } from "../../http/principal.ts";
import { deleteFamily, deleteGrant, lockFamily } from "../queries/sessions.ts";
import { deleteToken, findBearers, findRefreshToken } from "../queries/tokens.ts";

interface InspectDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly keys: KeyRing;
  readonly config: Pick<Config, "sessionLimits">;
}

interface LiveToken {
  readonly kind: TokenKind;
  readonly claims: Claims;
  readonly userId: number;
  readonly companyId: number;
  readonly impersonatorId: number | null;
  readonly familyId: string | null;
  /**
   * Whether the token is a refresh token that was already used. Such a token can no longer refresh, but a client can
   * still revoke the sign-in that it belongs to.
   */
  readonly isRedeemed: boolean;
}

/** Finds the token if it was issued to this client and has not expired; returns undefined for any other text. */
export async function findClientToken(
  deps: InspectDeps,
  token: string,
  clientId: string,
): Promise<LiveToken | undefined> {
  const claims =
    (await deps.keys.verify("at+jwt", token)) ?? (await deps.keys.verify("rt+jwt", token));
  if (claims === undefined || claims.client_id !== clientId) return undefined;
  const now = deps.clock.now();
  const found = await findBearers(deps.db, [claims.jti], deps.config.sessionLimits);
  const bearer = found.get(claims.jti);
  const row = bearer?.kind === "refresh" ? await findRefreshToken(deps.db, claims.jti) : bearer;
  if (row === undefined || row.clientId !== clientId || !claimsMatch(claims, row)) return undefined;
  if (row.expiresAt !== null && row.expiresAt <= now) return undefined;
  const isRedeemed = "redeemedAt" in row && row.redeemedAt !== null;
  const { kind, userId, companyId, impersonatorId, familyId } = row;
  return { kind, claims, userId, companyId, impersonatorId, familyId, isRedeemed };
}

/**
 * Revokes a token by the rules of RFC 7009, 2.1. A refresh token ends its whole sign-in. An access token ends
 * together with the refresh tokens of its sign-in and every token that was made in that sign-in.
 */
export async function revokeClientToken(
  deps: Pick<InspectDeps, "db" | "clock">,
  { kind, claims, familyId, ...actor }: LiveToken,
  requestContext: RequestContext,
): Promise<void> {
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
  { kind, jti, familyId }: Pick<LiveToken, "kind" | "familyId"> & { readonly jti: string },
): Promise<boolean> {
  if (familyId === null) return deleteToken(tx, jti);
  await lockFamily(tx, familyId);
  const ended = await (kind === "refresh"
    ? deleteFamily(tx, familyId)
    : deleteGrant(tx, { jti, familyId }));
  return ended > 0;
}
