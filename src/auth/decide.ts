import { addMs } from "../lib/clock.ts";

/** interface.md 8, sign-in lock. */
export const WRONG_ATTEMPTS_TO_LOCK = 5;
/** decisions.md 2, lock: how long after the last wrong answer everything is forgotten. */
export const FORGET_FAILURES_AFTER_MS = 24 * 60 * 60 * 1000;

/** What is kept per normalised email. */
export interface SignInLock {
  /** Wrong answers since the last lock. */
  readonly failures: number;
  /** Locks so far; the next one is longer. */
  readonly locks: number;
  readonly lockedUntil: Date | null;
  readonly lastFailureAt: Date;
}

/** A wrong answer is either not even counted, or counted; the fifth one locks. */
export type WrongAttempt = { kind: "locked"; until: Date } | { kind: "counted"; lock: SignInLock };

/**
 * The rule of the sign-in lock (interface.md 3.2, decisions.md 2). `settleWrongAttempt` in queries/locks.ts is the same
 * rule in SQL, because parallel attempts must be settled one after the other in one statement;
 * tests/integration/auth-lock.test.ts holds the two together.
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

/** Until when sign-in is refused, right password or not; undefined if it is not. */
export function lockedUntil(
  lock: Pick<SignInLock, "lockedUntil"> | undefined,
  now: Date,
): Date | undefined {
  const until = lock?.lockedUntil ?? null;
  return until !== null && until > now ? until : undefined;
}

/** `Retry-After`: whole seconds, never so short that the caller comes back too early. */
export function retryAfterS(until: Date, now: Date): number {
  return Math.max(1, Math.ceil((until.getTime() - now.getTime()) / 1000));
}

function isForgotten(lock: SignInLock, now: Date): boolean {
  return addMs(lock.lastFailureAt, FORGET_FAILURES_AFTER_MS) <= now;
}
