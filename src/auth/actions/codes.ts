import { randomInt } from "node:crypto";

import type { Db, Tx } from "../../../db/client.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { isMailAddress, MAIL_WAKE, queueMails } from "../../outbox/mail.ts";
import type { Wake, Waker } from "../../outbox/schedule.ts";
import type { CodeMac } from "../code-mac.ts";
import {
  codeBudget,
  type CodeLimits,
  hasCodesLeft,
  isCoolingDown,
  isOpenCode,
  withinWindow,
} from "../decide.ts";
import { budgetDigest, emailDigest, normaliseEmail } from "../email.ts";
import { codeMail } from "../mails.ts";
import type { CodeType, ResendBody } from "../password-model.ts";
import {
  type CodeRow,
  findCode,
  holdCodeLimits,
  keepTrial,
  openTrial,
  saveCode,
  saveIssues,
  undoTrial,
} from "../queries/codes.ts";
import { hasSignedInFrom } from "../queries/sessions.ts";
import { findCodeRecipient, type MailRecipient } from "../queries/users.ts";

interface CodeDeps {
  readonly box: SecretBox;
  readonly codes: CodeMac;
  readonly config: Pick<Config, "otpTtlS">;
}

/** The codes that were issued for an email lately, held against others who issue one until the commit. */
export interface HeldCodes {
  readonly type: CodeType;
  /** Normalised. */
  readonly email: string;
  readonly digest: string;
  /** Of all types, which share the cooldown. */
  readonly limits: CodeLimits;
  /** Of the budget that the next code is issued from. */
  readonly budget: Pick<CodeLimits, "issuedAt"> & { readonly digest: string };
}

interface NewCode extends HeldCodes {
  /** Whether the code is mailed. */
  readonly isMailed: boolean;
  /** The user whose password it may set; null for a signup, and where it is not mailed. */
  readonly userId: number | null;
  readonly brand: string | null;
  readonly now: Date;
}

const CODES = 1_000_000;
const CODE_DIGITS = 6;
/** The recipient of a mail that is queued only to be rolled back. */
const NOBODY = "nobody@invalid";

/** Holds the email and then the budget. Every caller takes the two locks in this order. */
export async function holdCodes(
  tx: Tx,
  { type, email }: Pick<HeldCodes, "type" | "email">,
  { isKnownAddress, now }: { isKnownAddress: boolean; now: Date },
): Promise<HeldCodes> {
  const digest = emailDigest(email);
  const limits = await holdCodeLimits(tx, digest, now);
  const key = budgetDigest(codeBudget(type, isKnownAddress), email);
  const { issuedAt } = await holdCodeLimits(tx, key, now);
  return { type, email, digest, limits, budget: { digest: key, issuedAt } };
}

/**
 * Replaces the code of an email and purpose and queues its mail, in one transaction. Where the code is not mailed, the
 * mail is queued as well and rolled back, so that the time of an answer shows no difference (contract 4.14).
 * Answers what to wake after the commit.
 */
export async function issueCode(tx: Tx, deps: CodeDeps, one: NewCode): Promise<Wake> {
  const { type, digest, email, userId, now } = one;
  const ttlS = deps.config.otpTtlS;
  const code = String(randomInt(CODES)).padStart(CODE_DIGITS, "0");
  const expiresAt = addMs(now, ttlS * 1000);
  const codeMac = deps.codes.sign(code, codeContext(type, digest));
  await saveCode(tx, { emailDigest: digest, type, userId, codeMac, issuedAt: now, expiresAt });
  await saveIssues(tx, digest, [...withinWindow(one.limits.issuedAt, now), now]);
  await saveIssues(tx, one.budget.digest, [...withinWindow(one.budget.issuedAt, now), now]);
  const isMailed = one.isMailed && isMailAddress(email);
  const to = isMailAddress(email) ? email : NOBODY;
  await openTrial(tx);
  await queueMails(tx, deps, [codeMail({ to, type, code, expiresAt, ttlS }, one.brand)], now);
  await (isMailed ? keepTrial : undoTrial)(tx);
  return MAIL_WAKE;
}

/** The context of a code's MAC, which ties the code to its email and purpose. */
export function codeContext(type: CodeType, digest: string): string {
  return `${type}:${digest}`;
}

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
  requestContext: RequestContext,
): Promise<void> {
  const asked = {
    email: normaliseEmail(typed),
    type,
    ip: requestContext.ip,
    now: deps.clock.now(),
  };
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
