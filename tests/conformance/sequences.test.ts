import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";

import { startPostgres } from "./postgres-store.ts";
import { Sequence } from "./sequence.ts";
import { sequences, type Step } from "./steps.ts";
import { TwoStores } from "./two-stores.ts";
import { fixture } from "../support/fixture.ts";

const postgres = fixture(startPostgres);

/** fast-check prints the seed of a failure, the path, and the shortest failing sequence. */
describe("the simulated store and Postgres answer and hold the same", () => {
  for (const seed of SEEDS) {
    test(
      `after every statement of ${RUNS} random sequences of seed ${seed}`,
      async () => {
        const done = new Set<string>();
        const property = fc.asyncProperty(sequences, async (steps) => {
          const sequence = new Sequence(await TwoStores.on(postgres));
          for (const step of steps)
            if (step !== undefined) done.add(`${step.kind} ${await sequence.take(step)}`);
        });
        await fc.assert(property, {
          seed,
          numRuns: RUNS,
          // Ends shrinking before the time limit of the test.
          interruptAfterTimeLimit: TIMEOUT_MS / 2,
          markInterruptAsFailure: true,
        });
        // A step without a target is omitted, so that a sequence proves only what it has done.
        const expected = [
          ...CHANGING.map((kind) => `${kind} changed`),
          ...ASKING.map((kind) => `${kind} asked`),
        ];
        expect(expected.filter((one) => !done.has(one))).toEqual([]);
      },
      TIMEOUT_MS,
    );
  }
});

/** The steps that must have changed the tables at least once, and those that must have been answered. */
const CHANGING: readonly Step["kind"][] = [
  "append",
  "commit",
  "create",
  "remove",
  "enable",
  "test",
  "redeliver",
  "reorder",
  "renumber",
  "batch",
  "join",
  "renew",
  "release",
  "leave",
];
const ASKING: readonly Step["kind"][] = ["load", "sweep", "repeat", "pass"];

const SEEDS = [1, 2];
const RUNS = 6;
const TIMEOUT_MS = 360_000;
