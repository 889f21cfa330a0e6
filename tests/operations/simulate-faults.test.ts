import { describe, expect, test } from "bun:test";

import { INJECTED_FAULTS } from "../simulation/injected-faults.ts";
import { runChild } from "../simulation/pool.ts";
import type { Failure } from "../simulation/seeds.ts";
import { SIMULATION_TIMEOUT_MS } from "../support/seeds.ts";

describe("an injected fault is found", () => {
  for (const { name, bug, breaks, seed } of INJECTED_FAULTS) {
    test(
      `${name}: ${bug}`,
      async () => {
        const failures: Failure[] = [];
        const range = {
          from: seed,
          seeds: FAULT_SEEDS,
          step: 1,
          injected: name,
          stopAtFailure: true,
        };
        await runChild(range, (tally) => void failures.push(...tally.failures));
        expect(breaks).toContain(failures[0]?.invariant ?? "nothing");
      },
      SIMULATION_TIMEOUT_MS,
    );
  }
});

/** The number of seeds, from the one that is known to show a fault, within which it must be found. */
const FAULT_SEEDS = 1_000;
