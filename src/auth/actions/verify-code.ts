import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { Call } from "../../http/route.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import { invalid } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import type { CodeMac } from "../code-mac.ts";
import { mayTryCode, withinWindow } from "../decide.ts";
import { emailDigest, normaliseEmail } from "../email.ts";
import type { KeyRing } from "../key-ring.ts";
import type { CodeType, VerifyBody, VerifyCodeAnswer } from "../password-model.ts";
import {
  consumeCode,
  countTry,
  findCode,
  holdCodeLimits,
  saveWrongTries,
} from "../queries/codes.ts";
import { findPerson, holdUserOf } from "../queries/users.ts";
import { codeContext } from "./issue-code.ts";
import { issueToken } from "./issue-token.ts";

export interface VerifyCodeDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly codes: CodeMac;
  readonly keys: KeyRing;
}

/** decisions.md 2, email OTP: how long the token for the new password lives, and the proof of a signup. */
const TOKEN_TTL_S = 900;
export const RESET_SCOPE = "password:reset";
/** What the proof of a verified address is sealed for; the signup wizard, which is not here, opens it. */
export const SIGNUP_CONTEXT = "signup-verification";

/** `POST /email-otp/verify`: every failure is the same 422. */
export async function verifyCode(
  deps: VerifyCodeDeps,
  { email: typed, otp, type }: VerifyBody,
  call: Call,
): Promise<VerifyCodeAnswer> {
  const now = deps.clock.now();
  const email = normaliseEmail(typed);
  const answer = await deps.db.transaction(async (tx) => {
    // Before the email's row: a password reset takes them in this order.
    const userId = await holdUserOf(tx, email);
    const isRight = await settleTry(tx, deps.codes, { email, otp, type, userId, now });
    if (!isRight) return undefined;
    if (type === "signup") return { verification_token: signupProof(deps.box, email, now) };
    return userId === undefined ? undefined : issueResetToken(tx, deps, { userId, call, now });
  });
  // Not thrown inside: the try stays counted.
  if (answer === undefined) throw invalid({ otp: ["is wrong, expired or already used"] });
  return answer;
}

interface Try {
  readonly email: string;
  readonly otp: string;
  readonly type: CodeType;
  readonly userId: number | undefined;
  readonly now: Date;
}

/** Counts the try, compares, and consumes the code if it is right. */
async function settleTry(
  tx: Tx,
  codes: CodeMac,
  { email, otp, type, userId, now }: Try,
): Promise<boolean> {
  const digest = emailDigest(email);
  const limits = await holdCodeLimits(tx, digest, now);
  const code = await findCode(tx, digest, type);
  if (code === undefined || !mayTryCode(limits, code, now)) return false;
  const wrongAt = withinWindow(limits.wrongAt, now);
  await countTry(tx, digest, type);
  await saveWrongTries(tx, digest, [...wrongAt, now]);
  const matches = codes.matches(code.codeMac, otp, codeContext(type, digest));
  if (!matches || (type !== "signup" && code.userId !== userId)) return false;
  await consumeCode(tx, { digest, type, now });
  await saveWrongTries(tx, digest, wrongAt);
  return true;
}

async function issueResetToken(
  tx: Tx,
  { keys }: VerifyCodeDeps,
  { userId, call, now }: { userId: number; call: Call; now: Date },
): Promise<VerifyCodeAnswer> {
  const kind = "password_reset";
  const alone = { familyId: null, clientId: null, impersonatorId: null };
  const { token, jti } = await issueToken(tx, keys, {
    kind,
    userId,
    ...alone,
    scope: RESET_SCOPE,
    ttlS: TOKEN_TTL_S,
    now,
  });
  const person = await findPerson(tx, userId);
  const companyId = person?.companyId ?? null;
  await recordAudit(tx, {
    at: now,
    action: "TOKEN_ISSUED",
    actor: companyId === null ? null : { userId, companyId, impersonatorId: null },
    call,
    details: { kind, jti },
  });
  return { token, token_type: "Bearer", expires_in: TOKEN_TTL_S };
}

function signupProof(box: SecretBox, email: string, now: Date): string {
  const expires_at = addMs(now, TOKEN_TTL_S * 1000).toISOString();
  return box.seal(JSON.stringify({ email, expires_at }), SIGNUP_CONTEXT);
}
