import type { Db } from "../../../db/client.ts";
import { recordAudit } from "./audit.ts";
import type { Authenticator } from "../../http/access.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Principal, TokenKind } from "../../http/principal.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import { inBatches } from "../../lib/batches.ts";
import { errorFields, type Log } from "../../lib/log.ts";
import { Problem } from "../../lib/problem.ts";
import { claimsMatch } from "../claims.ts";
import type { KeyRing } from "../key-ring.ts";
import { keepNewestUses, saveUse } from "../queries/token-uses.ts";
import { type BearerRow, findBearers, stampLastUse } from "../queries/tokens.ts";
import { recordAccessDenied } from "./access-denied.ts";

/** `last_used_at` tells people which tokens are in use; a minute is exact enough and spares a write per request. */
const LAST_USE_STEP_MS = 60_000;
/** The audit log tells of a token's use once in an hour of the clock. */
const HOUR_MS = 3_600_000;

/** RFC 6750, 2.1. The scheme knows no case; a JWT is three parts of base64url. */
const BEARER = /^bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i;

interface AuthenticateDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: KeyRing;
}

const LOOK_UPS = {
  questions: 256,
  waiting: 4_096,
  waitMs: 6_000,
  beside: { groups: 8, patienceMs: 100 },
};

/**
 * Makes the bearer check (contract 4.3). Nothing is cached: requests that come at the same time share a look-up that
 * begins after the last of them, so a token that was revoked anywhere is refused at the next request. All failures are
 * the same 401.
 */
export function createAuthenticate(
  deps: AuthenticateDeps,
): (requestContext: RequestContext) => Promise<Principal> {
  const stampUse = createUseStamp(deps);
  const findBearer = inBatches(
    deps.clock,
    (jtis: readonly string[]) => lookUp(deps.db, jtis),
    LOOK_UPS,
  );
  return async (requestContext) => {
    // Two Authorization fields arrive joined by a comma, which is no token.
    const token = BEARER.exec(requestContext.headers.get("authorization") ?? "")?.[1];
    const claims = token === undefined ? undefined : await deps.keys.verify("at+jwt", token);
    if (claims === undefined) throw new Problem("unauthenticated");
    const row = await findBearer(claims.jti);
    const now = deps.clock.now();
    if (row === undefined || isExpired(row, now) || !claimsMatch(claims, row))
      throw new Problem("unauthenticated");
    const principal = principalOf(row, claims.jti);
    stampUse(principal, requestContext, { seen: row.lastUsedAt, at: now });
    return principal;
  };
}

async function lookUp(
  db: Db,
  jtis: readonly string[],
): Promise<readonly (BearerRow | undefined)[]> {
  const found = await findBearers(db, [...new Set(jtis)]);
  return jtis.map((jti) => found.get(jti));
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
    pages: row.pages,
  };
}

interface Use {
  readonly seen: Date | null;
  readonly at: Date;
}

/** Writes the last use, one write at a time per token. The request neither waits for it nor fails with it. */
function createUseStamp(deps: Pick<AuthenticateDeps, "db" | "log">) {
  const underWay = new Set<string>();
  return (principal: Principal, requestContext: RequestContext, use: Use): void => {
    const { jti } = principal;
    const isRecent = use.seen !== null && addMs(use.seen, LAST_USE_STEP_MS) > use.at;
    if (isRecent || underWay.has(jti)) return;
    underWay.add(jti);
    void recordUse(deps.db, principal, { requestContext, use })
      .catch((error: unknown) => deps.log.warn("token.stamp_failed", errorFields(error)))
      .finally(() => underWay.delete(jti));
  };
}

/** The tokens that live apart from a sign-in: the audit log tells when they are used, and `token_uses` where. */
const AUDITED_IN_USE: ReadonlySet<TokenKind> = new Set([
  "dashboard_pat",
  "api_pat",
  "impersonation",
]);

async function recordUse(
  db: Db,
  actor: Principal,
  { requestContext, use }: { requestContext: RequestContext; use: Use },
): Promise<void> {
  const { jti, tokenKind } = actor;
  const isAudited = use.seen !== null && hourOf(use.seen) === hourOf(use.at);
  if (isAudited || !AUDITED_IN_USE.has(tokenKind)) {
    await stampLastUse(db, jti, use);
    return;
  }
  const details = { kind: tokenKind, jti };
  await db.transaction(async (tx) => {
    if (await stampLastUse(tx, jti, use))
      await recordAudit(tx, { at: use.at, action: "TOKEN_USED", actor, requestContext, details });
  });
}

function hourOf(at: Date): number {
  return Math.floor(at.getTime() / HOUR_MS);
}

interface TokenUsesDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}

/** A use that was written is written again after so long: a minute is exact enough. */
const STEP_MS = 60_000;
/** So many uses are remembered; where there are more, all are forgotten and written once more. */
const REMEMBERED = 10_000;

/**
 * Writes where tokens are used that live apart from a sign-in, once a minute for each route and address. The request
 * neither waits for it nor fails with it. Each process remembers for itself what it has written.
 */
class TokenUses {
  readonly #deps: TokenUsesDeps;
  /** By token, route and address: until when there is nothing to write. */
  readonly #written = new Map<string, Date>();

  constructor(deps: TokenUsesDeps) {
    this.#deps = deps;
  }

  note({ tokenKind, jti }: Principal, { ip }: RequestContext, route: string): void {
    if (!AUDITED_IN_USE.has(tokenKind)) return;
    const key = `${jti} ${ip} ${route}`;
    const at = this.#deps.clock.now();
    const until = this.#written.get(key);
    if (until !== undefined && at < until) return;
    if (this.#written.size >= REMEMBERED) this.#written.clear();
    this.#written.set(key, addMs(at, STEP_MS));
    this.#write({ jti, route, ip, at }).catch((error: unknown) =>
      this.#deps.log.warn("token.use_lost", errorFields(error)),
    );
  }

  async #write(use: Parameters<typeof saveUse>[1]): Promise<void> {
    const { db } = this.#deps;
    if (await saveUse(db, use)) await keepNewestUses(db, use.jti);
  }
}

/** Makes what the HTTP edge checks bearer tokens and records denials with. */
export function createAuthenticator(deps: {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: KeyRing;
}): Authenticator {
  const uses = new TokenUses(deps);
  return {
    noteUse: (principal, requestContext, route) => uses.note(principal, requestContext, route),
    authenticate: createAuthenticate(deps),
    recordAccessDenied: (principal, requestContext, details) =>
      recordAccessDenied(deps, principal, { requestContext, details }),
  };
}
