import { setImmediate } from "node:timers/promises";

import { runSeed } from "./run.ts";

export interface Failure {
  readonly seed: number;
  readonly invariant: string;
  readonly message: string;
}

/** Sums over some seeds, which child processes report. */
export interface Tally {
  seeds: number;
  virtualMs: number;
  faults: number;
  posts: number;
  failures: Failure[];
}

function createTally(): Tally {
  return { seeds: 0, virtualMs: 0, faults: 0, posts: 0, failures: [] };
}

export interface SeedRange {
  readonly from: number;
  readonly seeds: number;
  readonly step: number;
  readonly injected: string | undefined;
  readonly stopAtFailure: boolean;
}

/** Unhandled rejections, each of which would have ended the real process. */
const unhandled: unknown[] = [];

export function watchRejections(): void {
  process.on("unhandledRejection", (error) => void unhandled.push(error));
}

/** Runs one seed after the other; `report` is called once with each tally. */
export async function runSeeds(range: SeedRange, report: (tally: Tally) => void): Promise<void> {
  let tally = createTally();
  for (let n = 0; n < range.seeds; n++) {
    const seed = range.from + n * range.step;
    const { violation, virtualMs, faults, posts } = runSeed(seed);
    await setImmediate();
    tally.seeds += 1;
    tally.virtualMs += virtualMs;
    tally.faults += faults;
    tally.posts += posts;
    if (violation !== undefined)
      tally.failures.push({ seed, invariant: violation.invariant, message: violation.message });
    for (const error of unhandled.splice(0))
      tally.failures.push({ seed, invariant: "no unhandled rejection", message: String(error) });
    const stops = range.stopAtFailure && tally.failures.length > 0;
    if (tally.seeds >= 20 || stops || n === range.seeds - 1) {
      report(tally);
      tally = createTally();
    }
    if (stops) return;
  }
}
