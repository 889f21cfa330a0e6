import { fromMs } from "../lib/clock.ts";

/** Attempts are counted per so long; a step of the charts is a multiple of it. */
export const BUCKET_MS = 300_000;
/** The lengths of buckets, the longest first; each is summed from the next. */
export const LEVELS_MS = [86_400_000, 3_600_000, BUCKET_MS] as const;

/**
 * Bins of a duration in ms: one per millisecond below EXACT_MS, then bins that grow by a tenth, so that a percentile
 * read from them is off by 5 % at the most.
 */
export const EXACT_MS = 20;
export const GROWTH = 1.1;

/** The middle of a bin, in ms. */
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

/** Percentiles by the nearest rank; null where nothing was counted. */
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

/** Steps begin at `origin`; `until` does not belong to the range. */
export interface Range {
  readonly since: Date;
  readonly until: Date;
  readonly stepMs: number;
  readonly origin: Date;
}

export interface Segment {
  readonly since: Date;
  readonly until: Date;
  /** The length of its buckets; null for the attempts themselves. */
  readonly levelMs: number | null;
}

/**
 * The range in the fewest buckets: the longest ones in its middle, shorter ones towards its ends, and the attempts
 * themselves where no bucket fits or none is counted yet. No bucket reaches over the end of a step.
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

/** Attempts that no bucket has counted yet are read in so many slices, and of each the first so many. */
export const SLICES = 8;
const MIN_SLICE_MS = 60_000;
export const READ_PER_SLICE = 1_000;

/** What was not counted, in slices that bound how much is read of it. They tell apart no more than where to look. */
export function slicesOf(
  { since, until }: Pick<Segment, "since" | "until">,
  now: Date,
): Pick<Segment, "since" | "until">[] {
  // Clocks are not further apart.
  const latest = now.getTime() + MIN_SLICE_MS;
  const end = Math.min(until.getTime(), latest);
  const sliceMs = Math.max(MIN_SLICE_MS, Math.ceil((end - since.getTime()) / SLICES));
  const slices = [];
  for (let ms = since.getTime(); ms < end; ms += sliceMs)
    slices.push({ since: fromMs(ms), until: fromMs(Math.min(ms + sliceMs, end)) });
  return slices;
}

/** So many attempts are read for the shares of their events, over all steps; of each step the first ones stand for all. */
export const READ_BY_EVENT = 20_000;
/** As many as a sample of this size is off by a few percent with. */
const READ_PER_STEP = 500;

/** Where the attempts of each step are that has begun by `now`, and how many of each are read. */
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

/** What was read of a step by event, spread over all attempts of the step. */
export function spread(read: readonly EventCount[], attempts: number): Record<string, number> {
  const known = read.reduce((total, one) => total + one.count, 0);
  const scale = Math.max(1, attempts / known);
  return Object.fromEntries(read.map(({ event, count }) => [event, Math.round(count * scale)]));
}

export interface CountedAttempts extends BinCount {
  readonly outcome: string;
}

/** Attempts by how they ended. One that we broke off ourselves says nothing about the receiver. */
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
