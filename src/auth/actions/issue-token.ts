import { randomBytes } from "node:crypto";

import type { Tx } from "../../../db/client.ts";
import { addMs } from "../../lib/clock.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { claimsOf } from "../claims.ts";
import type { KeyRing } from "../key-ring.ts";
import type { TokenKind } from "../../http/principal.ts";
import { insertToken } from "../queries/tokens.ts";

/** See contract 4.1. */
const JTI_BYTES = 16;

export interface TokenGrant {
  readonly kind: TokenKind;
  readonly userId: number;
  /** The sign-in that the token comes from; null where it stands alone. */
  readonly familyId: string | null;
  readonly clientId: string | null;
  readonly impersonatorId: number | null;
  /** The token that makes this one, which ends with it (contract 4.23). The caller holds it (`holdToken`). */
  readonly parentJti?: string;
  readonly scope: string;
  /** Of a portal link's session: what it is held to. */
  readonly pages?: readonly string[];
  /** Null for a token that never expires. */
  readonly ttlS: number | null;
  readonly now: Date;
  /** The name of a personal access token of the API. */
  readonly name?: string;
  /** Given for the dashboard's personal access token: seals it into its row, from which its user can view it again. */
  readonly box?: SecretBox;
}

export interface IssuedToken {
  readonly token: string;
  readonly jti: string;
  readonly expiresAt: Date | null;
}

/**
 * Signs a JWT and writes the row that it lives by. The caller audits it, because only the caller knows what it is for;
 * and the caller holds the user's row (`holdUser`, `holdPassword`), else a password reset meanwhile would miss the
 * token.
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

/** The context that a dashboard token is sealed in: it does not open in another row or for another user. */
export function sealedTokenContext({ jti, userId }: { jti: string; userId: number }): string {
  return `api-token:${userId}:${jti}`;
}
