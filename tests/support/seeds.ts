import { test } from "bun:test";

import { formatFailure, runSeed } from "../simulation/run.ts";

/** Ends what hangs: on a loaded machine a block of seeds may take some minutes. */
export const SIMULATION_TIMEOUT_MS = 1_200_000;

/** A test per `block` of the first `seeds` seeds; one that fails tells the seed with its trace. */
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
