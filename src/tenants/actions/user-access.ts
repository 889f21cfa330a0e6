import { dropFactors, forgetCodeLock } from "../../auth/factors/prove-factor.ts";
import { type CodeDeps, sendPasswordReset } from "../../auth/passwords/codes.ts";
import { mailAboutLostFactors } from "../../auth/sign-in/security-mails.ts";
import { endAccess, liftLock } from "../../auth/sign-in/sessions.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { Caller } from "../../http/principal.ts";
import { Problem } from "../../lib/problem.ts";
import type { User } from "../model.ts";
import * as queries from "../queries/users.ts";
import { existing, type AdminDeps } from "./deps.ts";
import { holdChangeable } from "./last-owner.ts";

/**
 * Mails a user a link that sets a new password. The password stays valid until then. Throws `no_password` for a user
 * without a password, and for one who cannot sign in with it.
 */
export async function mailPasswordReset(
  deps: Pick<AdminDeps, "db" | "clock" | "schedule"> & CodeDeps,
  { principal: actor, requestContext }: Caller,
  { id, hasPassword }: User,
): Promise<void> {
  const now = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    const { email } = await holdChangeable(tx, id);
    if (!hasPassword) throw new Problem("no_password");
    await sendPasswordReset(tx, deps, { email, userId: id, now });
    const action = "PASSWORD_RESET_SENT";
    await recordAudit(tx, { at: now, action, actor, requestContext, details: { user_id: id } });
  });
  deps.schedule.wakeMailer();
}

/**
 * Deletes the second factors and recovery codes of a user who has lost them. All access of the user ends, because
 * another person may know the password. The user must sign in again and is notified by mail.
 */
export async function resetFactors(
  deps: Pick<AdminDeps, "db" | "clock" | "box" | "config" | "schedule">,
  { principal: actor, requestContext }: Caller,
  { id }: User,
): Promise<void> {
  const now = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    await holdChangeable(tx, id);
    const factors = await dropFactors(tx, id);
    const details = { user_id: id, factors, revoked: await endAccess(tx, [id], now) };
    const action = "SECOND_FACTORS_RESET";
    await recordAudit(tx, { at: now, action, actor, requestContext, details });
    await mailAboutLostFactors(tx, deps, { userId: id, now });
  });
  deps.schedule.wakeMailer();
}

/** Removes a user's sign-in lock (contract 4.8) and the lock of the authenticator codes before they expire. */
export async function unlockUser(
  { db, clock }: Pick<AdminDeps, "db" | "clock">,
  { principal: actor, requestContext }: Caller,
  { id, email }: User,
): Promise<User> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    await holdChangeable(tx, id);
    await liftLock(tx, email);
    await forgetCodeLock(tx, id);
    const details = { user_id: id };
    const action = "USER_UNLOCKED";
    await recordAudit(tx, { at: now, action, actor, requestContext, details });
    return existing(await queries.userById(tx, id));
  });
}
