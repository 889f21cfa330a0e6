import type { Db, Tx } from "../../../db/client.ts";
import type { FailureAudit } from "../../audit/failures.ts";
import { recordAudit } from "../../audit/queries.ts";
import { BASE_PATH } from "../../http/access.ts";
import { HostCookie } from "../../http/cookie.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { type Clock, isoInstant } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { emailDomain, normalEmail } from "../../lib/email.ts";
import type { Digest } from "../../lib/kind-key.ts";
import { errorFields, type Log } from "../../lib/log.ts";
import { networkOf } from "../../lib/network.ts";
import type { Passwords } from "../../lib/password.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { lockedUntil, retryAfterS } from "../decide.ts";
import { emailDigest } from "../email.ts";
import { secondStep, type SecondStepDeps, signedInOr } from "../factors/second-step.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import type { LoginAnswer, LoginBody } from "../model.ts";
import type { DiscoverAnswer } from "../passwords/model.ts";
import { resolveEmail } from "../passwords/email-queries.ts";
import { keepTrial, openTrial, undoTrial } from "../passwords/code-queries.ts";
import { holdPassword } from "../user-queries.ts";
import { openOwnSession } from "./open-session.ts";
import {
  findDomainPolicy,
  findLockTime,
  findSignInUser,
  replaceHash,
  settleRightAttempt,
  settleWrongAttempt,
  type SignInUser,
} from "./queries.ts";
import { type SecurityMailDeps, mailAboutSignIn } from "./security-mails.ts";
import { hasSignedInFrom } from "./session-queries.ts";

export interface LogInDeps extends AttemptDeps, SecurityMailDeps, SecondStepDeps {
  readonly keys: KeyRing;
  readonly config: Pick<
    Config,
    "lockScheduleS" | "accessTokenTtlS" | "securityMails" | "serverRoot"
  > &
    SecondStepDeps["config"];
}

/**
 * Handles `POST /login`: verifies the password and opens a session. Throws `second_factor_required` with a challenge if
 * the user needs a second factor.
 */
export async function logIn(
  deps: LogInDeps,
  { email, password }: LoginBody,
  requestContext: RequestContext,
): Promise<LoginAnswer> {
  const attempt = { email, password, method: "login", requestContext } as const;
  const outcome = await attemptSignIn(deps, attempt, async (tx, user, now) => {
    const step = await secondStep(tx, deps, { userId: user.id, method: "login", now });
    if (step !== undefined) return step;
    await mailAboutSignIn(tx, deps, { userId: user.id, requestContext, now });
    return openOwnSession(tx, deps, { user, method: "login", requestContext, now });
  });
  if (outcome.kind === "right") return signedInOr(outcome.value);
  throw problemOf(outcome);
}

function problemOf(outcome: Exclude<AttemptOutcome<never>, { kind: "right" }>): Problem {
  if (outcome.kind === "wrong") return new Problem("invalid_credentials");
  return new Problem("account_locked", {
    headers: { "Retry-After": String(outcome.retryAfterS) },
    errors: {
      email: [`is locked after too many wrong passwords; try again in ${outcome.retryAfterS} s`],
    },
  });
}

export type CountSignIn = (result: AttemptOutcome<unknown>["kind"]) => void;

export interface AttemptDeps extends KnownBrowserDeps {
  readonly countSignIn?: CountSignIn;
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly passwords: Passwords;
  readonly failures: FailureAudit;
  readonly config: Pick<Config, "lockScheduleS" | "serverRoot">;
}

export interface Attempt {
  readonly email: string;
  readonly password: string;
  /** The route to which the password was sent, for the audit log. */
  readonly method: "login" | "password_grant" | "authorization_code" | "change_password";
  readonly requestContext: RequestContext;
  /**
   * Decides whether the user may sign in at this client. If not, the answer is the same as for a wrong password
   * (contract 5.6).
   */
  readonly admits?: (user: SignInUser) => boolean;
}

/** The result of a password check. Every route that accepts a password converts this result into its own response. */
export type AttemptOutcome<T> =
  | { readonly kind: "right"; readonly value: T }
  | { readonly kind: "wrong" }
  | { readonly kind: "locked"; readonly retryAfterS: number };

type OnRight<T> = (tx: Tx, user: SignInUser, now: Date) => Promise<T>;
/**
 * The result of one password verification. `stale` means that the user's password was changed while the sent one was
 * being verified, so the verification must run again.
 */
type VerificationResult<T> = AttemptOutcome<T> | { readonly kind: "stale" };

/**
 * Checks a password under the sign-in lock (contract 4.7 and 4.8). The work does not depend on whether the email is
 * known: the same look-ups, one argon2id verification, and one statement that counts the result. So the response time
 * does not reveal whether the email is known. `onRight` runs in the transaction that records the correct password.
 */
export async function attemptSignIn<T>(
  deps: AttemptDeps,
  attempt: Attempt,
  onRight: OnRight<T>,
): Promise<AttemptOutcome<T>> {
  const outcome = await settleAttempt(deps, attempt, onRight);
  deps.countSignIn?.(outcome.kind);
  return outcome;
}

async function settleAttempt<T>(
  deps: AttemptDeps,
  attempt: Attempt,
  onRight: OnRight<T>,
): Promise<AttemptOutcome<T>> {
  const email = await resolveEmail(deps.db, attempt.email);
  const digest = emailDigest(email);
  // This early check of the sign-in lock only saves the cost of the password hash. The statement that runs after the
  // hash decides.
  const earlyLockOutcome = lockedOutcome(await findLockTime(deps.db, digest), deps.clock.now());
  if (earlyLockOutcome !== undefined) return earlyLockOutcome;
  for (;;) {
    const user = await findSignInUser(deps.db, email);
    const hash = user?.isActive && (attempt.admits?.(user) ?? true) ? user.passwordHash : null;
    const { ip, headers } = attempt.requestContext;
    // The browser and network are looked up only while password checks queue. The look-up does not depend on whether
    // the email is known, so the response time does not reveal that.
    const isTrusted =
      deps.passwords.isBusy &&
      (isKnownBrowser(deps, headers, email) || (await hasSignedInFrom(deps.db, email, ip)));
    const isRight = await deps.passwords.verify(attempt.password, hash, ip, isTrusted);
    const settled: VerificationResult<T> =
      isRight && user !== undefined && hash !== null
        ? await settleRight(deps, { attempt, digest, user, hash }, onRight)
        : await settleWrong(deps, { attempt, digest, user });
    if (settled.kind !== "stale") return settled;
  }
}

async function settleRight<T>(
  deps: AttemptDeps,
  {
    attempt,
    digest,
    user,
    hash,
  }: { attempt: Attempt; digest: Digest<"email">; user: SignInUser; hash: string },
  onRight: OnRight<T>,
): Promise<VerificationResult<T>> {
  const now = deps.clock.now();
  const settled = await deps.db.transaction(async (tx): Promise<VerificationResult<T>> => {
    if (!(await holdPassword(tx, { id: user.id, passwordHash: hash }))) return { kind: "stale" };
    const locked = lockedOutcome(await settleRightAttempt(tx, { digest, now }), now);
    return locked ?? { kind: "right", value: await onRight(tx, user, now) };
  });
  if (settled.kind === "right") await renewHash(deps, attempt, { userId: user.id, hash });
  return settled;
}

async function settleWrong(
  deps: AttemptDeps,
  {
    attempt,
    digest,
    user,
  }: { attempt: Attempt; digest: Digest<"email">; user: SignInUser | undefined },
): Promise<AttemptOutcome<never>> {
  const { requestContext, method } = attempt;
  const now = deps.clock.now();
  const actor =
    user === undefined
      ? null
      : { userId: user.id, companyId: user.companyId, impersonatorId: null };
  const counted = await deps.db.transaction(async (tx) => {
    const lock = await settleWrongAttempt(tx, {
      digest,
      now,
      scheduleS: deps.config.lockScheduleS,
    });
    if (lock === undefined) return undefined;
    const audit = { at: now, actor, requestContext };
    await openTrial(tx);
    await recordAudit(tx, { ...audit, action: "AUTH_LOGIN_FAILED", details: { method } });
    if (lock.lockedUntil !== null) {
      const details = { method, locked_until: isoInstant(lock.lockedUntil) };
      await recordAudit(tx, { ...audit, action: "AUTH_LOCKED", details });
    }
    // A wrong password for an unknown email is only counted (`countUnknown`). The audit rows are inserted and rolled
    // back, so that the response takes the same time as for a known email.
    await (actor === null ? undoTrial : keepTrial)(tx);
    return lock;
  });
  if (counted !== undefined) {
    if (actor === null) await countUnknown(deps, attempt, counted);
    return { kind: "wrong" };
  }
  // The lock may have expired since `settleWrongAttempt` found it. In that case the client may try again after one
  // second.
  return (
    lockedOutcome(await findLockTime(deps.db, digest), now) ?? { kind: "locked", retryAfterS: 1 }
  );
}

/**
 * Counts a wrong password for an unknown email. The audit log gets one row per network and period instead of one per
 * wrong password.
 */
async function countUnknown(
  { failures }: Pick<AttemptDeps, "failures">,
  { method, requestContext }: Attempt,
  { lockedUntil: until }: { readonly lockedUntil: Date | null },
): Promise<void> {
  const details = { method, network: networkOf(requestContext.ip) };
  await failures.record({ action: "AUTH_LOGIN_FAILED", details }, requestContext);
  if (until !== null) await failures.record({ action: "AUTH_LOCKED", details }, requestContext);
}

function lockedOutcome(
  lock: Awaited<ReturnType<typeof findLockTime>>,
  now: Date,
): Extract<AttemptOutcome<never>, { kind: "locked" }> | undefined {
  const until = lockedUntil(lock, now);
  return until === undefined ? undefined : { kind: "locked", retryAfterS: retryAfterS(until, now) };
}

/**
 * Replaces a password hash whose parameters are outdated. This is possible only during a sign-in, because the plain
 * password is known only then. A failure is logged, and the sign-in still succeeds.
 */
async function renewHash(
  { db, log, passwords }: AttemptDeps,
  { password, requestContext }: Attempt,
  { userId, hash }: { userId: number; hash: string },
): Promise<void> {
  if (!passwords.needsRehash(hash)) return;
  try {
    const to = await passwords.hash(password, requestContext.ip);
    await replaceHash(db, { userId, from: hash, to });
  } catch (error) {
    log.warn("password.rehash_failed", { user_id: userId, ...errorFields(error) });
  }
}

/**
 * Handles `POST /auth/discover`. The answer comes from the policy of the email's domain and never from a user's row,
 * so it does not reveal whether the user exists (contract 4.12).
 */
export async function discover(
  { db, config }: { db: Db; config: Pick<Config, "serverRoot"> },
  email: string,
): Promise<DiscoverAnswer> {
  const policy = await findDomainPolicy(db, emailDomain(normalEmail(email)));
  if (policy === undefined)
    return { methods: ["password"], password: true, sso: false, sso_url: null };
  const query = new URLSearchParams({ connection: policy.connectionId });
  return {
    methods: policy.passwordLogin ? ["password", "sso"] : ["sso"],
    password: policy.passwordLogin,
    sso: true,
    sso_url: `${config.serverRoot}${BASE_PATH}/auth/sso/redirect?${query.toString()}`,
  };
}

interface KnownBrowserDeps {
  readonly box: SecretBox;
  readonly config: Pick<Config, "serverRoot">;
}

const BROWSER_COOKIE = { name: "rr_browser", maxAgeS: 180 * 86_400, format: /^[\w.-]{1,200}$/ };
const sealContextOf = (email: string) => `known-browser:${normalEmail(email)}`;

/**
 * Returns the `Set-Cookie` header after a sign-in, or undefined if the request did not come from a page of this
 * service. While password checks queue, the cookie gives later sign-ins with this email priority over sign-ins from
 * unknown browsers (contract 3.7). It grants nothing else.
 */
export function rememberBrowser(
  { box, config }: KnownBrowserDeps,
  headers: Headers,
  email: string,
): string | undefined {
  if (headers.get("sec-fetch-site") !== "same-origin") return undefined;
  return new HostCookie(config, BROWSER_COOKIE).write(box.seal("", sealContextOf(email)));
}

/** Returns whether the browser that sent the request has signed in with this email before. */
export function isKnownBrowser(
  { box, config }: KnownBrowserDeps,
  headers: Headers,
  email: string,
): boolean {
  const sealed = new HostCookie(config, BROWSER_COOKIE).read(headers);
  if (sealed === undefined) return false;
  try {
    return box.open(sealed, sealContextOf(email)) === "";
  } catch {
    return false;
  }
}
