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
  /** Whether anybody is told the code. */
  readonly isMailed: boolean;
  /** Whose password it opens; null for a signup, and where nobody is told. */
  readonly userId: number | null;
  readonly brand: string | null;
  readonly now: Date;
}

const CODES = 1_000_000;
const CODE_DIGITS = 6;
/** Where a mail that is taken back was addressed to. */
const NOBODY = "nobody@invalid";

/**
 * Replaces the code of an email and purpose and queues its mail, in one transaction. Where nobody is to be told, the
 * same is done and the mail taken back again, so that the time does not tell either (decisions.md 2, email OTP). The
 * caller holds the email's limits. Answers what to wake after the commit.
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

/** What ties a code to its email and purpose. */
export function codeContext(type: CodeType, digest: string): string {
  return `${type}:${digest}`;
}
