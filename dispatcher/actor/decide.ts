import { addMs } from "../../src/lib/clock.ts";

/** The number of attempts in a round: one immediately, and one after each of the three delays (contract 7.7). */
export const ATTEMPTS = 4;
/** The number of permanent failures in a row that disables a subscription (contract 6.3). */
export const DISABLE_AFTER_FAILURES = 20;

/** The consequence of one attempt for its entry. */
export type Decision =
  | { readonly kind: "delivered" }
  /** The entry is due `delayMs` after the end of the attempt. The clock of PostgreSQL determines the instant. */
  | { readonly kind: "retry"; readonly delayMs: number }
  | { readonly kind: "failed" }
  /** The dispatcher aborted the attempt. That is no failure of the receiver, and the same attempt is made again. */
  | { readonly kind: "interrupted" };

/** The result of a POST: any 2xx, 410, another status, a failure without a response, or an abort by us. */
export type PostResultKind = "accepted" | "gone" | "rejected" | "failed" | "aborted";

/**
 * Decides the retry (contract 7.7). Each delay counts from the end of the failed attempt. A 410 and the fourth failure
 * are permanent.
 */
export function decideNext(
  result: PostResultKind,
  state: { readonly attempt: number; readonly retryDelaysMs: readonly number[] },
): Decision {
  switch (result) {
    case "accepted":
      return { kind: "delivered" };
    case "aborted":
      return { kind: "interrupted" };
    case "gone":
      return { kind: "failed" };
    case "rejected":
    case "failed": {
      const delay = state.attempt < ATTEMPTS ? state.retryDelaysMs[state.attempt - 1] : undefined;
      return delay === undefined ? { kind: "failed" } : { kind: "retry", delayMs: delay };
    }
  }
}

const POSTPONE_MS = 1_000;
const POSTPONE_MAX_MS = 30_000;

/**
 * Returns the delay before an entry is sent again after a failure on our side, if `before` such failures preceded it.
 * These failures do not count as attempts (contract 7.8).
 */
export function postponeMs(before: number): number {
  return Math.min(POSTPONE_MS * 2 ** before, POSTPONE_MAX_MS);
}

/**
 * Returns the first due time of a batch subscription after `now`: `dueAt` plus a whole number of intervals. Missed due
 * times merge into one batch (contract 7.14).
 */
export function nextBatchAt(dueAt: Date, intervalMs: number, now: Date): Date {
  const missed = Math.floor((now.getTime() - dueAt.getTime()) / intervalMs);
  return addMs(dueAt, (Math.max(0, missed) + 1) * intervalMs);
}
