import { fromMs } from "../lib/clock.ts";

/** Length in milliseconds of the shortest bucket of attempts. The steps of charts are multiples of it. */
export const BUCKET_MS = 300_000;
/**
 * Lengths of buckets in milliseconds, the longest first. Each bucket is summed from the buckets of the next shorter
 * length.
 */
export const LEVELS_MS = [86_400_000, 3_600_000, BUCKET_MS] as const;

/**
 * Each duration in milliseconds below `EXACT_MS` has its own bin. From there on, each bin is a tenth wider than the one
 * before. A percentile read from the bins deviates by at most 5 %.
 */
export const EXACT_MS = 20;
export const GROWTH = 1.1;

/** Returns the middle of a bin in milliseconds. */
export function binMs(bin: number): number {
  return bin < EXACT_MS ? bin : Math.round(EXACT_MS * GROWTH ** (bin - EXACT_MS + 0.5));
}

export interface BinCount {
  readonly bin: number;
  readonly count: number;
}

export interface Latency {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** Computes percentiles of durations by the nearest-rank method; null without attempts. */
export function latencyOf(counts: readonly BinCount[]): Latency {
  const sorted = counts.toSorted((a, b) => a.bin - b.bin);
  const total = sum(sorted);
  const at = (share: number): number | null => {
    let seen = 0;
    for (const { bin, count } of sorted) {
      seen += count;
      if (seen >= share * total) return binMs(bin);
    }
    return null;
  };
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

export function bucketFloor(at: Date, stepMs = BUCKET_MS): Date {
  return fromMs(Math.floor(at.getTime() / stepMs) * stepMs);
}

function sum(counts: readonly BinCount[]): number {
  return counts.reduce((total, one) => total + one.count, 0);
}

/** A range of time in steps that begin at `origin`, which is not before `since`. `until` is exclusive. */
export interface Range {
  readonly since: Date;
  readonly until: Date;
  readonly stepMs: number;
  readonly origin: Date;
}

/** A part of a range that is counted from buckets of one length, or from the attempts themselves. */
export interface Segment {
  readonly since: Date;
  readonly until: Date;
  /** Length of the buckets in milliseconds; null for a part without buckets. */
  readonly levelMs: number | null;
}

/**
 * Covers a range with the fewest buckets: the longest in its middle, shorter ones towards its ends, and the attempts
 * themselves where no bucket fits or none is counted yet. No bucket crosses the boundary of a step.
 */
export function segmentsOf(range: Range, countedUntil: Date): Segment[] {
  const { since, until, stepMs, origin } = range;
  const isOnePoint = until.getTime() - origin.getTime() <= stepMs;
  const levels = LEVELS_MS.filter(
    (level) => isOnePoint || (stepMs % level === 0 && origin.getTime() % level === 0),
  );
  return coverRange({ since, until }, levels, countedUntil);
}

function coverRange(
  { since, until }: { readonly since: Date; readonly until: Date },
  [levelMs, ...finer]: readonly number[],
  countedUntil: Date,
): Segment[] {
  if (since >= until) return [];
  if (levelMs === undefined) return [{ since, until, levelMs: null }];
  const first = bucketFloor(fromMs(since.getTime() + levelMs - 1), levelMs);
  const last = bucketFloor(countedUntil < until ? countedUntil : until, levelMs);
  if (last <= first) return coverRange({ since, until }, finer, countedUntil);
  return [
    ...coverRange({ since, until: first }, finer, countedUntil),
    { since: first, until: last, levelMs },
    ...coverRange({ since: last, until }, finer, countedUntil),
  ];
}

/** The number of slices in which attempts without a bucket are read. */
export const SLICES = 8;
const MIN_SLICE_MS = 60_000;
/** The most attempts that are read of each slice. */
export const READ_PER_SLICE = 1_000;

/** Divides a segment without buckets into slices. Each slice is read up to a limit. */
export function slicesOf(
  { since, until }: Pick<Segment, "since" | "until">,
  now: Date,
): Pick<Segment, "since" | "until">[] {
  // The slices end after `now`, because the start of an attempt may be ahead of `now` by the difference between the
  // clocks of processes.
  const latest = now.getTime() + MIN_SLICE_MS;
  const end = Math.min(until.getTime(), latest);
  const sliceMs = Math.max(MIN_SLICE_MS, Math.ceil((end - since.getTime()) / SLICES));
  const slices = [];
  for (let ms = since.getTime(); ms < end; ms += sliceMs)
    slices.push({ since: fromMs(ms), until: fromMs(Math.min(ms + sliceMs, end)) });
  return slices;
}

/**
 * The most attempts that one request reads to count attempts by event, in all steps together. The first attempts of
 * each step are its sample.
 */
export const READ_BY_EVENT = 20_000;
/** The most attempts in the sample of a step. This size makes shares accurate to a few percent. */
const READ_PER_STEP = 500;

/** Returns the steps that have begun by `now`, and the number of attempts to read of each. */
export function eventSlices({ since, until, stepMs }: Range, now: Date) {
  const end = Math.min(until.getTime(), now.getTime() + MIN_SLICE_MS);
  const steps = [];
  for (let ms = since.getTime(); ms < end; ms += stepMs)
    steps.push({ since: fromMs(ms), until: fromMs(ms + stepMs) });
  const limit = Math.min(READ_PER_STEP, Math.floor(READ_BY_EVENT / Math.max(1, steps.length)));
  return { steps, limit };
}

export interface EventCount {
  readonly event: string;
  readonly count: number;
}

/** Scales the counts of a sample up to all attempts of the step. */
export function scaleUp(read: readonly EventCount[], attempts: number): Record<string, number> {
  const known = read.reduce((total, one) => total + one.count, 0);
  const scale = Math.max(1, attempts / known);
  return Object.fromEntries(read.map(({ event, count }) => [event, Math.round(count * scale)]));
}

export interface CountedAttempts extends BinCount {
  readonly outcome: string;
}

/**
 * Sums counts of attempts. Interrupted attempts are left out: the dispatcher aborted them, so they say nothing about
 * the receiver.
 */
export function tally(rows: readonly CountedAttempts[]): {
  successes: number;
  failures: number;
  latency: Latency;
} {
  const answered = rows.filter((row) => row.outcome !== "interrupted");
  const successes = answered.filter((row) => row.outcome === "delivered");
  return {
    successes: sum(successes),
    failures: sum(answered) - sum(successes),
    latency: latencyOf(answered),
  };
}

/** The names of the condition of an active subscription (contract 6.17), from the best to the worst. */
export const CONDITIONS = ["healthy", "degraded", "failing"] as const;
type Condition = (typeof CONDITIONS)[number];

/** Attempts of one step of five minutes. */
export interface StepCounts {
  readonly successes: number;
  readonly failures: number;
}

/** The figures from which the condition of a subscription is derived. */
interface HealthFigures {
  readonly consecutiveFailureCount: number;
  readonly blockedAttempts: number;
  readonly blockedSince: Date | null;
  /** Start of the last attempt that was answered 2xx. */
  readonly lastSuccessStartedAt: Date | null;
  /** The quarantined lanes. */
  readonly quarantined: readonly unknown[];
  /** Start of an outage that the dispatcher of the subscription reports; null without one. */
  readonly outageSince: Date | null;
  /** The steps of the last hour, the oldest first. */
  readonly steps: readonly StepCounts[];
}

/** The number of steps over which a success rate is computed: the last 15 minutes. */
const WINDOW_STEPS = 3;
const WINDOW_MS = 900_000;
/**
 * Minimum number of failed attempts in a window from which a subscription can become degraded or failing. So a few
 * failed attempts of a subscription with few events have no effect.
 */
const MIN_FAILURES = 5;
/**
 * A condition begins when the success rate falls below `below`, and ends when the rate reaches `until`. Without this
 * gap, the condition would often change back and forth.
 */
const FAILING_RATES = { below: 0.5, until: 0.75 };
const DEGRADED_RATES = { below: 0.95, until: 0.98 };
/**
 * The number of permanent failures in a row, and the number of failed attempts of a blocking event, from which a
 * subscription is failing regardless of its success rate.
 */
const LOST_EVENTS = 5;
const STUCK_ATTEMPTS = 2;

/** Derives the condition of an active subscription. */
export function conditionOf(figures: HealthFigures, now: Date): Condition {
  const { consecutiveFailureCount: lost, blockedAttempts, blockedSince } = figures;
  const succeededAt = figures.lastSuccessStartedAt?.getTime() ?? Number.NEGATIVE_INFINITY;
  // The start of the successful attempt is compared and not its end, because the next attempt often starts in the
  // millisecond of that end.
  const isStuck = blockedSince !== null && succeededAt <= blockedSince.getTime();
  const isSilent = succeededAt < now.getTime() - WINDOW_MS;
  if (lost >= LOST_EVENTS || (lost > 0 && isSilent)) return "failing";
  if (blockedAttempts >= STUCK_ATTEMPTS && isStuck) return "failing";
  const isHeldUp = figures.quarantined.length > 0 || figures.outageSince !== null;
  const best: Condition = isHeldUp ? "degraded" : "healthy";
  let condition: Condition = "healthy";
  for (let end = 1; end <= figures.steps.length; end++)
    condition = nextCondition(condition, figures.steps.slice(Math.max(0, end - WINDOW_STEPS), end));
  // The rate stays low for some minutes after an enable, though every event is delivered.
  const isDelivering = lost === 0 && blockedAttempts === 0 && !isSilent;
  if (condition === "failing" && isDelivering) return "degraded";
  return condition === "healthy" ? best : condition;
}

/** Returns the condition after a window. A window without attempts does not change the condition. */
function nextCondition(before: Condition, window: readonly StepCounts[]): Condition {
  const failures = window.reduce((count, one) => count + one.failures, 0);
  const total = window.reduce((count, one) => count + one.successes, failures);
  if (total === 0) return before;
  const rate = (total - failures) / total;
  const isMany = failures >= MIN_FAILURES;
  if (isMany && rate < FAILING_RATES.below) return "failing";
  if (before === "failing" && rate < FAILING_RATES.until) return "failing";
  if (isMany && rate < DEGRADED_RATES.below) return "degraded";
  return before !== "healthy" && rate < DEGRADED_RATES.until ? "degraded" : "healthy";
}
