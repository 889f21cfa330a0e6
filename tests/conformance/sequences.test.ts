import { describe, test } from "bun:test";
import * as fc from "fast-check";

import { startPostgres } from "./postgres-store.ts";
import { Sequence } from "./sequence.ts";
import { sequences } from "./steps.ts";
import { TwoStores } from "./two-stores.ts";
import { fixture } from "../support/fixture.ts";

const postgres = fixture(startPostgres);

/** fast-check prints the seed of a failure, the path, and the shortest failing sequence. */
describe("the simulated store and Postgres answer and hold the same", () => {
  for (const seed of SEEDS) {
    test(
      `after every statement of ${RUNS} random sequences of seed ${seed}`,
      async () => {
        const property = fc.asyncProperty(sequences, async (steps) => {
          const sequence = new Sequence(await TwoStores.on(postgres));
          for (const step of steps) if (step !== undefined) await sequence.take(step);
        });
        await fc.assert(property, {
          seed,
          numRuns: RUNS,
          // Ends shrinking before the time limit of the test.
          interruptAfterTimeLimit: TIMEOUT_MS / 2,
          markInterruptAsFailure: true,
        });
      },
      TIMEOUT_MS,
    );
  }
});

const SEEDS = [1, 2];
const RUNS = 6;
const TIMEOUT_MS = 360_000;
