import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../queries/audit.ts";
import type { Caller } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { Passwords } from "../../lib/password.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { queueMails } from "../../outbox/mail.ts";
import type { Waker } from "../../outbox/schedule.ts";
import { hasCodesLeft } from "../decide.ts";
import { emailDigest } from "../email.ts";
import type { KeyRing } from "../key-ring.ts";
import { passwordChangedMail } from "../mails.ts";
import type { ResetAnswer } from "../model.ts";
import { contextError } from "../password-model.ts";
import * as access from "../queries/sessions.ts";
import {
  changePassword,
  deleteInvitationOf,
  findCodeRecipient,
  findPasswordContext,
  findMailRecipient,
  findPerson,
  type PersonRow,
} from "../queries/users.ts";
import { forgetLock } from "../queries/sign-in.ts";
import { holdToken } from "../queries/tokens.ts";
import { holdCodes, issueCode, type ResendDeps } from "./codes.ts";
import { type AttemptDeps, attemptSignIn } from "./log-in.ts";
import { openOwnSession } from "./open-session.ts";
import { secondStep, type SecondStep, type SecondStepDeps, signedInOr } from "./second-step.ts";

export interface ResetDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly keys: KeyRing;
  readonly passwords: Passwords;
  readonly schedule: Waker;
  readonly config: Pick<Config, "accessTokenTtlS"> & SecondStepDeps["config"];
}

interface Reset extends Caller {
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
    // If two resets use the same token, the second reset finds the token deleted.
    if (person === undefined || !(await holdToken(tx, principal.jti)))
      throw new Problem("unauthenticated");
    await endEverything(tx, person, { principal, requestContext, now });
    await tellOfReset(tx, deps, person, now);
    return freshSession(tx, deps, person, { requestContext, now });
  });
  deps.schedule.wakeMailer();
  return signedInOr(answer);
}

/** Rejects a new password that hardly differs from names of the user and the companies (contract 4.17). */
export async function checkContext(db: Db, userId: number, password: string): Promise<void> {
  const error = contextError(password, (await findPasswordContext(db, userId)) ?? []);
  if (error !== undefined) throw invalid({ password: [error] });
}

async function endEverything(
  tx: Tx,
  { id, email, companyId }: PersonRow,
  { principal, requestContext, now }: Reset,
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

/** Signs a user in whose password was just set, or asks for a second factor. */
export async function freshSession(
  tx: Tx,
  deps: Pick<ResetDeps, "keys" | "config">,
  user: Pick<PersonRow, "id" | "companyId">,
  { requestContext, now }: Pick<Reset, "requestContext" | "now">,
): Promise<ResetAnswer | SecondStep> {
  const method = "password_reset";
  const step = await secondStep(tx, deps, { userId: user.id, method, now });
  if (step !== undefined) return step;
  const signIn = { user, method, requestContext, now } as const;
  const { location_count: _, ...answer } = await openOwnSession(tx, deps, signIn);
  return answer;
}

async function tellOfReset(
  tx: Tx,
  deps: Pick<ResetDeps, "box">,
  { email }: PersonRow,
  now: Date,
): Promise<void> {
  const brand = (await findMailRecipient(tx, email))?.brand ?? null;
  await queueMails(tx, deps, [passwordChangedMail(email, brand)], now);
}

export interface ChangeDeps extends AttemptDeps, ResendDeps {
  readonly config: AttemptDeps["config"] & ResendDeps["config"];
}

/**
 * Handles `POST /change-password`. A correct password mails a code and changes nothing yet; a wrong password counts
 * towards the sign-in lock (contract 4). A user who knows the password has no cooldown between codes, only the daily
 * limit.
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
        current_password: [`is locked after too many wrong ones; try again in ${retryAfter} s`],
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
  const brand = (await findCodeRecipient(tx, email))?.brand ?? null;
  await issueCode(tx, deps, { ...held, isMailed: true, userId, brand, now });
}
