import type { TokenRow } from "./queries/tokens.ts";

/** RFC 9068 for access tokens; refresh tokens are JWTs too, told apart by their type (contract 4.1). */
export type TokenType = "at+jwt" | "rt+jwt";

/** `client_id` of the tokens that the service issues to its own pages: the claim is never absent (RFC 9068, 2.2). */
const OWN_CLIENT_ID = "reviewrelay";

/** The claims that differ between tokens: `iss` and `aud` are the same in all of them, and the signer adds `iat`. */
export interface Claims {
  readonly sub: string;
  readonly jti: string;
  readonly exp: number | undefined;
  readonly client_id: string;
  readonly scope: string;
  readonly act: { readonly sub: string } | undefined;
}

/**
 * How far ahead of our clock `iat` may be: the signer's clock stamps it, and clocks that work are not further apart.
 */
const MAX_AHEAD_S = 300;

/** The characters that a jti of ours has; a text with any other cannot be in the database. */
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

/** The claims of a payload whose signature, `iss`, `aud`, `exp` and `nbf` are verified; undefined if it is not ours. */
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

/** Contract 4.3: sub, client, scope, act and exp must equal the row's. */
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
