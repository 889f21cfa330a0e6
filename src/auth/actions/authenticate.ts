import type { Db } from "../../../db/client.ts";
import type { Call } from "../../http/route.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import { errorFields, type Log } from "../../lib/log.ts";
import { Problem } from "../../lib/problem.ts";
import { claimsMatch } from "../claims.ts";
import type { KeyRing } from "../key-ring.ts";
import type { Principal } from "../model.ts";
import { findBearer, stampLastUse, type BearerRow } from "../queries/tokens.ts";

/** `last_used_at` tells people which tokens are in use; a minute is exact enough and spares a write per request. */
const LAST_USE_STEP_MS = 60_000;

/** RFC 6750, 2.1. The scheme knows no case; a JWT is three parts of base64url. */
const BEARER = /^bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i;

interface AuthenticateDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: KeyRing;
}

/**
 * Makes the bearer check (decisions.md 2, revocation). Nothing is cached: a token that was revoked anywhere is refused
 * at the next request. All failures are the same 401.
 */
export function createAuthenticate(deps: AuthenticateDeps): (call: Call) => Promise<Principal> {
  const stampUse = createUseStamp(deps);
  return async ({ headers }) => {
    // Two Authorization fields arrive joined by a comma, which is no token.
    const token = BEARER.exec(headers.get("authorization") ?? "")?.[1];
    const claims = token === undefined ? undefined : await deps.keys.verify("at+jwt", token);
    if (claims === undefined) throw new Problem("unauthenticated");
    const row = await findBearer(deps.db, claims.jti);
    const now = deps.clock.now();
    if (row === undefined || isExpired(row, now) || !claimsMatch(claims, row))
      throw new Problem("unauthenticated");
    stampUse(claims.jti, row.lastUsedAt, now);
    return principalOf(row, claims.jti);
  };
}

function isExpired({ expiresAt }: BearerRow, now: Date): boolean {
  return expiresAt !== null && expiresAt <= now;
}

function principalOf(row: BearerRow, jti: string): Principal {
  const isPartner = row.companyType === "partner";
  return {
    userId: row.userId,
    userName: row.userName,
    role: row.role,
    companyId: row.companyId,
    companyType: row.companyType,
    partnerId: isPartner ? row.companyId : row.companyPartnerId,
    accountId: row.companyType === "account" ? row.companyId : null,
    storeIds: row.storeIds,
    scopes: new Set(row.scope.split(" ")),
    tokenKind: row.kind,
    jti,
    familyId: row.familyId,
    signInMethod: row.signInMethod,
    clientId: row.clientId,
    isThirdParty: row.clientIsFirstParty === false,
    impersonatorId: row.impersonatorId,
  };
}

/** Stamps beside the request, which neither waits for it nor fails with it; one at a time per token. */
function createUseStamp({ db, log }: Pick<AuthenticateDeps, "db" | "log">) {
  const underWay = new Set<string>();
  return (jti: string, lastUsedAt: Date | null, now: Date): void => {
    const isRecent = lastUsedAt !== null && addMs(lastUsedAt, LAST_USE_STEP_MS) > now;
    if (isRecent || underWay.has(jti)) return;
    underWay.add(jti);
    void stampLastUse(db, jti, now)
      .catch((error: unknown) => log.warn("token.stamp_failed", errorFields(error)))
      .finally(() => underWay.delete(jti));
  };
}
