import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { Authenticator } from "../../http/access.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Principal, TokenKind } from "../../http/principal.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import { inBatches } from "../../lib/batches.ts";
import type { Config } from "../../lib/config.ts";
import { type Key, keyOf } from "../../lib/kind-key.ts";
import { errorFields, type Log } from "../../lib/log.ts";
import { Problem } from "../../lib/problem.ts";
import { withinCeiling } from "../decide.ts";
import { isFresh, isSession, requiresFactor } from "../factors/rules.ts";
import { claimsMatch, type KeyRing } from "../keys/key-ring.ts";
import { keepNewestUses, saveUse } from "../tokens/use-queries.ts";
import { stampLastUse } from "../tokens/queries.ts";
import { type BearerRow, findBearers } from "./queries.ts";
import type { FailureAudit } from "../../audit/failures.ts";

/**
 * Minimum time in ms between two writes of a token's `last_used_at`. A resolution of one minute is enough to show which
 * tokens are in use, and saves a database write per request.
 */
const LAST_USE_STEP_MS = 60_000;
/** One hour in ms. The audit log records the use of a token at most once in each hour of the clock. */
const HOUR_MS = 3_600_000;

/**
 * Matches a bearer token in the Authorization header (RFC 6750, 2.1). The scheme is case-insensitive; a JWT is three
 * parts of base64url.
 */
const BEARER = /^bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i;

interface ReadDeps {
  readonly clock: Clock;
  readonly keys: KeyRing;
  readonly config: Pick<Config, "sessionLimits" | "operatorsRequireSecondFactor">;
}

interface AuthenticateDeps extends ReadDeps {
  readonly db: Db;
  readonly log: Log;
}

/** A token that is valid now, with the authority that it has now. */
export interface LiveToken {
  readonly principal: Principal;
  /** The earliest instant at which the token ends; null if it only ends by a revocation. */
  readonly endsAt: Date | null;
  readonly use: TokenUse;
}

/**
 * Verifies a bearer token against its live rows (contract 4.3): whether it is valid, whom it acts for, with which
 * scopes, and until when. The bearer check of requests and token introspection both call this function, so that they
 * never disagree. Returns undefined for a text that is not a valid token.
 */
export async function readToken(
  { keys, clock, config }: ReadDeps,
  findBearer: (jti: string) => Promise<BearerRow | undefined>,
  token: string,
): Promise<LiveToken | undefined> {
  const claims = await keys.verify("at+jwt", token);
  const row = claims && (await findBearer(claims.jti));
  if (claims === undefined || row === undefined || !claimsMatch(claims, row)) return undefined;
  const now = clock.now();
  const endsAt = earliest(row.expiresAt, row.sessionEndsAt);
  if (endsAt !== null && endsAt <= now) return undefined;
  const principal = principalOf(config, row, { jti: claims.jti, now });
  return { principal, endsAt, use: { seen: row.lastUsedAt, at: now } };
}

/**
 * Returns the earlier of two ends of a token: its own expiry, and the end of its session by the session limits. Null
 * stands for no end.
 */
export function earliest(expiry: Date | null, policy: Date | null): Date | null {
  if (expiry === null || policy === null) return expiry ?? policy;
  return expiry < policy ? expiry : policy;
}

const LOOK_UP_BATCHES = {
  items: 256,
  waiting: 4_096,
  waitMs: 6_000,
  beside: { groups: 8, patienceMs: 100 },
};

/**
 * Creates the check of bearer tokens (contract 4.3). Nothing is cached. Concurrent requests share one database query,
 * which starts after the last of them has arrived, so a token that any process revoked is rejected at the next
 * request. Every failure gives the same 401.
 */
export function createAuthenticate(
  deps: AuthenticateDeps,
): (requestContext: RequestContext) => Promise<Principal> {
  const findBearer = inBatches(
    deps.clock,
    (jtis: readonly string[]) => lookUp(deps, jtis),
    LOOK_UP_BATCHES,
  );
  return async (requestContext) => {
    // If a request has two Authorization headers, their values are joined with a comma, and the result matches no
    // token.
    const token = BEARER.exec(requestContext.headers.get("authorization") ?? "")?.[1];
    const live = token === undefined ? undefined : await readToken(deps, findBearer, token);
    if (live === undefined) throw new Problem("unauthenticated");
    stampUse(deps, live, requestContext);
    return live.principal;
  };
}

async function lookUp(
  { db, config }: Pick<AuthenticateDeps, "db" | "config">,
  jtis: readonly string[],
): Promise<readonly (BearerRow | undefined)[]> {
  const found = await findBearers(db, [...new Set(jtis)], config.sessionLimits);
  return jtis.map((jti) => found.get(jti));
}

function principalOf(
  config: AuthenticateDeps["config"],
  row: BearerRow,
  { jti, now }: { readonly jti: string; readonly now: Date },
): Principal {
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
    scopes: new Set(scopesOf(row)),
    tokenKind: row.kind,
    jti,
    familyId: row.familyId,
    signInMethod: row.signInMethod,
    signedInAt: row.signedInAt,
    factorAt: row.factorAt,
    needsStepUp: requiresFactor(config, row) && isSession(row) && !isFresh(row.factorAt, now),
    clientId: row.clientId,
    isThirdParty: row.clientIsFirstParty === false,
    impersonatorId: row.impersonatorId,
    pages: row.pages,
    actsForPartners: row.servicePartnerIds,
  };
}

/**
 * Returns the scopes of a token, except those that its service, integration or OAuth client has lost since the token was
 * issued.
 */
function scopesOf({ scope, holderScopes, clientScopes }: BearerRow): readonly string[] {
  return withinCeiling(scope.split(" "), holderScopes ?? clientScopes ?? undefined);
}

interface TokenUse {
  readonly seen: Date | null;
  readonly at: Date;
}

/** The tokens whose `last_used_at` this process is writing. */
const tokensBeingStamped = new Set<string>();

/**
 * Writes a token's `last_used_at`, with at most one write in progress per token. The request does not wait for the
 * write, and succeeds even if the write fails.
 */
export function stampUse(
  deps: Pick<AuthenticateDeps, "db" | "log">,
  { principal, use }: Pick<LiveToken, "principal" | "use">,
  requestContext: RequestContext,
): void {
  const { jti } = principal;
  const isRecent = use.seen !== null && addMs(use.seen, LAST_USE_STEP_MS) > use.at;
  if (isRecent || tokensBeingStamped.has(jti)) return;
  tokensBeingStamped.add(jti);
  void recordUse(deps.db, principal, { requestContext, use })
    .catch((error: unknown) => deps.log.warn("token.last_use_failed", errorFields(error)))
    .finally(() => tokensBeingStamped.delete(jti));
}

/**
 * Kinds of tokens that exist outside of a sign-in session. The audit log records that such a token is used, and the
 * table `token_uses` records from which address and on which route.
 */
const AUDITED_IN_USE: ReadonlySet<TokenKind> = new Set([
  "dashboard_pat",
  "api_pat",
  "impersonation",
  "service",
]);

async function recordUse(
  db: Db,
  actor: Principal,
  { requestContext, use }: { requestContext: RequestContext; use: TokenUse },
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

/**
 * Minimum time in ms between two database writes of the same use: the same token, route and address. A resolution of
 * one minute is enough for the list of uses.
 */
const USE_STEP_MS = 60_000;
/**
 * Highest number of token uses that the process remembers as written. When the map reaches this size it is cleared,
 * which costs one repeated write per use.
 */
const REMEMBERED_USES = 10_000;

/**
 * Records from which route and address a token outside of a sign-in session is used, at most once a minute for each
 * token, route and address. The request does not wait for the write, and succeeds even if the write fails. Every
 * process remembers only the uses that it has written itself.
 */
class TokenUses {
  readonly #deps: TokenUsesDeps;
  /** Instant before which a use is not written to the database again, by token, address and route. */
  readonly #written = new Map<Key<"token-use">, Date>();

  constructor(deps: TokenUsesDeps) {
    this.#deps = deps;
  }

  note({ tokenKind, jti }: Principal, { ip }: RequestContext, route: string): void {
    if (!AUDITED_IN_USE.has(tokenKind)) return;
    const key = keyOf("token-use", jti, ip, route);
    const at = this.#deps.clock.now();
    const until = this.#written.get(key);
    if (until !== undefined && at < until) return;
    if (this.#written.size >= REMEMBERED_USES) this.#written.clear();
    this.#written.set(key, addMs(at, USE_STEP_MS));
    this.#write({ jti, route, ip, at }).catch((error: unknown) =>
      this.#deps.log.warn("token.last_use_failed", errorFields(error)),
    );
  }

  async #write(use: Parameters<typeof saveUse>[1]): Promise<void> {
    const { db } = this.#deps;
    if (await saveUse(db, use)) await keepNewestUses(db, use.jti);
  }
}

/**
 * Creates the functions that the HTTP layer uses to check bearer tokens, to record their use, and to audit denied
 * access.
 */
export function createAuthenticator(
  deps: AuthenticateDeps & { readonly failures: FailureAudit },
): Authenticator {
  const uses = new TokenUses(deps);
  return {
    noteUse: (principal, requestContext, route) => uses.note(principal, requestContext, route),
    authenticate: createAuthenticate(deps),
    recordAccessDenied: (actor, requestContext, details) =>
      deps.failures.record({ action: "AUTHZ_DENIED", actor, details }, requestContext),
  };
}
