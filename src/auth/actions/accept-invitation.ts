import type { Call } from "../../http/call.ts";
import { Problem } from "../../lib/problem.ts";
import { hashSecret } from "../../lib/random-secret.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { ResetAnswer } from "../model.ts";
import type { AcceptBody } from "../password-model.ts";
import { consumeInvitation, findInvited } from "../queries/invitations.ts";
import { changePassword } from "../queries/users.ts";
import { openOwnSession } from "./open-session.ts";
import type { ResetDeps } from "./reset-password.ts";

/** `POST /auth/invitation`: sets the first password and signs in. Every failure of the code is the same 400. */
export async function acceptInvitation(
  deps: Omit<ResetDeps, "schedule" | "box">,
  { code, password }: AcceptBody,
  call: Call,
): Promise<ResetAnswer> {
  const codeHash = hashSecret(code);
  // This comes first, so that nobody without an invitation has a password hashed.
  const userId = await findInvited(deps.db, codeHash, deps.clock.now());
  if (userId === undefined) throw new Problem("invalid_code");
  const hash = await deps.passwords.hash(password);
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    // The row of the user is held from here on: of a reset and this one the second finds the invitation gone.
    const person = await changePassword(tx, { userId, hash, now });
    if (person === undefined || !(await consumeInvitation(tx, codeHash, now)))
      throw new Problem("invalid_code");
    const actor = { userId, companyId: person.companyId, impersonatorId: null };
    const details = { method: "invitation", revoked: 0 };
    await recordAudit(tx, { at: now, action: "PASSWORD_RESET", actor, call, details });
    const signIn = { user: person, method: "password_reset", call, now } as const;
    const { location_count: _, ...answer } = await openOwnSession(tx, deps, signIn);
    return answer;
  });
}
