import { randomInt, createHmac, hkdfSync } from "node:crypto";

import type { Db, Tx } from "../../../db/client.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { isMailAddress } from "../../lib/email.ts";
import type { Digest } from "../../lib/kind-key.ts";
import { Problem } from "../../lib/problem.ts";
import { type SecretBox, equalInConstantTime } from "../../lib/secrets.ts";
import { queueMails } from "../../outbox/mail.ts";
import type { Waker } from "../../outbox/schedule.ts";
import {
  codeBudget,
  type CodeLimits,
  hasCodesLeft,
  isCoolingDown,
  isOpenCode,
  withinWindow,
} from "../decide.ts";
import { budgetDigest, emailDigest } from "../email.ts";
import { hasSignedInFrom } from "../sign-in/session-queries.ts";
import { findCodeRecipient, type MailRecipient } from "../user-queries.ts";
import { countMailTo } from "./mail-limits.ts";
import { codeMail } from "./mails.ts";
import { CODE_TYPES, type CodeType, type ResendBody } from "./model.ts";
import { resolveEmail } from "./email-queries.ts";
import {
  type CodeRow,
  findCode,
  holdCodeLimits,
  keepTrial,
  openTrial,
  saveCode,
  saveIssues,
  undoTrial,
} from "./code-queries.ts";

export interface CodeDeps {
  readonly box: SecretBox;
  readonly codes: CodeMac;
  readonly config: Pick<Config, "otpTtlS" | "serverRoot">;
}

/**
 * The code counters of one email address and of its daily budget. Their rows are locked until the commit, so that
 * concurrent requests for the same email are processed one after the other.
 */
export interface HeldCodes {
  readonly type: CodeType;
  readonly email: string;
  readonly digest: Digest<"email">;
  /** Counters of the email itself, which codes of all types share. They enforce the cooldown between two codes. */
  readonly limits: CodeLimits;
  /** The daily budget from which the next code is taken (see `codeBudget`). */
  readonly budget: Pick<CodeLimits, "issuedAt"> & { readonly digest: Digest };
}

type Addressee = Pick<MailRecipient, "name" | "branding">;

interface NewCode extends HeldCodes {
  /**
   * Whether the code is mailed. If it is not, the mail is inserted and rolled back, so that the response takes equally
   * long.
   */
  readonly isMailed: boolean;
  /** The user whose password the mailed code may set; null for a signup and for a code that is not mailed. */
  readonly userId: number | null;
  /** The recipient of the mail; undefined for a signup and for a code that is not mailed. */
  readonly recipient: Addressee | undefined;
  /** Whether an operator sends the code. The mail then says so. */
  readonly isByOperator?: boolean;
  readonly now: Date;
}

const POSSIBLE_CODES = 1_000_000;
const CODE_DIGITS = 6;

/**
 * Locks the code counters of the email, then those of its daily budget. Every caller takes the two locks in this
 * order, so that they cannot deadlock.
 */
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

/** Returns the digests under which the sign-in lock, the codes and the budgets of an email are stored. */
export function digestsOfEmail(email: string): Digest[] {
  const budgets = CODE_TYPES.flatMap((type) => [codeBudget(type, true), codeBudget(type, false)]);
  return [
    emailDigest(email),
    ...[...budgets, "mails" as const].map((one) => budgetDigest(one, email)),
  ];
}

/**
 * Replaces the code for an email and purpose, and queues the mail with the new code in the same transaction. If the
 * code must not be mailed, the mail is queued and rolled back, so that the response time does not reveal whether a mail
 * was sent (contract 4.14). The caller wakes the mailer after the commit.
 */
export async function issueCode(tx: Tx, deps: CodeDeps, one: NewCode): Promise<void> {
  const { type, digest, email, userId, recipient, isByOperator = false, now } = one;
  const { otpTtlS: ttlS, serverRoot } = deps.config;
  const code = String(randomInt(POSSIBLE_CODES)).padStart(CODE_DIGITS, "0");
  const expiresAt = addMs(now, ttlS * 1000);
  const codeMac = deps.codes.sign(code, codeContext(type, digest));
  await saveCode(tx, { emailDigest: digest, type, userId, codeMac, issuedAt: now, expiresAt });
  await saveIssues(tx, digest, [...withinWindow(one.limits.issuedAt, now), now]);
  await saveIssues(tx, one.budget.digest, [...withinWindow(one.budget.issuedAt, now), now]);
  const isMailed = one.isMailed && isMailAddress(email);
  await openTrial(tx);
  const mailed = { to: email, type, code, expiresAt, ttlS, isByOperator, serverRoot };
  await queueMails(tx, deps, [codeMail(mailed, recipient)], now);
  await (isMailed ? keepTrial : undoTrial)(tx);
}

/**
 * Returns the associated data of a code's MAC. It ties the MAC to the email and the purpose of the code, so that a
 * MAC copied to another database row is useless.
 */
export function codeContext(type: CodeType, digest: string): string {
  return `${type}:${digest}`;
}

/**
 * Mails a user the code for a new password at the request of an operator. Throws `no_password` for a user who cannot
 * sign in with a password or whose email gets no mail, and `rate_limited` if the limit of mails to the address is
 * reached. The caller holds the user's row, and wakes the mailer after the commit.
 */
export async function sendPasswordReset(
  tx: Tx,
  deps: CodeDeps,
  { email, userId, now }: Pick<NewCode, "email" | "now"> & { readonly userId: number },
): Promise<void> {
  const recipient = await findCodeRecipient(tx, email);
  if (recipient?.userId !== userId || !isMailAddress(email)) throw new Problem("no_password");
  const request = { type: "forgot_password", email } as const;
  const held = await holdCodes(tx, request, { isKnownAddress: true, now });
  await countMailTo(tx, email, now);
  const one = { ...held, isMailed: true, userId, recipient, isByOperator: true, now };
  await issueCode(tx, deps, one);
}

export interface ResendDeps extends CodeDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly schedule: Waker;
  readonly config: CodeDeps["config"] & Pick<Config, "otpCooldownS" | "signupCodes">;
}

/**
 * Handles `POST /email-otp/resend`. The handler does the same work and gives the same answer for every email, so that
 * a stranger cannot find out which addresses belong to users.
 */
export async function resendCode(
  deps: ResendDeps,
  { email: typed, type }: ResendBody,
  requestContext: RequestContext,
): Promise<void> {
  const request = {
    email: await resolveEmail(deps.db, typed),
    type,
    ip: requestContext.ip,
    now: deps.clock.now(),
  };
  await deps.db.transaction((tx) => startOrRepeat(tx, deps, request));
  deps.schedule.wakeMailer();
}

async function startOrRepeat(
  tx: Tx,
  deps: ResendDeps,
  { email, type, ip, now }: ResendBody & { ip: string; now: Date },
): Promise<void> {
  const isKnownAddress = await hasSignedInFrom(tx, email, ip);
  const held = await holdCodes(tx, { type, email }, { isKnownAddress, now });
  if (!hasCodesLeft(held.budget, now) || isCoolingDown(held.limits, now, deps.config.otpCooldownS))
    return;
  const last = await findCode(tx, held.digest, type);
  const recipient = await findCodeRecipient(tx, email);
  await issueCode(tx, deps, {
    ...held,
    now,
    ...addresseeOf(type, { recipient, last, now, signup: deps.config.signupCodes }),
  });
}

/**
 * Returns whether the code is mailed, and to which user it belongs. A `change_password` code is mailed only after the
 * user has started the change with `POST /change-password`, which leaves an open code of the user.
 */
function addresseeOf(
  type: ResendBody["type"],
  known: {
    readonly recipient: MailRecipient | undefined;
    readonly last: CodeRow | undefined;
    readonly now: Date;
    /** Whether codes for a signup are mailed. */
    readonly signup: boolean;
  },
): Pick<NewCode, "isMailed" | "userId" | "recipient"> {
  const { recipient, last, now } = known;
  const nobody = { userId: null, recipient: undefined };
  if (type === "signup") return { isMailed: known.signup, ...nobody };
  const isOpen = type === "forgot_password" || (isOpenCode(last, now) && last?.userId !== null);
  if (recipient === undefined || !isOpen) return { isMailed: false, ...nobody };
  return { isMailed: true, userId: recipient.userId, recipient };
}

const MAC_KEY_BYTES = 32;

/**
 * Computes the MAC that is stored in place of a mailed code. A hash without a key could be reversed, because a code
 * has only six digits (contract 4.14).
 */
export interface CodeMac {
  /** Computes the MAC of a code. `context` is the associated data that ties the code to its email and purpose. */
  sign(code: string, context: string): string;
  matches(mac: string, code: string, context: string): boolean;
}

/**
 * Creates the MAC of mailed codes. Its keys are derived from the master keys. The key of the previous master key only
 * verifies, so that codes that were mailed before a change of the master key stay valid.
 */
export function createCodeMac(keys: {
  masterKey: Uint8Array;
  masterKeyPrevious: Uint8Array | undefined;
}): CodeMac {
  const current = deriveKey(keys.masterKey);
  const known = [current, ...(keys.masterKeyPrevious ? [deriveKey(keys.masterKeyPrevious)] : [])];
  return {
    sign: (code, context) => macOf(current, code, context),
    matches: (mac, code, context) =>
      known.map((key) => equalInConstantTime(macOf(key, code, context), mac)).includes(true),
  };
}

function deriveKey(masterKey: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", masterKey, "", "reviewrelay:email-code", MAC_KEY_BYTES));
}

function macOf(key: Uint8Array, code: string, context: string): string {
  return createHmac("sha256", key).update(`${context}\0${code}`).digest("hex");
}
