import { describe, expect, test } from "bun:test";

import { Prng } from "../simulation/prng.ts";
import { runSeed } from "../simulation/run.ts";
import { testSeeds } from "../support/seeds.ts";

describe("the dispatcher under a virtual clock", () => {
  // `bun run simulate` runs more seeds; the nightly workflow runs 20,000.
  testSeeds({ seeds: 30, block: 10 });

  test("does the same again for the same seed, watched or not", () => {
    const watched = runSeed(7, { traced: true });
    expect(watched.trace.length).toBeGreaterThan(500);
    expect(runSeed(7)).toEqual({ ...watched, trace: [] });
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
