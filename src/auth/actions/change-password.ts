import type { Tx } from "../../../db/client.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import type { Wake } from "../../outbox/schedule.ts";
import { hasCodesLeft } from "../decide.ts";
import type { Caller } from "../../http/principal.ts";
import { findCodeRecipient, findPerson } from "../queries/users.ts";
import { attemptSignIn, type AttemptDeps } from "./attempt-sign-in.ts";
import { holdCodes, issueCode } from "./issue-code.ts";
import type { ResendDeps } from "./resend-code.ts";

export interface ChangeDeps extends AttemptDeps, ResendDeps {
  readonly config: AttemptDeps["config"] & ResendDeps["config"];
}

/**
 * `POST /change-password`: a right password mails the code and changes nothing; a wrong one counts towards the lock
 * (contract 4). Whoever knows the password may ask again without a cooldown, up to the day's limit of codes.
 */
export async function requestPasswordChange(
  deps: ChangeDeps,
  { principal, call }: Caller,
  currentPassword: string,
): Promise<void> {
  const person = await findPerson(deps.db, principal.userId);
  if (person === undefined) throw new Problem("unauthenticated");
  const { email } = person;
  const outcome = await attemptSignIn(
    deps,
    { email, password: currentPassword, method: "change_password", call },
    (tx, user, now) => mailCode(tx, deps, { email, userId: user.id, now }),
  );
  if (outcome.kind === "wrong") throw invalid({ current_password: ["is wrong"] });
  if (outcome.kind === "locked") {
    const retryAfter = String(outcome.retryAfterS);
    throw new Problem("account_locked", {
      headers: { "Retry-After": retryAfter },
      errors: {
        current_password: [`is locked after too many wrong ones; try again in ${retryAfter} s`],
      },
    });
  }
  if (outcome.value !== undefined) await deps.schedule.wake([outcome.value]);
}

async function mailCode(
  tx: Tx,
  deps: ChangeDeps,
  { email, userId, now }: { email: string; userId: number; now: Date },
): Promise<Wake | undefined> {
  // The password was right, which says more than the address.
  const asked = { type: "change_password", email } as const;
  const held = await holdCodes(tx, asked, { isKnownAddress: true, now });
  if (!hasCodesLeft(held.budget, now)) return undefined;
  const brand = (await findCodeRecipient(tx, email))?.brand ?? null;
  return issueCode(tx, deps, { ...held, isMailed: true, userId, brand, now });
}
