import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import { deleteRefreshTokens, lockFamily, stampLogout } from "../queries/sessions.ts";
import { deleteToken } from "../queries/tokens.ts";

interface SignOutDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/** `GET /logout` ends the token and the refresh token of its family (contract 4.11). */
export async function logOut(deps: SignOutDeps, { principal, call }: Caller): Promise<void> {
  const { userId, jti, impersonatorId } = principal;
  const at = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    await endToken(tx, principal);
    await stampLogout(tx, { userId, impersonated: impersonatorId !== null, at });
    const details = { jti };
    await recordAudit(tx, { at, action: "AUTH_LOGOUT", actor: principal, call, details });
  });
}

/** `GET /sso/revoking-token` ends the same tokens, but is audited as a revocation and not as a logout. */
export async function revokeOwnToken(
  deps: SignOutDeps,
  { principal, call }: Caller,
): Promise<void> {
  const { jti, tokenKind: kind } = principal;
  const at = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    await endToken(tx, principal);
    const details = { kind, jti };
    await recordAudit(tx, { at, action: "TOKEN_REVOKED", actor: principal, call, details });
  });
}

async function endToken(tx: Tx, { jti, familyId }: Principal): Promise<void> {
  if (familyId !== null) await lockFamily(tx, familyId);
  // Of two calls with one token the second one finds it deleted.
  if (!(await deleteToken(tx, jti))) throw new Problem("unauthenticated");
  if (familyId !== null) await deleteRefreshTokens(tx, familyId);
}
