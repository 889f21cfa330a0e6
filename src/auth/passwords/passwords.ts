import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { Caller } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { Passwords } from "../../lib/password.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { queueMails } from "../../outbox/mail.ts";
import type { Waker } from "../../outbox/schedule.ts";
import { hasCodesLeft } from "../decide.ts";
import { emailDigest } from "../email.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import { passwordChangedMail } from "./mails.ts";
import type { ResetAnswer } from "../model.ts";
import { contextError } from "./model.ts";
import * as access from "../sign-in/session-queries.ts";
import {
  changePassword,
  deleteInvitationOf,
  findCodeRecipient,
  findPasswordContext,
  findMailRecipient,
  findPerson,
  type PersonRow,
} from "../user-queries.ts";
import { forgetLock } from "../sign-in/queries.ts";
import { holdToken } from "../tokens/queries.ts";
import { holdCodes, issueCode, type ResendDeps } from "./codes.ts";
import { type AttemptDeps, attemptSignIn } from "../sign-in/log-in.ts";
import { openOwnSession } from "../sign-in/open-session.ts";
import {
  secondStep,
  type SecondStep,
  type SecondStepDeps,
  signedInOr,
} from "../factors/second-step.ts";

export interface ResetDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly keys: KeyRing;
  readonly passwords: Passwords;
  readonly schedule: Waker;
  readonly config: Pick<Config, "accessTokenTtlS" | "serverRoot"> & SecondStepDeps["config"];
}

interface PasswordReset extends Caller {
  readonly now: Date;
}

/**
 * Handles `POST /reset-password`. One transaction stores the new password hash, ends every token and code of the
 * user, and issues one new token (contract 4.15), or a challenge token if the user needs a second factor.
 */
export async function resetPassword(
  deps: ResetDeps,
  { principal, requestContext }: Caller,
  password: string,
): Promise<ResetAnswer> {
  await checkContext(deps.db, principal.userId, password);
  const hash = await deps.passwords.hash(password, requestContext.ip);
  const now = deps.clock.now();
  const answer = await deps.db.transaction(async (tx) => {
    // The password must be changed by the first statement. A transaction that issues a token holds the lock on the
    // user's row, so the reset waits for that transaction and then also revokes its token.
    const person = await changePassword(tx, { userId: principal.userId, hash, now });
    // If two resets use the same token, the second one finds the token deleted and gets a 401.
    if (person === undefined || !(await holdToken(tx, principal.jti)))
      throw new Problem("unauthenticated");
    await endEverything(tx, person, { principal, requestContext, now });
    const session = await freshSession(tx, deps, person, { requestContext, now });
    const isSignedIn = !("challenge" in session);
    await mailAboutReset(tx, deps, person, { isSignedIn, requestContext, now });
    return session;
  });
  deps.schedule.wakeMailer();
  return signedInOr(answer);
}

/**
 * Throws a validation error if a new password is too short without the email and the names of the user and the
 * companies in it (contract 4.17).
 */
export async function checkContext(db: Db, userId: number, password: string): Promise<void> {
  const error = contextError(password, (await findPasswordContext(db, userId)) ?? []);
  if (error !== undefined) throw invalid({ password: [error] });
}

async function endEverything(
  tx: Tx,
  { id, email, companyId }: PersonRow,
  { principal, requestContext, now }: PasswordReset,
): Promise<void> {
  const revoked = await access.deleteTokensOf(tx, [id]);
  await access.consumeCodesOf(tx, [id], now);
  await access.consumeSsoCodesOf(tx, [id], now);
  await access.deleteAuthorizationCodesOf(tx, [id]);
  await deleteInvitationOf(tx, id);
  await forgetLock(tx, emailDigest(email));
  await recordAudit(tx, {
    at: now,
    action: "PASSWORD_RESET",
    actor: { userId: id, companyId, impersonatorId: null },
    requestContext,
    details: { method: principal.tokenKind, revoked },
  });
}

/** Opens a session for a user who has just set a password, or returns the challenge if a second factor is needed. */
export async function freshSession(
  tx: Tx,
  deps: Pick<ResetDeps, "keys" | "config">,
  user: Pick<PersonRow, "id" | "companyId">,
  { requestContext, now }: Pick<PasswordReset, "requestContext" | "now">,
): Promise<ResetAnswer | SecondStep> {
  const method = "password_reset";
  const step = await secondStep(tx, deps, { userId: user.id, method, now });
  if (step !== undefined) return step;
  const signIn = { user, method, requestContext, now } as const;
  const { location_count: _, ...answer } = await openOwnSession(tx, deps, signIn);
  return answer;
}

async function mailAboutReset(
  tx: Tx,
  deps: Pick<ResetDeps, "box" | "config">,
  { email: to }: PersonRow,
  change: Pick<PasswordReset, "requestContext" | "now"> & { readonly isSignedIn: boolean },
): Promise<void> {
  const recipient = await findMailRecipient(tx, to);
  if (recipient === undefined) return;
  const { serverRoot } = deps.config;
  const mail = passwordChangedMail({ to, serverRoot, ...change }, recipient);
  await queueMails(tx, deps, [mail], change.now);
}

export interface ChangeDeps extends AttemptDeps, ResendDeps {
  readonly config: AttemptDeps["config"] & ResendDeps["config"];
}

/**
 * Handles `POST /change-password`. If the current password is correct, the handler mails a code and changes nothing
 * yet. A wrong password counts towards the sign-in lock (contract 4). A user who knows the password has no cooldown
 * between codes, only the daily limit.
 */
export async function requestPasswordChange(
  deps: ChangeDeps,
  { principal, requestContext }: Caller,
  currentPassword: string,
): Promise<void> {
  const person = await findPerson(deps.db, principal.userId);
  if (person === undefined) throw new Problem("unauthenticated");
  const { email } = person;
  const outcome = await attemptSignIn(
    deps,
    { email, password: currentPassword, method: "change_password", requestContext },
    (tx, user, now) => mailCode(tx, deps, { email, userId: user.id, now }),
  );
  if (outcome.kind === "wrong") throw invalid({ current_password: ["is wrong"] });
  if (outcome.kind === "locked") {
    const retryAfter = String(outcome.retryAfterS);
    throw new Problem("account_locked", {
      headers: { "Retry-After": retryAfter },
      errors: {
        current_password: [
          `is locked after too many wrong passwords; try again in ${retryAfter} s`,
        ],
      },
    });
  }
  deps.schedule.wakeMailer();
}

async function mailCode(
  tx: Tx,
  deps: ChangeDeps,
  { email, userId, now }: { email: string; userId: number; now: Date },
): Promise<void> {
  // A correct password is stronger evidence than a known network address, so the code is taken from the budget for
  // known addresses.
  const request = { type: "change_password", email } as const;
  const held = await holdCodes(tx, request, { isKnownAddress: true, now });
  if (!hasCodesLeft(held.budget, now)) return;
  const recipient = await findCodeRecipient(tx, email);
  await issueCode(tx, deps, { ...held, isMailed: true, userId, recipient, now });
}
