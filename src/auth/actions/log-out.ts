import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import { deleteFamily, lockFamily, stampLogout } from "../queries/sessions.ts";
import { deleteToken } from "../queries/tokens.ts";

interface SignOutDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/** `GET /logout` ends the sign-in with all its tokens; a personal access token alone (contract 4.11). */
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

/** `GET /sso/revoking-token` ends the same, but is audited as a revocation and not as a logout. */
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

/** The lock on the family keeps a refresh from leaving a token behind. */
async function endSignIn(tx: Tx, familyId: string): Promise<boolean> {
  await lockFamily(tx, familyId);
  return (await deleteFamily(tx, familyId)) > 0;
}

async function endToken(tx: Tx, { jti, familyId }: Principal): Promise<void> {
  const isEnded = await (familyId === null ? deleteToken(tx, jti) : endSignIn(tx, familyId));
  // Of two calls with one token the second one finds it deleted.
  if (!isEnded) throw new Problem("unauthenticated");
}
