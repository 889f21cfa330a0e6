import { describe, expect, test } from "bun:test";

import { PLANTS } from "../../simulation/plants.ts";
import { runChild } from "../../simulation/pool.ts";
import type { Failure } from "../../simulation/seeds.ts";
import { SIMULATION_TIMEOUT_MS } from "../../support/seeds.ts";

/** How many seeds may be needed from the seed that is known to show the fault. */
const PLANT_SEEDS = 1_000;

describe("an injected fault is found", () => {
  for (const { name, bug, breaks, seed } of PLANTS) {
    test(
      `${name}: ${bug}`,
      async () => {
        const failures: Failure[] = [];
        const range = { from: seed, seeds: PLANT_SEEDS, step: 1, plant: name, stopAtFailure: true };
        await runChild(range, (tally) => void failures.push(...tally.failures));
        expect(breaks).toContain(failures[0]?.invariant ?? "nothing");
      },
      SIMULATION_TIMEOUT_MS,
    );
  }
});
