import { fromMs } from "../lib/clock.ts";

/** Attempts are counted per so long; a step of the charts is a multiple of it. */
export const BUCKET_MS = 300_000;

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
