import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { FailureAudit } from "../../audit/failures.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import type { Digest } from "../../lib/kind-key.ts";
import { networkOf } from "../../lib/network.ts";
import { invalid } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import type { CodeMac } from "./codes.ts";
import { isOpenCode, mayTryCode, withinWindow, type WrongTries } from "../decide.ts";
import { emailDigest } from "../email.ts";
import { resolveEmail } from "./email-queries.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import type { CodeType, VerifyBody, VerifyCodeAnswer } from "./model.ts";
import {
  consumeCode,
  countTry,
  findCode,
  findWrongTriesFrom,
  holdCodeLimits,
  saveWrongTries,
  saveWrongTriesFrom,
} from "./code-queries.ts";
import { hasSignedInFrom } from "../sign-in/session-queries.ts";
import { holdUserOf, type PersonRow } from "../user-queries.ts";
import { codeContext } from "./codes.ts";
import { issueToken } from "../sign-in/open-session.ts";

export interface VerifyCodeDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly codes: CodeMac;
  readonly keys: KeyRing;
  readonly failures: FailureAudit;
}

/**
 * Lifetime in seconds of the token that sets a new password, and of the proof that a signup address was verified
 * (contract 4.14).
 */
const TOKEN_TTL_S = 900;
const RESET_SCOPE = "password:reset";
/**
 * Associated data of the signup proof, which shows that an email address was verified. The signup wizard, a separate
 * program, decrypts the proof with the same associated data.
 */
export const SIGNUP_CONTEXT = "signup-verification";

/**
 * A user id that does not exist. It stands for a missing user, so that a code for an unknown email is rejected in the
 * same way as a wrong code.
 */
const NOBODY = 0;

interface CodeTry {
  readonly email: string;
  /** The source of the try: the digest of the email, and the network of the client that sends the code. */
  readonly origin: { readonly emailDigest: Digest<"email">; readonly network: string };
  readonly otp: string;
  readonly type: CodeType;
  readonly now: Date;
}

/** Handles `POST /email-otp/verify`. Every wrong, expired or missing code gives the same 422. */
export async function verifyCode(
  deps: VerifyCodeDeps,
  { email: typed, otp, type }: VerifyBody,
  requestContext: RequestContext,
): Promise<VerifyCodeAnswer> {
  const email = await resolveEmail(deps.db, typed);
  const origin = { emailDigest: emailDigest(email), network: networkOf(requestContext.ip) };
  const one = { email, origin, otp, type, now: deps.clock.now() };
  // A code is verified in two transactions. The first one counts the try, and is committed even if the code is wrong.
  // Only a correct code reaches the second one, which locks the user.
  const codeMac = await deps.db.transaction((tx) => tryCode(tx, deps.codes, one));
  const answer =
    codeMac === undefined
      ? undefined
      : await deps.db.transaction((tx) =>
          redeemCode(tx, deps, { ...one, codeMac, requestContext }),
        );
  if (answer !== undefined) return answer;
  const details = { email_digest: origin.emailDigest, type };
  await deps.failures.record({ action: "OTP_FAILED", details }, requestContext);
  throw invalid({ otp: ["is wrong, expired or already used"] });
}

/**
 * Counts the try, then compares the code. The executed statements are the same for every email. Returns the MAC of the
 * code if the code was correct.
 */
async function tryCode(
  tx: Tx,
  codes: CodeMac,
  { email, origin, otp, type, now }: CodeTry,
): Promise<string | undefined> {
  const digest = origin.emailDigest;
  const isKnownAddress = await hasSignedInFrom(tx, email, origin.network);
  const tries = await holdWrongTries(tx, { origin, now });
  const code = await findCode(tx, digest, type);
  if (code === undefined || !mayTryCode({ ...tries, isKnownAddress }, code, now)) return undefined;
  await countTry(tx, digest, type);
  await saveTries(tx, { origin, now }, tries, (instants) => [...withinWindow(instants, now), now]);
  const isSent = type === "signup" || code.userId !== null;
  const matches = codes.matches(code.codeMac, otp, codeContext(type, digest));
  return matches && isSent ? code.codeMac : undefined;
}

type TryOrigin = Pick<CodeTry, "origin" | "now">;
type CountedTries = Pick<WrongTries, "wrongAt" | "wrongHereAt">;

/**
 * Locks the code counters of the email. Returns the times of its wrong tries, both from all networks and from the
 * client's network.
 */
async function holdWrongTries(tx: Tx, { origin, now }: TryOrigin): Promise<CountedTries> {
  const { wrongAt } = await holdCodeLimits(tx, origin.emailDigest, now);
  return { wrongAt, wrongHereAt: await findWrongTriesFrom(tx, origin) };
}

async function saveTries(
  tx: Tx,
  { origin, now }: TryOrigin,
  { wrongAt, wrongHereAt }: CountedTries,
  change: (instants: readonly Date[]) => Date[],
): Promise<void> {
  await saveWrongTries(tx, origin.emailDigest, change(wrongAt));
  await saveWrongTriesFrom(tx, origin, { wrongAt: change(wrongHereAt), now });
}

/**
 * Consumes the code that `tryCode` found correct, unless a parallel try, a password reset or a newer code has ended it
 * since then.
 */
async function redeemCode(
  tx: Tx,
  deps: VerifyCodeDeps,
  {
    email,
    origin,
    type,
    now,
    codeMac,
    requestContext,
  }: CodeTry & { codeMac: string; requestContext: RequestContext },
): Promise<VerifyCodeAnswer | undefined> {
  // The user is locked before the code counters of the email, because a password reset takes the locks in this order.
  const person = type === "signup" ? undefined : await holdUserOf(tx, email);
  const userId = type === "signup" ? null : (person?.id ?? NOBODY);
  const digest = origin.emailDigest;
  const tries = await holdWrongTries(tx, { origin, now });
  const code = await findCode(tx, digest, type);
  if (!isOpenCode(code, now) || code?.codeMac !== codeMac || code.userId !== userId)
    return undefined;
  await consumeCode(tx, { digest, type, now });
  await saveTries(tx, { origin, now }, tries, (instants) => withoutOne(instants, now));
  if (person === undefined) return { verification_token: signupProof(deps.box, email, now) };
  return issueResetToken(tx, deps, { person, requestContext, now });
}

/** Removes one occurrence of an instant: that of the correct try, which `tryCode` had counted as a wrong one. */
function withoutOne(instants: readonly Date[], at: Date): Date[] {
  const index = instants.findIndex((one) => one.getTime() === at.getTime());
  return instants.filter((_, i) => i !== index);
}

async function issueResetToken(
  tx: Tx,
  { keys }: VerifyCodeDeps,
  { person, requestContext, now }: { person: PersonRow; requestContext: RequestContext; now: Date },
): Promise<VerifyCodeAnswer> {
  const kind = "password_reset";
  const alone = { familyId: null, clientId: null, impersonatorId: null };
  const { id: userId, companyId } = person;
  const { token, jti } = await issueToken(tx, keys, {
    kind,
    userId,
    ...alone,
    scope: RESET_SCOPE,
    ttlS: TOKEN_TTL_S,
    now,
  });
  await recordAudit(tx, {
    at: now,
    action: "TOKEN_ISSUED",
    actor: { userId, companyId, impersonatorId: null },
    requestContext,
    details: { kind, jti },
  });
  return { token, token_type: "Bearer", expires_in: TOKEN_TTL_S };
}

function signupProof(box: SecretBox, email: string, now: Date): string {
  const expires_at = addMs(now, TOKEN_TTL_S * 1000).toISOString();
  return box.seal(JSON.stringify({ email, expires_at }), SIGNUP_CONTEXT);
}
