import type { Db, Tx } from "../../../db/client.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { Wake, Waker } from "../../outbox/schedule.ts";
import type { Call } from "../../http/call.ts";
import { hasCodesLeft, isCoolingDown, isOpenCode } from "../decide.ts";
import { normaliseEmail } from "../email.ts";
import type { ResendBody } from "../password-model.ts";
import { findCode, type CodeRow } from "../queries/codes.ts";
import { hasSignedInFrom } from "../queries/sessions.ts";
import { findCodeRecipient, type MailRecipient } from "../queries/users.ts";
import { holdCodes, issueCode, type CodeDeps, type NewCode } from "./issue-code.ts";

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
export async function resendCode(
  deps: ResendDeps,
  { email: typed, type }: ResendBody,
  call: Call,
): Promise<void> {
  const asked = { email: normaliseEmail(typed), type, ip: call.ip, now: deps.clock.now() };
  const wake = await deps.db.transaction((tx) => startOrRepeat(tx, deps, asked));
  if (wake !== undefined) await deps.schedule.wake([wake]);
}

async function startOrRepeat(
  tx: Tx,
  deps: ResendDeps,
  { email, type, ip, now }: ResendBody & { ip: string; now: Date },
): Promise<Wake | undefined> {
  const isKnownAddress = await hasSignedInFrom(tx, email, ip);
  const held = await holdCodes(tx, { type, email }, { isKnownAddress, now });
  if (!hasCodesLeft(held.budget, now) || isCoolingDown(held.limits, now, deps.config.otpCooldownS))
    return undefined;
  const last = await findCode(tx, held.digest, type);
  const recipient = await findCodeRecipient(tx, email);
  return issueCode(tx, deps, { ...held, now, ...addresseeOf(type, { recipient, last, now }) });
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
