import { expect } from "bun:test";

const KIB = 1024;
/** Input sizes up to 64 KiB, the limit of a request body. */
const SIZES = [1, 8, 64].map((kib) => kib * KIB);
/**
 * The allowed excess over linear growth. Quadratic work reaches 64 at the largest size. Linear work reaches 8 at times,
 * because of caches and garbage collection.
 */
const SLACK = 20;
const TRIES = 3;
const ROUNDS = 4;
/** The shortest try, in ms. Shorter measurements drown in the pauses of a loaded machine. */
const TRY_MS = 0.5;

/**
 * Expects the time of `run` to grow at most linearly with its input, from 1 KiB to 64 KiB. It takes the fastest of several
 * tries per size and compares ratios only, so that the speed of the machine does not matter.
 */
export function expectLinear(make: (bytes: number) => unknown, run: (input: never) => unknown) {
  let excess = Number.POSITIVE_INFINITY;
  // A paused machine may spoil a whole round. Quadratic work fails in every round.
  for (let round = 0; round < ROUNDS && excess >= SLACK; round++) excess = excessOf(make, run);
  expect(excess).toBeLessThan(SLACK);
}

/** Computes the largest factor by which the time grew more than the input did. */
function excessOf(make: (bytes: number) => unknown, run: (input: never) => unknown): number {
  const [first = 0, ...others] = SIZES.map((size) => costOf(make(size), run));
  const [least = 0, ...sizes] = SIZES;
  return Math.max(...others.map((cost, i) => cost / first / ((sizes[i] ?? 0) / least)));
}

function costOf(input: unknown, run: (input: never) => unknown): number {
  let rounds = 1;
  while (spent(input, run, rounds) < TRY_MS && rounds < 100_000) rounds *= 2;
  const tries = Array.from({ length: TRIES }, () => spent(input, run, rounds) / rounds);
  return Math.min(...tries);
}

function spent(input: unknown, run: (input: never) => unknown, rounds: number): number {
  const before = performance.now();
  for (let i = 0; i < rounds; i++) {
    try {
      run(input as never);
    } catch {
      // Rejecting an input costs time like accepting it, so errors are measured too.
    }
  }
  return performance.now() - before;
}
