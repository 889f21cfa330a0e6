import { describe, expect, test } from "bun:test";

import { PLANTS } from "../../scripts/simulate/plants.ts";
import { runChild } from "../../scripts/simulate/pool.ts";
import { formatFailure } from "../../scripts/simulate/report.ts";
import { runSeed } from "../../scripts/simulate/run.ts";
import type { Failure } from "../../scripts/simulate/seeds.ts";

// About two minutes of one core; `bun run simulate --seeds 10000` runs more.
const SEEDS = 3_000;
const BLOCK = 100;
/** A plant is found within so many seeds of the one that is known to show it. */
const PLANT_SEEDS = 1_000;
const TIMEOUT_MS = 180_000;

describe("the dispatcher under a virtual clock", () => {
  for (let from = 1; from <= SEEDS; from += BLOCK) {
    const to = from + BLOCK - 1;
    test(
      `keeps every invariant in the seeds ${from} to ${to}`,
      () => {
        for (let seed = from; seed <= to; seed++)
          if (runSeed(seed).violation !== undefined)
            throw new Error(formatFailure(runSeed(seed, { traced: true })));
      },
      TIMEOUT_MS,
    );
  }
});

describe("a bug put in on purpose is found", () => {
  for (const { name, bug, breaks, seed } of PLANTS) {
    test(
      `${name}: ${bug}`,
      async () => {
        const failures: Failure[] = [];
        const range = { from: seed, seeds: PLANT_SEEDS, step: 1, plant: name, stopAtFailure: true };
        await runChild(range, (tally) => void failures.push(...tally.failures));
        expect(breaks).toContain(failures[0]?.invariant ?? "nothing");
      },
      TIMEOUT_MS,
    );
  }
});
