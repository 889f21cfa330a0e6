import { addMs } from "../../src/lib/clock.ts";

/** Attempts per event and round: at once, and after each of the three delays (contract 7.7). */
export const ATTEMPTS = 4;
/** Permanent failures in a row that disable a subscription (contract 6.3). */
export const DISABLE_AFTER_FAILURES = 20;

/** What one attempt means for its entry. */
export type Decision =
  | { readonly kind: "delivered" }
  /** Due so long after its end: the instant is for Postgres' clock to say. */
  | { readonly kind: "retry"; readonly delayMs: number }
  | { readonly kind: "failed" }
  /** We broke it off: that is no failure, and the same attempt is made again. */
  | { readonly kind: "interrupted" };

/** How an attempt ended: with any 2xx, 410, another answer, a failure, or broken off by ourselves. */
export type Ending = "accepted" | "gone" | "rejected" | "failed" | "aborted";

/**
 * The retry rule (contract 7.7): each delay counts from the end of the failed attempt; 410 and the fourth failure are
 * permanent.
 */
export function decideNext(
  ending: Ending,
  state: { readonly attempt: number; readonly retryDelaysMs: readonly number[] },
): Decision {
  switch (ending) {
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
 * How long to wait after a failure of our own, which does not count (contract 7.8), when `before` others preceded it.
 */
export function postponeMs(before: number): number {
  return Math.min(POSTPONE_MS * 2 ** before, POSTPONE_MAX_MS);
}

/** The next due time on the grid of a batch subscription: missed ticks merge into one (contract 7.14). */
export function nextBatchAt(dueAt: Date, intervalMs: number, now: Date): Date {
  const missed = Math.floor((now.getTime() - dueAt.getTime()) / intervalMs);
  return addMs(dueAt, (Math.max(0, missed) + 1) * intervalMs);
}
