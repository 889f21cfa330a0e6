import type { Db, Tx } from "../../../db/client.ts";
import type { Caller } from "../../http/principal.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { Problem } from "../../lib/problem.ts";
import type { Challenge, FactorMethod, ProofBody } from "./model.ts";
import { CHALLENGE_TTL_S, ENROL_TTL_S, requiresFactor, TRIES_PER_CHALLENGE } from "./rules.ts";
import type { LoginAnswer } from "../model.ts";
import type { AuditActor } from "../../audit/queries.ts";
import * as queries from "./queries.ts";
import { deleteToken, holdToken } from "../tokens/queries.ts";
import { holdUser, type PersonRow } from "../user-queries.ts";
import { issueToken, openOwnSession, type SessionDeps } from "../sign-in/open-session.ts";
import { type ProofDeps, type ProofOutcome, problemOfProof, proveFactor } from "./prove-factor.ts";
import { type SecurityMailDeps, mailAboutSignIn } from "../sign-in/security-mails.ts";

/**
 * The scope of a challenge token. It gives access only to the routes of second factors. The scope `*` does not include
 * it.
 */
const CHALLENGE_SCOPE = "second-factor";

export interface SecondStepDeps {
  readonly keys: SessionDeps["keys"];
  readonly config: Pick<Config, "operatorsRequireSecondFactor">;
}

type WaitingMethod = NonNullable<queries.ChallengeRow["method"]>;

interface WaitingSignIn {
  readonly userId: number;
  readonly method: WaitingMethod;
  readonly now: Date;
}

/**
 * A sign-in that waits for a second factor: the id of its challenge token, and the challenge that the client receives.
 */
export interface SecondStep {
  readonly jti: string;
  readonly challenge: Challenge;
}

/**
 * Returns what a user must do after a correct password: prove a second factor, set one up (`enrol`), or nothing
 * (contract 4.27). The caller must have locked the user's row.
 */
export async function neededStep(
  tx: Tx,
  { config }: Pick<SecondStepDeps, "config">,
  userId: number,
): Promise<{ readonly kind: "none" | "prove" | "enrol"; readonly methods: FactorMethod[] }> {
  const state = await queries.factorStateOf(tx, userId);
  const methods = methodsOf(state);
  if (state.hasTotp || state.hasPasskey) return { kind: "prove", methods };
  return { kind: requiresFactor(config, state) ? "enrol" : "none", methods };
}

/**
 * Issues a challenge token to a user who needs a second factor to sign in; returns undefined for any other user. The
 * caller must have verified the password and locked the user's row.
 */
export async function secondStep(
  tx: Tx,
  deps: SecondStepDeps,
  { userId, method, now }: WaitingSignIn,
): Promise<SecondStep | undefined> {
  const { kind: step, methods } = await neededStep(tx, deps, userId);
  if (step === "none") return undefined;
  const enrol = step === "enrol";
  const ttlS = enrol ? ENROL_TTL_S : CHALLENGE_TTL_S;
  const none = { familyId: null, clientId: null, impersonatorId: null };
  const grant = { kind: "challenge", userId, scope: CHALLENGE_SCOPE, ttlS, now, ...none } as const;
  const { token, jti } = await issueToken(tx, deps.keys, grant);
  await queries.saveChallenge(tx, { jti, method });
  return { jti, challenge: { challenge_token: token, expires_in: ttlS, methods, enrol } };
}

function methodsOf({ hasTotp, hasPasskey, codesLeft }: queries.FactorState): FactorMethod[] {
  return [
    ...(hasTotp ? ["totp" as const] : []),
    ...(hasPasskey ? ["passkey" as const] : []),
    ...(codesLeft > 0 ? ["recovery_code" as const] : []),
  ];
}

/**
 * Returns the outcome of a completed sign-in. If a second factor is needed, throws `second_factor_required` with the
 * challenge.
 */
export function signedInOr<T extends object>(outcome: T | SecondStep): T {
  if (!("challenge" in outcome)) return outcome;
  throw new Problem("second_factor_required", { members: { second_factor: outcome.challenge } });
}

export interface AnswerDeps extends ProofDeps {
  readonly db: Db;
  readonly clock: Clock;
}

interface ChallengeAnswer {
  readonly userId: number;
  readonly jti: string;
  readonly proof: ProofBody;
  /**
   * The actor for the audit log, from the token of the request. Absent at the authorize page, whose requests have no
   * token.
   */
  readonly actor?: AuditActor;
  readonly requestContext: RequestContext;
}

/**
 * The result of an answer to a challenge. `ended` means that the challenge token does not exist any more, or that the
 * user is no longer active.
 */
export type AnswerOutcome<T> =
  | { readonly kind: "right"; readonly value: T }
  | Exclude<ProofOutcome, { kind: "right" }>
  | { readonly kind: "ended" };

interface ProvedSignIn {
  readonly user: PersonRow;
  readonly method: WaitingMethod;
  readonly now: Date;
}

/**
 * Verifies the proof for a sign-in that waits for a second factor. A correct proof deletes the challenge token and runs
 * `onRight` in the same transaction. The fifth wrong proof also deletes the challenge token.
 */
export async function answerChallenge<T>(
  deps: AnswerDeps,
  { userId, jti, proof, actor, requestContext }: ChallengeAnswer,
  onRight: (tx: Tx, proved: ProvedSignIn) => Promise<T>,
): Promise<AnswerOutcome<T>> {
  const now = deps.clock.now();
  return deps.db.transaction(async (tx): Promise<AnswerOutcome<T>> => {
    const person = await holdUser(tx, userId);
    const challenge = (await holdToken(tx, jti)) ? await queries.findChallenge(tx, jti) : undefined;
    const method = challenge?.method ?? undefined;
    if (person === undefined || challenge === undefined || method === undefined)
      return { kind: "ended" };
    const by = actor ?? { userId, companyId: person.companyId, impersonatorId: null };
    const sent = { userId, jti, proof, actor: by, requestContext, now };
    const outcome = await proveFactor(tx, deps, sent);
    if (outcome.kind === "right") {
      await deleteToken(tx, jti);
      return { kind: "right", value: await onRight(tx, { user: person, method, now }) };
    }
    if (outcome.kind === "wrong") {
      const tries = challenge.tries + 1;
      if (tries < TRIES_PER_CHALLENGE) await queries.saveChallenge(tx, { jti, tries });
      else await deleteToken(tx, jti);
    }
    return outcome;
  });
}

/** Returns whether a user has a second factor. */
export async function hasFactor(tx: Tx, userId: number): Promise<boolean> {
  return (await queries.factorsOf(tx, userId)).length > 0;
}

/**
 * Locks a user and the challenge token of a sign-in. Returns false if the user is not active or the token was deleted.
 */
export async function isWaiting(
  tx: Tx,
  { userId, jti }: Pick<ChallengeAnswer, "userId" | "jti">,
): Promise<boolean> {
  return (await holdUser(tx, userId)) !== undefined && (await holdToken(tx, jti));
}

export interface FinishDeps extends AnswerDeps, SessionDeps, SecurityMailDeps {
  readonly config: AnswerDeps["config"] & SessionDeps["config"] & SecurityMailDeps["config"];
}

/** Handles `POST /login/second-factor`: completes a sign-in with the proof of a second factor. */
export async function finishSignIn(
  deps: FinishDeps,
  { principal, requestContext }: Caller,
  proof: ProofBody,
): Promise<LoginAnswer> {
  const { userId, jti } = principal;
  const answer = { userId, jti, proof, actor: principal, requestContext };
  const outcome = await answerChallenge(deps, answer, (tx, proved) =>
    openProved(tx, deps, { ...proved, requestContext }),
  );
  if (outcome.kind === "right") return outcome.value;
  throw outcome.kind === "ended" ? new Problem("unauthenticated") : problemOfProof(outcome);
}

/** Opens the session of a sign-in whose second factor was proved. */
export async function openProved(
  tx: Tx,
  deps: SessionDeps & SecurityMailDeps,
  {
    user,
    method,
    requestContext,
    now,
  }: Omit<ProvedSignIn, "user"> & {
    readonly user: Pick<PersonRow, "id" | "companyId">;
    readonly requestContext: RequestContext;
  },
): Promise<LoginAnswer> {
  if (method === "login") await mailAboutSignIn(tx, deps, { userId: user.id, requestContext, now });
  const signIn = { user, method, requestContext, hasProved: true, now };
  return openOwnSession(tx, deps, signIn);
}
