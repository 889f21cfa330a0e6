import { describe, expect, test } from "bun:test";

import { Prng } from "../../scripts/simulate/prng.ts";
import { formatFailure } from "../../scripts/simulate/report.ts";
import { runSeed } from "../../scripts/simulate/run.ts";

// A few, for a check that is run often; tests/integration/simulate.test.ts runs many.
const SEEDS = 30;
const BLOCK = 10;
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

  test("does the same again for the same seed, watched or not", () => {
    const [once, again, unwatched] = [
      runSeed(7, { traced: true }),
      runSeed(7, { traced: true }),
      runSeed(7),
    ];
    expect(once.trace.length).toBeGreaterThan(1_000);
    expect(again).toEqual(once);
    expect(unwatched).toEqual({ ...once, trace: [] });
  });

  test("does something else for another seed", () => {
    expect(runSeed(8).virtualMs).not.toBe(runSeed(7).virtualMs);
  });
});

test("numbers from one seed are spread evenly and repeat with it", () => {
  const draw = () => {
    const random = new Prng(42);
    return Array.from({ length: 10_000 }, () => random.next());
  };
  const numbers = draw();
  expect(draw()).toEqual(numbers);
  const mean = numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
  expect(Math.abs(mean - 0.5)).toBeLessThan(0.02);
});
