import { randomInt } from "node:crypto";

import type { Tx } from "../../../db/client.ts";
import { addMs } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { isMailAddress, MAIL_WAKE, queueMail } from "../../outbox/mail.ts";
import type { Wake } from "../../outbox/schedule.ts";
import type { CodeMac } from "../code-mac.ts";
import { withinWindow, type CodeLimits } from "../decide.ts";
import { codeMail } from "../mails.ts";
import type { CodeType } from "../password-model.ts";
import { keepTrial, openTrial, saveCode, saveIssues, undoTrial } from "../queries/codes.ts";

export interface CodeDeps {
  readonly box: SecretBox;
  readonly codes: CodeMac;
  readonly config: Pick<Config, "otpTtlS">;
}

export interface NewCode {
  readonly type: CodeType;
  /** Normalised. */
  readonly email: string;
  readonly digest: string;
  readonly limits: CodeLimits;
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

/**
 * Replaces the code of an email and purpose and queues its mail, in one transaction. Where the code is not mailed, the
 * mail is queued as well and rolled back, so that the time of an answer shows no difference (contract 4.14).
 * The caller holds the email's limits. Answers what to wake after the commit.
 */
export async function issueCode(tx: Tx, deps: CodeDeps, one: NewCode): Promise<Wake> {
  const { type, digest, email, userId, now } = one;
  const ttlS = deps.config.otpTtlS;
  const code = String(randomInt(CODES)).padStart(CODE_DIGITS, "0");
  const expiresAt = addMs(now, ttlS * 1000);
  const codeMac = deps.codes.sign(code, codeContext(type, digest));
  await saveCode(tx, { emailDigest: digest, type, userId, codeMac, issuedAt: now, expiresAt });
  await saveIssues(tx, digest, [...withinWindow(one.limits.issuedAt, now), now]);
  const isMailed = one.isMailed && isMailAddress(email);
  const to = isMailAddress(email) ? email : NOBODY;
  await openTrial(tx);
  await queueMail(tx, deps, codeMail({ to, type, code, expiresAt, ttlS }, one.brand), now);
  await (isMailed ? keepTrial : undoTrial)(tx);
  return MAIL_WAKE;
}

/** The context of a code's MAC, which ties the code to its email and purpose. */
export function codeContext(type: CodeType, digest: string): string {
  return `${type}:${digest}`;
}
