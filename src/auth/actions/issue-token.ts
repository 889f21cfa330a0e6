import { randomBytes } from "node:crypto";

import type { Tx } from "../../../db/client.ts";
import { addMs } from "../../lib/clock.ts";
import { claimsOf } from "../claims.ts";
import type { KeyRing } from "../key-ring.ts";
import type { TokenKind } from "../model.ts";
import { insertToken } from "../queries/tokens.ts";

/** decisions.md 2, JWT. */
const JTI_BYTES = 16;

export interface TokenGrant {
  readonly kind: TokenKind;
  readonly userId: number;
  /** The sign-in that the token comes from; null where it stands alone. */
  readonly familyId: string | null;
  readonly clientId: string | null;
  readonly impersonatorId: number | null;
  readonly scope: string;
  /** Null: it never expires. */
  readonly ttlS: number | null;
  readonly now: Date;
}

export interface IssuedToken {
  readonly token: string;
  readonly jti: string;
  readonly expiresAt: Date | null;
}

/** Signs a JWT and writes the row that it lives by. The caller audits it: only it knows what the token is for. */
export async function issueToken(tx: Tx, keys: KeyRing, grant: TokenGrant): Promise<IssuedToken> {
  const jti = randomBytes(JTI_BYTES).toString("base64url");
  const expiresAt = grant.ttlS === null ? null : addMs(grant.now, grant.ttlS * 1000);
  const { kind, userId, familyId, clientId, impersonatorId, scope, now } = grant;
  const row = {
    jti,
    kind,
    userId,
    familyId,
    clientId,
    impersonatorId,
    scope,
    issuedAt: now,
    expiresAt,
  };
  const type = kind === "refresh" ? "rt+jwt" : "at+jwt";
  const { token, kid } = await keys.sign(type, claimsOf(row, jti));
  await insertToken(tx, { ...row, kid });
  return { token, jti, expiresAt };
}
