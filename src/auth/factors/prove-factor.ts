import type { Tx } from "../../../db/client.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { addMs, isoInstant } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { digestOf } from "../../lib/kind-key.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { hashSecret } from "../../lib/secrets.ts";
import { lockedUntil, retryAfterS } from "../decide.ts";
import { OPTIONS_TTL_MS, plainRecoveryCode, stepOfCode } from "./rules.ts";
import type { AssertionBody, FactorMethod, ProofBody } from "./model.ts";
import { type Passkey, requestOptions, verifyAssertion } from "./passkeys.ts";
import { type AuditActor, recordAudit } from "../../audit/queries.ts";
import * as queries from "./queries.ts";
import {
  findLockTime,
  forgetLock,
  settleRightAttempt,
  settleWrongAttempt,
} from "../sign-in/queries.ts";
import { mailAboutFactor } from "../sign-in/security-mails.ts";

export interface ProofDeps {
  readonly box: SecretBox;
  readonly config: Pick<Config, "serverRoot" | "lockScheduleS">;
}

/** A proof of a second factor, with the request that sent it and the id of that request's token. */
export interface SubmittedProof {
  readonly userId: number;
  readonly jti: string;
  readonly proof: ProofBody;
  readonly actor: AuditActor;
  readonly requestContext: RequestContext;
  readonly now: Date;
}

/** The result of a proof. `locked` means that codes of the user's app are rejected until `retryAfterS` has passed. */
export type ProofOutcome =
  | { readonly kind: "right" }
  | { readonly kind: "wrong"; readonly field: keyof ProofBody }
  | { readonly kind: "locked"; readonly retryAfterS: number };

/**
 * Verifies a proof of a second factor and records the result (contract 4.27). The caller must have locked the user and
 * the token, so that two requests cannot use the same code. The caller must commit after a wrong proof, too, because
 * wrong proofs are counted.
 */
export async function proveFactor(
  tx: Tx,
  deps: ProofDeps,
  sent: SubmittedProof,
): Promise<ProofOutcome> {
  const { code, recovery_code: recoveryCode, passkey } = sent.proof;
  if (passkey !== undefined)
    return (await byPasskey(tx, deps, sent, passkey))
      ? { kind: "right" }
      : recordWrongProof(tx, sent, { method: "passkey" });
  if (recoveryCode !== undefined)
    return (await byRecoveryCode(tx, deps, sent, recoveryCode))
      ? { kind: "right" }
      : recordWrongProof(tx, sent, { method: "recovery_code" });
  return byCode(tx, deps, sent, code ?? "");
}

/** Converts the result of a proof into the error that a route throws. */
export function problemOfProof(outcome: Exclude<ProofOutcome, { kind: "right" }>): Problem {
  if (outcome.kind === "wrong")
    return invalid({ [outcome.field]: ["is wrong, has expired or was used before"] });
  const retryAfter = String(outcome.retryAfterS);
  return new Problem("account_locked", {
    message: "Too many wrong codes; codes of the app are temporarily locked.",
    headers: { "Retry-After": retryAfter },
    errors: { code: [`is locked after too many wrong codes; try again in ${retryAfter} s`] },
  });
}

/** Deletes the count of a user's wrong app codes and the lock that they caused. */
export function forgetCodeLock(tx: Tx, userId: number): Promise<void> {
  return forgetLock(tx, lockKey(userId));
}

/**
 * Deletes the factors and the recovery codes of a user, and the lock of the app's codes. Returns the number of deleted
 * factors.
 */
export async function dropFactors(tx: Tx, userId: number): Promise<number> {
  await forgetCodeLock(tx, userId);
  return queries.deleteFactorsOf(tx, userId);
}

/** Returns the key of the lock of a user's app codes in the table of sign-in locks. */
const lockKey = (userId: number) => digestOf("second-factor", userId);

async function byCode(
  tx: Tx,
  { box, config }: ProofDeps,
  sent: SubmittedProof,
  code: string,
): Promise<ProofOutcome> {
  const { userId, now } = sent;
  const digest = lockKey(userId);
  const until = lockedUntil(await findLockTime(tx, digest), now);
  if (until !== undefined) return { kind: "locked", retryAfterS: retryAfterS(until, now) };
  const app = (await queries.factorsOf(tx, userId)).find(({ kind }) => kind === "totp");
  const secret = app?.sealedSecret ? box.open(app.sealedSecret, totpContext(app)) : undefined;
  const step =
    app && secret ? stepOfCode(code, { secret, lastStep: app.lastStep }, now) : undefined;
  if (app === undefined || step === undefined) {
    const lock = await settleWrongAttempt(tx, { digest, now, scheduleS: config.lockScheduleS });
    return recordWrongProof(tx, sent, { method: "totp", locked: lock?.lockedUntil ?? null });
  }
  await queries.stampFactor(tx, app.id, { lastStep: step, lastUsedAt: now });
  await settleRightAttempt(tx, { digest, now });
  return { kind: "right" };
}

/** Returns the associated data with which the secret of a confirmed app is sealed. */
export function totpContext({
  userId,
  id,
}: {
  readonly userId: number;
  readonly id: string;
}): string {
  return `totp:${userId}:${id}`;
}

async function byRecoveryCode(
  tx: Tx,
  deps: ProofDeps,
  sent: SubmittedProof,
  typed: string,
): Promise<boolean> {
  const { userId, actor, requestContext, now } = sent;
  if (!(await queries.useRecoveryCode(tx, userId, hashSecret(plainRecoveryCode(typed)))))
    return false;
  const left = await queries.countRecoveryCodes(tx, userId);
  const action = "RECOVERY_CODE_USED";
  await recordAudit(tx, { at: now, action, actor, requestContext, details: { left } });
  const facts = [["Codes left", String(left)]] as const;
  await mailAboutFactor(tx, deps, { userId, change: "codeUsed", facts, requestContext, now });
  return true;
}

async function byPasskey(
  tx: Tx,
  { config }: ProofDeps,
  { userId, jti, now }: SubmittedProof,
  proof: AssertionBody,
): Promise<boolean> {
  const challenge = await consumeChallenge(tx, jti, now);
  const known = await queries.factorsOf(tx, userId);
  const row = known.find(({ credentialId }) => credentialId === proof.id);
  const passkey = row && passkeyOf(row);
  if (challenge === undefined || row === undefined || passkey === undefined) return false;
  const signCount = await verifyAssertion(config, challenge, { passkey, proof });
  if (signCount === undefined) return false;
  await queries.stampFactor(tx, row.id, { signCount, lastUsedAt: now });
  return true;
}

/**
 * Returns the challenge of the newest passkey options that were fetched with this token; undefined if it has expired.
 * The challenge is deleted, because it is valid for one answer.
 */
export async function consumeChallenge(
  tx: Tx,
  jti: string,
  now: Date,
): Promise<string | undefined> {
  const { passkeyChallenge = null, passkeyAt = null } =
    (await queries.findChallenge(tx, jti)) ?? {};
  if (passkeyChallenge === null || passkeyAt === null) return undefined;
  await queries.saveChallenge(tx, { jti, passkeyChallenge: null, passkeyAt: null });
  return addMs(passkeyAt, OPTIONS_TTL_MS) > now ? passkeyChallenge : undefined;
}

/**
 * Creates the options with which a browser proves a passkey, and stores their challenge for one answer. Returns
 * undefined if the user has no passkey.
 */
export async function passkeyOptions(
  tx: Tx,
  { config }: Pick<ProofDeps, "config">,
  { userId, jti, now }: Pick<SubmittedProof, "userId" | "jti" | "now">,
) {
  const known = (await queries.factorsOf(tx, userId)).flatMap((row) => passkeyOf(row) ?? []);
  if (known.length === 0) return undefined;
  const options = await requestOptions(config, known);
  await queries.saveChallenge(tx, { jti, passkeyChallenge: options.challenge, passkeyAt: now });
  return options;
}

/** Returns the passkey of a factor's row, or undefined if the factor is not a passkey. */
export function passkeyOf(row: queries.FactorRow): Passkey | undefined {
  const { credentialId, publicKey, signCount, transports } = row;
  if (credentialId === null || publicKey === null || signCount === null) return undefined;
  return { credentialId, publicKey, signCount, transports };
}

const PROOF_FIELDS = { totp: "code", recovery_code: "recovery_code", passkey: "passkey" } as const;

async function recordWrongProof(
  tx: Tx,
  { actor, requestContext, now }: SubmittedProof,
  { method, locked = null }: { readonly method: FactorMethod; readonly locked?: Date | null },
): Promise<ProofOutcome> {
  const details = { method, ...(locked && { locked_until: isoInstant(locked) }) };
  const action = "SECOND_FACTOR_FAILED";
  await recordAudit(tx, { at: now, action, actor, requestContext, details });
  return { kind: "wrong", field: PROOF_FIELDS[method] };
}
