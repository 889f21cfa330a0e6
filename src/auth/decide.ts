import { addMs } from "../lib/clock.ts";
import type { CodeType } from "./password-model.ts";

/** See contract 4.8. */
export const WRONG_ATTEMPTS_TO_LOCK = 5;
/** Contract 4.8: how long after the last wrong password the counters start from zero again. */
export const FORGET_FAILURES_AFTER_MS = 24 * 60 * 60 * 1000;

/** The sign-in lock of one normalised email. */
export interface SignInLock {
  /** Wrong passwords since the last lock. */
  readonly failures: number;
  /** Locks so far; the next one is longer. */
  readonly locks: number;
  readonly lockedUntil: Date | null;
  readonly lastFailureAt: Date;
}

/** A wrong password does not count while sign-in is locked; else it counts, and the fifth one locks. */
type WrongAttempt = { kind: "locked"; until: Date } | { kind: "counted"; lock: SignInLock };

/**
 * What one wrong password does, by contract 4.8. What runs is `settleWrongAttempt` in queries/locks.ts, because parallel
 * attempts must be settled one after the other in one statement; this is the same in a form that can be read, and
 * tests/integration/auth/lock.test.ts holds the statement to it.
 */
export function decideWrongAttempt(
  lock: SignInLock | undefined,
  now: Date,
  scheduleS: readonly number[],
): WrongAttempt {
  const until = lockedUntil(lock, now);
  if (until !== undefined) return { kind: "locked", until };
  const known = lock === undefined || isForgotten(lock, now) ? { failures: 0, locks: 0 } : lock;
  const failures = known.failures + 1;
  const counted = { lastFailureAt: now, locks: known.locks };
  if (failures < WRONG_ATTEMPTS_TO_LOCK)
    return { kind: "counted", lock: { ...counted, failures, lockedUntil: null } };
  const seconds = scheduleS[Math.min(known.locks, scheduleS.length - 1)] ?? 0;
  const locked = { failures: 0, locks: known.locks + 1, lockedUntil: addMs(now, seconds * 1000) };
  return { kind: "counted", lock: { ...counted, ...locked } };
}

/** The instant until which sign-in is refused, whatever the password; undefined if it is not locked. */
export function lockedUntil(
  lock: Pick<SignInLock, "lockedUntil"> | undefined,
  now: Date,
): Date | undefined {
  const until = lock?.lockedUntil ?? null;
  return until !== null && until > now ? until : undefined;
}

/** The seconds of `Retry-After`, rounded up so that nobody comes back too early. */
export function retryAfterS(until: Date, now: Date): number {
  return Math.max(1, Math.ceil((until.getTime() - now.getTime()) / 1000));
}

function isForgotten(lock: SignInLock, now: Date): boolean {
  return addMs(lock.lastFailureAt, FORGET_FAILURES_AFTER_MS) <= now;
}

/** Contract 4.14: in any 24 h, of one budget. */
export const CODES_PER_DAY = 10;
/** Contract 4.14: in any 24 h, per email; fewer from one address, so that a stranger leaves some. */
const WRONG_CODES_PER_DAY = 50;
const WRONG_CODES_PER_ADDRESS = 20;
/** Contract 4.14: per code. */
export const TRIES_PER_CODE = 5;
export const CODE_LIMITS_WINDOW_MS = 24 * 60 * 60 * 1000;

/**
 * Names the budget that a code of an email is issued from. Each type has two: one for addresses that signed the user in
 * before, and one for all others. So a stranger uses up neither another type nor the owner's codes.
 */
export function codeBudget(type: CodeType, isKnownAddress: boolean): string {
  return isKnownAddress ? `${type} known` : type;
}

/** When codes were issued, and when wrong ones were tried, for one email. */
export interface CodeLimits {
  readonly issuedAt: readonly Date[];
  readonly wrongAt: readonly Date[];
}

/** The last code of an email and purpose. */
export interface EmailCode {
  /** The user it was mailed to; null for a signup, and where nothing was mailed. */
  readonly userId: number | null;
  readonly tries: number;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
  readonly consumedAt: Date | null;
}

/** The instants that the limits on codes still count. */
export function withinWindow(instants: readonly Date[], now: Date): Date[] {
  return instants.filter((at) => addMs(at, CODE_LIMITS_WINDOW_MS) > now);
}

/** Whether a budget has another code. */
export function hasCodesLeft({ issuedAt }: Pick<CodeLimits, "issuedAt">, now: Date): boolean {
  return withinWindow(issuedAt, now).length < CODES_PER_DAY;
}

/** Whether a new code has to wait after the last one of its email, whatever that was for, used or not (contract 4). */
export function isCoolingDown({ issuedAt }: CodeLimits, now: Date, cooldownS: number): boolean {
  return issuedAt.some((at) => addMs(at, cooldownS * 1000) > now);
}

/** A code that may still be entered. */
export function isOpenCode(
  code: Pick<EmailCode, "expiresAt" | "consumedAt"> | undefined,
  now: Date,
): boolean {
  return code !== undefined && code.consumedAt === null && code.expiresAt > now;
}

/** When wrong codes were tried for one email: from anywhere, and from the address that tries now. */
export interface WrongTries {
  readonly wrongAt: readonly Date[];
  readonly wrongHereAt: readonly Date[];
  /** Whether that address signed the user in before: then wrong codes from elsewhere do not count against it. */
  readonly isKnownAddress: boolean;
}

/** Whether a try is compared with the code; if not, it is refused like a wrong one. */
export function mayTryCode(
  { wrongAt, wrongHereAt, isKnownAddress }: WrongTries,
  code: Pick<EmailCode, "expiresAt" | "consumedAt" | "tries">,
  now: Date,
): boolean {
  const isLeft =
    code.tries < TRIES_PER_CODE &&
    (isKnownAddress || withinWindow(wrongAt, now).length < WRONG_CODES_PER_DAY) &&
    withinWindow(wrongHereAt, now).length < WRONG_CODES_PER_ADDRESS;
  return isOpenCode(code, now) && isLeft;
}

/** The stored row of a refresh token that a client presents. */
interface PresentedRefreshToken {
  readonly clientId: string | null;
  readonly scope: string;
  readonly expiresAt: Date | null;
  readonly redeemedAt: Date | null;
}

type RefreshDecision =
  | { readonly kind: "refused" }
  /** It was redeemed longer ago than parallel requests of one honest client could be apart (RFC 9700, 4.14.2). */
  | { readonly kind: "replayed" }
  /** The request names scopes that the sign-in did not grant. */
  | { readonly kind: "too_wide" }
  | { readonly kind: "redeem"; readonly scope: string };

/**
 * Contract 5.3. Without `scopes` the new access token has the scope of the refresh token, within `ceiling`:
 * the scopes that the client is registered for by now.
 */
export function decideRefresh(
  token: PresentedRefreshToken,
  request: {
    clientId: string | null;
    scopes: readonly string[] | undefined;
    ceiling?: readonly string[] | undefined;
  },
  { now, leewayS }: { now: Date; leewayS: number },
): RefreshDecision {
  if (token.clientId !== request.clientId) return { kind: "refused" };
  if (token.expiresAt !== null && token.expiresAt <= now) return { kind: "refused" };
  if (token.redeemedAt !== null)
    return { kind: addMs(token.redeemedAt, leewayS * 1000) < now ? "replayed" : "refused" };
  const scopes = request.scopes ?? withinCeiling(token.scope.split(" "), request.ceiling);
  const sources = [token.scope.split(" "), request.ceiling ?? ["*"]];
  const isCovered = sources.every((own) => coversScopes(new Set(own), scopes));
  return isCovered && scopes.length > 0
    ? { kind: "redeem", scope: scopes.join(" ") }
    : { kind: "too_wide" };
}

function withinCeiling(
  scopes: readonly string[],
  ceiling: readonly string[] = ["*"],
): readonly string[] {
  if (ceiling.includes("*")) return scopes;
  return scopes.includes("*") ? ceiling : scopes.filter((scope) => ceiling.includes(scope));
}

/** Whether a token with the scopes `own` may give others the scopes `wanted`: never more than it has. */
export function coversScopes(own: ReadonlySet<string>, wanted: readonly string[]): boolean {
  return own.has("*") || wanted.every((scope) => own.has(scope));
}
