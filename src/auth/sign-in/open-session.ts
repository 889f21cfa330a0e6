import { randomBytes } from "node:crypto";
import { ulid } from "ulid";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Principal, SignInMethod, TokenKind } from "../../http/principal.ts";
import { addMs } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { claimsOf, type KeyRing } from "../keys/key-ring.ts";
import type { LoginAnswer, SessionContext } from "../model.ts";
import { holdToken, insertToken } from "../tokens/queries.ts";
import { holdUser } from "../user-queries.ts";
import { type ContextRow, findContext, insertAuthenticationEvent } from "./queries.ts";

export interface SessionDeps {
  readonly keys: KeyRing;
  readonly config: Pick<Config, "accessTokenTtlS">;
}

interface SignIn {
  readonly user: { readonly id: number; readonly companyId: number };
  readonly method: SignInMethod;
  readonly clientId: string | null;
  readonly scope: string;
  readonly requestContext: RequestContext;
  /** Whether the person proved a second factor in this sign-in. */
  readonly hasProved?: boolean;
  readonly now: Date;
}

/** Opens a session for the service's own pages and returns the login response that these pages read (contract 4.6). */
export async function openOwnSession(
  tx: Tx,
  deps: SessionDeps,
  signIn: Omit<SignIn, "clientId" | "scope">,
): Promise<LoginAnswer> {
  const { token } = await openSession(tx, deps, { ...signIn, clientId: null, scope: "*" });
  const { context, locationCount } = await readContext(tx, signIn.user.id);
  const fresh = { token, token_type: "Bearer", expires_in: deps.config.accessTokenTtlS } as const;
  return { ...fresh, ...context, location_count: locationCount };
}

/** Records a sign-in and issues its access token, the first token of a new token family. */
export async function openSession(
  tx: Tx,
  deps: SessionDeps,
  { user, method, clientId, scope, requestContext, hasProved = false, now }: SignIn,
): Promise<IssuedToken & { familyId: string }> {
  const familyId = ulid(now.getTime());
  const { ip, userAgent } = requestContext;
  await insertAuthenticationEvent(tx, {
    id: familyId,
    userId: user.id,
    method,
    clientId,
    ip,
    userAgent,
    at: now,
    // A sign-in through an identity provider counts as a proof of a second factor (contract 4.27).
    factorAt: hasProved || method === "sso" ? now : null,
  });
  const issued = await issueToken(tx, deps.keys, {
    kind: "access",
    userId: user.id,
    familyId,
    clientId,
    impersonatorId: null,
    scope,
    ttlS: deps.config.accessTokenTtlS,
    now,
  });
  await recordAudit(tx, {
    at: now,
    action: "AUTH_LOGIN",
    actor: { userId: user.id, companyId: user.companyId, impersonatorId: null },
    requestContext,
    details: { method, jti: issued.jti },
  });
  return { ...issued, familyId };
}

/** Length of a token id (`jti`) in bytes, before base64url encoding (contract 4.1). */
const JTI_BYTES = 16;

export interface TokenGrant {
  readonly kind: TokenKind;
  readonly userId: number;
  /** The sign-in (token family) that the token belongs to; null for a token outside of a sign-in session. */
  readonly familyId: string | null;
  readonly clientId: string | null;
  readonly impersonatorId: number | null;
  /**
   * The parent: the token that creates this token. When the parent ends, this token ends too (contract 4.23). The
   * caller must have locked the parent with `holdToken`.
   */
  readonly parentJti?: string;
  readonly scope: string;
  /** Dashboard pages to which the token of a portal session is limited; absent for other tokens. */
  readonly pages?: readonly string[];
  /** The lifetime of the token in seconds; null for a token that never expires. */
  readonly ttlS: number | null;
  readonly now: Date;
  /** The name that the user gave to a personal access token of the API. */
  readonly name?: string;
  /**
   * The encryption box, given only for the dashboard's personal access token. The token is stored encrypted in its
   * row, so that the user can view it again.
   */
  readonly box?: SecretBox;
}

export interface IssuedToken {
  readonly token: string;
  readonly jti: string;
  readonly expiresAt: Date | null;
}

/**
 * Signs a JWT and inserts the database row that makes it valid. The caller writes the audit row, because only the
 * caller knows the purpose of the token. The caller must also hold the lock on the user's row (`holdUser` or
 * `holdPassword`): without this lock, a concurrent password reset would miss the new token.
 */
export async function issueToken(tx: Tx, keys: KeyRing, grant: TokenGrant): Promise<IssuedToken> {
  const { name = null, parentJti = null, pages, box, ttlS, now, ...rest } = grant;
  const jti = randomBytes(JTI_BYTES).toString("base64url");
  const expiresAt = ttlS === null ? null : addMs(now, ttlS * 1000);
  const held = { parentJti, pages: pages ? [...pages] : null };
  const row = { ...rest, ...held, jti, issuedAt: now, expiresAt };
  const type = grant.kind === "refresh" ? "rt+jwt" : "at+jwt";
  const { token, kid } = await keys.sign(type, claimsOf(row, jti));
  const sealedToken = box?.seal(token, sealedTokenContext(row)) ?? null;
  await insertToken(tx, { ...row, kid, name, sealedToken });
  return { token, jti, expiresAt };
}

/**
 * Returns the associated data with which a dashboard token is encrypted, so that the ciphertext cannot be decrypted
 * in another row or for another user.
 */
export function sealedTokenContext({ jti, userId }: { jti: string; userId: number }): string {
  return `api-token:${userId}:${jti}`;
}

/**
 * Loads the data about the user and the company that the responses of login, token verification and password reset
 * contain (contract 4.5).
 */
export async function readContext(
  db: DbOrTx,
  userId: number,
): Promise<{ context: SessionContext; locationCount: number }> {
  const row = await findContext(db, userId);
  if (row === undefined) throw new Error(`User ${userId} does not exist.`);
  return { context: contextOf(row), locationCount: countLocations(row) };
}

/**
 * Returns the `location_count` of the login response. For a user of an account it is the number of the user's own
 * stores, for every other user the number of all stores of the tenant.
 */
function countLocations(row: ContextRow): number {
  return row.companyType === "account" ? row.storeIds.length : row.tenantStores;
}

function contextOf(row: ContextRow): SessionContext {
  return {
    user: {
      id: row.id,
      email: row.email,
      name: row.name,
      role: row.role,
      company_id: row.companyId,
      store_ids: [...row.storeIds],
    },
    company: {
      id: row.companyId,
      type: row.companyType,
      name: row.companyName,
      partner_id: row.partnerId,
    },
    theme: { primary_color: row.primaryColor, logo_url: row.logoUrl },
    white_label: {
      enabled: row.whiteLabelEnabled,
      brand_name: row.brandName,
      domain: row.whiteLabelDomain,
    },
    ...planOf(row),
  };
}

/** Returns the plan for the login response. Only account companies have a plan (contract 4.5). */
function planOf({ planId, planName, planFeatures }: ContextRow): Pick<SessionContext, "plan"> {
  if (planId === null || planName === null || planFeatures === null) return {};
  return { plan: { id: planId, name: planName, features: [...planFeatures] } };
}

/**
 * Locks the caller's user and token. A transaction that issues a token on the authority of the caller's token must call
 * this first. Afterwards the caller's token is known to be live, and a password reset or a revocation waits for the
 * commit. The token is checked after the lock on the user, because a reset may have committed while this transaction
 * waited for that lock.
 */
export async function holdCaller(tx: Tx, principal: Principal): Promise<void> {
  if (!(await holdUser(tx, principal.userId)) || !(await holdToken(tx, principal.jti)))
    throw new Problem("unauthenticated");
}
