import { expect } from "bun:test";

const KIB = 1024;
/** Twice as large each time, up to the limit of a body. */
const SIZES = [1, 2, 4, 8, 16, 32, 64].map((kib) => kib * KIB);
/** Between a line and a square there is a factor of 64 at the end; caches and collectors make a line of eight at times. */
const SLACK = 20;
const TRIES = 7;
const ROUNDS = 4;
/** One try is so long at least, in ms: what is shorter is lost among the pauses of a loaded machine. */
const TRY_MS = 0.5;

/**
 * Holds the work of `run` to grow with its input as a line does, from 1 KB to 64 KB, by the fastest of several tries at
 * each size. Only ratios are held, because a machine may be as slow as it likes.
 */
export function expectLinear(make: (bytes: number) => unknown, run: (input: never) => unknown) {
  let excess = Number.POSITIVE_INFINITY;
  // A machine that is taken away for a while may spoil a whole round; a square is one in every round.
  for (let round = 0; round < ROUNDS && excess >= SLACK; round++) excess = excessOf(make, run);
  expect(excess).toBeLessThan(SLACK);
}

/** By how much the work grows faster than the input, at the most. */
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
      // A refusal is an answer like any other: what counts is what it cost.
    }
  }
  return performance.now() - before;
}
