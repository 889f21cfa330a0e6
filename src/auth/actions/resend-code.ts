import type { Db, Tx } from "../../../db/client.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { Wake, Waker } from "../../outbox/schedule.ts";
import { hasCodesLeft, isCoolingDown, isOpenCode } from "../decide.ts";
import { emailDigest, normaliseEmail } from "../email.ts";
import type { ResendBody } from "../password-model.ts";
import { findCode, holdCodeLimits, type CodeRow } from "../queries/codes.ts";
import { findCodeRecipient, type MailRecipient } from "../queries/users.ts";
import { issueCode, type CodeDeps, type NewCode } from "./issue-code.ts";

export interface ResendDeps extends CodeDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly schedule: Waker;
  readonly config: Pick<Config, "otpTtlS" | "otpCooldownS">;
}

/**
 * `POST /email-otp/resend`. Does the same for every email and answers nothing of it, so that nobody learns who is a
 * user.
 */
export async function resendCode(deps: ResendDeps, body: ResendBody): Promise<void> {
  const now = deps.clock.now();
  const email = normaliseEmail(body.email);
  const wake = await deps.db.transaction((tx) => startOrRepeat(tx, deps, { ...body, email }, now));
  if (wake !== undefined) await deps.schedule.wake([wake]);
}

async function startOrRepeat(
  tx: Tx,
  deps: ResendDeps,
  { email, type }: ResendBody,
  now: Date,
): Promise<Wake | undefined> {
  const digest = emailDigest(email);
  const limits = await holdCodeLimits(tx, digest, now);
  if (!hasCodesLeft(limits, now) || isCoolingDown(limits, now, deps.config.otpCooldownS))
    return undefined;
  const last = await findCode(tx, digest, type);
  const recipient = await findCodeRecipient(tx, email);
  const to = addresseeOf(type, { recipient, last, now });
  return issueCode(tx, deps, { type, email, digest, limits, now, ...to });
}

/**
 * Decides whether to mail the code. One for a change of password is mailed only where the user has begun the change.
 */
function addresseeOf(
  type: ResendBody["type"],
  known: { recipient: MailRecipient | undefined; last: CodeRow | undefined; now: Date },
): Pick<NewCode, "isMailed" | "userId" | "brand"> {
  const { recipient, last, now } = known;
  if (type === "signup") return { isMailed: true, userId: null, brand: null };
  const isOpen = type === "forgot_password" || (isOpenCode(last, now) && last?.userId !== null);
  if (recipient === undefined || !isOpen) return { isMailed: false, userId: null, brand: null };
  return { isMailed: true, userId: recipient.userId, brand: recipient.brand };
}
