import { test } from "bun:test";

import { formatFailure, runSeed } from "../simulation/run.ts";

/** The time limit of one test. It only ends hangs, because a block of seeds may take minutes on a loaded machine. */
export const SIMULATION_TIMEOUT_MS = 1_200_000;

/** Declares one test per `block` of the seeds from 1 to `seeds`. A failure shows the seed and its trace. */
export function testSeeds({ seeds, block }: { seeds: number; block: number }): void {
  for (let from = 1; from <= seeds; from += block) {
    const to = from + block - 1;
    test(
      `keeps every invariant in the seeds ${from} to ${to}`,
      () => {
        for (let seed = from; seed <= to; seed++)
          if (runSeed(seed).violation !== undefined)
            throw new Error(formatFailure(runSeed(seed, { traced: true })));
      },
      SIMULATION_TIMEOUT_MS,
    );
  }
}
