import { fromMs } from "../lib/clock.ts";

/** Length in milliseconds of the shortest bucket of attempts. The steps of charts are multiples of it. */
export const BUCKET_MS = 300_000;
/** Lengths of buckets in milliseconds, the longest first. Each bucket is summed from those of the next length. */
export const LEVELS_MS = [86_400_000, 3_600_000, BUCKET_MS] as const;

/**
 * The milliseconds below which each duration has its own bin. Above it, each bin is a tenth wider than the one
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
  return cover({ since, until }, levels, countedUntil);
}

function cover(
  { since, until }: { readonly since: Date; readonly until: Date },
  [levelMs, ...finer]: readonly number[],
  countedUntil: Date,
): Segment[] {
  if (since >= until) return [];
  if (levelMs === undefined) return [{ since, until, levelMs: null }];
  const first = bucketFloor(fromMs(since.getTime() + levelMs - 1), levelMs);
  const last = bucketFloor(countedUntil < until ? countedUntil : until, levelMs);
  if (last <= first) return cover({ since, until }, finer, countedUntil);
  return [
    ...cover({ since, until: first }, finer, countedUntil),
    { since: first, until: last, levelMs },
    ...cover({ since: last, until }, finer, countedUntil),
  ];
}

/** The number of slices in which attempts without a bucket are read. */
export const SLICES = 8;
const MIN_SLICE_MS = 60_000;
/** The number of attempts that are read of each slice. */
export const READ_PER_SLICE = 1_000;

/** Divides a segment without buckets into slices. Each slice is read up to a limit. */
export function slicesOf(
  { since, until }: Pick<Segment, "since" | "until">,
  now: Date,
): Pick<Segment, "since" | "until">[] {
  // Attempts may be ahead of `now` by the difference between the clocks of processes.
  const latest = now.getTime() + MIN_SLICE_MS;
  const end = Math.min(until.getTime(), latest);
  const sliceMs = Math.max(MIN_SLICE_MS, Math.ceil((end - since.getTime()) / SLICES));
  const slices = [];
  for (let ms = since.getTime(); ms < end; ms += sliceMs)
    slices.push({ since: fromMs(ms), until: fromMs(Math.min(ms + sliceMs, end)) });
  return slices;
}

/**
 * The number of attempts that are read to count them by event, over all steps. The first ones of each step are a
 * sample.
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
 * Sums counts of attempts up. Interrupted attempts are left out: the dispatcher aborted them, so they say nothing
 * about the receiver.
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
