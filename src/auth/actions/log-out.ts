import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { Call } from "../../http/route.ts";
import type { Clock } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import type { Principal } from "../model.ts";
import { deleteRefreshTokens, lockFamily, stampLogout } from "../queries/sessions.ts";
import { deleteToken } from "../queries/tokens.ts";

/** `GET /logout`: ends the token and its family's refresh token (interface.md 4.1, decisions.md 2). */
export async function logOut(
  deps: { db: Db; clock: Clock },
  principal: Principal,
  call: Call,
): Promise<void> {
  const { userId, jti, familyId, impersonatorId } = principal;
  const now = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    if (familyId !== null) await lockFamily(tx, familyId);
    // Of two logouts with one token the second comes with a token that is no more.
    if (!(await deleteToken(tx, jti))) throw new Problem("unauthenticated");
    if (familyId !== null) await deleteRefreshTokens(tx, familyId);
    await stampLogout(tx, { userId, impersonated: impersonatorId !== null, at: now });
    await recordAudit(tx, {
      at: now,
      action: "AUTH_LOGOUT",
      actor: principal,
      call,
      details: { jti },
    });
  });
}
