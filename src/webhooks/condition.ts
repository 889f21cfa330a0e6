/** The names of the condition of an active subscription (contract 6.17), from the best to the worst. */
export const CONDITIONS = ["healthy", "degraded", "failing"] as const;
export type Condition = (typeof CONDITIONS)[number];

/** Attempts of one step of five minutes. */
export interface StepCounts {
  readonly successes: number;
  readonly failures: number;
}

/** The figures of health from which the condition follows. */
interface Figures {
  readonly consecutiveFailureCount: number;
  readonly blockedAttempts: number;
  readonly blockedSince: Date | null;
  /** Start of the last attempt that was answered 2xx. */
  readonly lastSuccessStartedAt: Date | null;
  /** The lanes that stand still for a reason on our side. */
  readonly quarantined: readonly unknown[];
  /** The beginning of an outage of our own. */
  readonly outageSince: Date | null;
  /** The steps of the last hour, the oldest first. */
  readonly steps: readonly StepCounts[];
}

/** The number of steps whose attempts make a rate: 15 minutes. */
const WINDOW_STEPS = 3;
const WINDOW_MS = 900_000;
/** The failures in a window from which its rate counts. A single failed attempt of a quiet subscription is none. */
const FAILURES = 5;
/** The rates below which a condition begins, and from which it ends. The gap keeps it from changing back and forth. */
const FAILING = { below: 0.5, until: 0.75 };
const DEGRADED = { below: 0.95, until: 0.98 };
/** The permanent failures in a row, and the failed attempts of one event, that count as failing by themselves. */
const LOST_EVENTS = 5;
const STUCK_ATTEMPTS = 2;

/** Derives the condition of an active subscription. */
export function conditionOf(figures: Figures, now: Date): Condition {
  const { consecutiveFailureCount: lost, blockedAttempts, blockedSince } = figures;
  const succeededAt = figures.lastSuccessStartedAt?.getTime() ?? Number.NEGATIVE_INFINITY;
  // Not by the end of the success, because the next attempt often starts in the same millisecond.
  const isStuck = blockedSince !== null && succeededAt <= blockedSince.getTime();
  const isSilent = succeededAt < now.getTime() - WINDOW_MS;
  if (lost >= LOST_EVENTS || (lost > 0 && isSilent)) return "failing";
  if (blockedAttempts >= STUCK_ATTEMPTS && isStuck) return "failing";
  const isHeldUp = figures.quarantined.length > 0 || figures.outageSince !== null;
  const best: Condition = isHeldUp ? "degraded" : "healthy";
  let condition: Condition = "healthy";
  for (let end = 1; end <= figures.steps.length; end++)
    condition = next(condition, figures.steps.slice(Math.max(0, end - WINDOW_STEPS), end));
  return condition === "healthy" ? best : condition;
}

/** Returns the condition after a window. A window without attempts leaves it as it was. */
function next(before: Condition, window: readonly StepCounts[]): Condition {
  const failures = window.reduce((sum, one) => sum + one.failures, 0);
  const total = window.reduce((sum, one) => sum + one.successes, failures);
  if (total === 0) return before;
  const rate = (total - failures) / total;
  const isMany = failures >= FAILURES;
  if (isMany && rate < FAILING.below) return "failing";
  if (before === "failing" && rate < FAILING.until) return "failing";
  if (isMany && rate < DEGRADED.below) return "degraded";
  return before !== "healthy" && rate < DEGRADED.until ? "degraded" : "healthy";
}
