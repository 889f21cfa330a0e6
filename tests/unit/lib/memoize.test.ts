import { expect, test } from "bun:test";

import { memoize } from "../../../src/lib/memoize.ts";

test("makes each value once, and makes all of them again past the limit", () => {
  const made: number[] = [];
  const double = memoize((n: number) => {
    made.push(n);
    return n * 2;
  }, 2);
  expect([1, 2, 1, 2].map(double)).toEqual([2, 4, 2, 4]);
  expect(made).toEqual([1, 2]);
  expect([3, 3, 1].map(double)).toEqual([6, 6, 2]);
  expect(made).toEqual([1, 2, 3, 1]);
});
