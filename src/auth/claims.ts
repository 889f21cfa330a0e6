import type { TokenRow } from "./queries/tokens.ts";

/**
 * The JWT types: that of RFC 9068 for access tokens, and a private type for refresh tokens, which are JWTs as well
 * (contract 4.1).
 */
export type TokenType = "at+jwt" | "rt+jwt";

/**
 * The `client_id` claim of tokens that the service issues to its own pages. RFC 9068, 2.2 requires the claim in every
 * token.
 */
const OWN_CLIENT_ID = "reviewrelay";

/** JWT claims that differ between tokens. `iss` and `aud` are the same in all tokens, and the signer adds `iat`. */
export interface Claims {
  readonly sub: string;
  readonly jti: string;
  readonly exp: number | undefined;
  readonly client_id: string;
  readonly scope: string;
  readonly act: { readonly sub: string } | undefined;
}

/**
 * Highest accepted lead, in seconds, of a token's `iat` over this machine's clock. The signer's machine sets `iat`,
 * and working clocks do not differ by more.
 */
const MAX_AHEAD_S = 300;

/** Matches every token id (`jti`) that the service issues; a text with other characters cannot be in the database. */
const JTI = /^[\w-]+$/;

type ClaimedRow = Pick<TokenRow, "userId" | "clientId" | "scope" | "impersonatorId" | "expiresAt">;

export function claimsOf(row: ClaimedRow, jti: string): Claims {
  return {
    sub: String(row.userId),
    jti,
    exp: row.expiresAt === null ? undefined : epochS(row.expiresAt),
    client_id: row.clientId ?? OWN_CLIENT_ID,
    scope: row.scope,
    act: row.impersonatorId === null ? undefined : { sub: String(row.impersonatorId) },
  };
}

/**
 * Reads the claims of a JWT payload. Its signature, `iss`, `aud`, `exp` and `nbf` must be verified already. Returns
 * undefined if the payload does not have the form that the service issues.
 */
export function readClaims(
  payload: Readonly<Record<string, unknown>>,
  now: Date,
): Claims | undefined {
  const { sub, jti, exp, iat, client_id, scope, act } = payload;
  if (typeof sub !== "string" || typeof jti !== "string" || typeof iat !== "number")
    return undefined;
  if (typeof client_id !== "string" || typeof scope !== "string") return undefined;
  if (!JTI.test(jti)) return undefined;
  if (iat > epochS(now) + MAX_AHEAD_S) return undefined;
  if (exp !== undefined && typeof exp !== "number") return undefined;
  const actor = readActor(act);
  return actor === "malformed" ? undefined : { sub, jti, exp, client_id, scope, act: actor };
}

function readActor(act: unknown): Claims["act"] | "malformed" {
  if (act === undefined) return undefined;
  if (typeof act !== "object" || act === null || !("sub" in act)) return "malformed";
  return typeof act.sub === "string" ? { sub: act.sub } : "malformed";
}

/**
 * Returns whether the claims sub, client, scope, act and exp equal those in the token's database row (contract 4.3).
 */
export function claimsMatch(claims: Claims, row: ClaimedRow): boolean {
  const expected = claimsOf(row, claims.jti);
  return (
    claims.sub === expected.sub &&
    claims.exp === expected.exp &&
    claims.client_id === expected.client_id &&
    claims.scope === expected.scope &&
    claims.act?.sub === expected.act?.sub
  );
}

function epochS(at: Date): number {
  return Math.floor(at.getTime() / 1000);
}
