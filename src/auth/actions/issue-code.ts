import { randomInt } from "node:crypto";

import type { Tx } from "../../../db/client.ts";
import { addMs } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { isMailAddress, MAIL_WAKE, queueMails } from "../../outbox/mail.ts";
import type { Wake } from "../../outbox/schedule.ts";
import type { CodeMac } from "../code-mac.ts";
import { codeBudget, withinWindow, type CodeLimits } from "../decide.ts";
import { budgetDigest, emailDigest } from "../email.ts";
import { codeMail } from "../mails.ts";
import type { CodeType } from "../password-model.ts";
import {
  holdCodeLimits,
  keepTrial,
  openTrial,
  saveCode,
  saveIssues,
  undoTrial,
} from "../queries/codes.ts";

export interface CodeDeps {
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

export interface NewCode extends HeldCodes {
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
