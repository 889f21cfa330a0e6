import { expect, test } from "bun:test";

import {
  budgetOf,
  LIMITS,
  MIN_DESCRIPTORS,
  WANTED_DESCRIPTORS,
} from "../../../../dispatcher/delivery/limits.ts";

test.each([
  [Number.POSITIVE_INFINITY, LIMITS.requests],
  [WANTED_DESCRIPTORS, LIMITS.requests],
  [1_024, 298],
  [MIN_DESCRIPTORS, 32],
  [MIN_DESCRIPTORS - 1, undefined],
  [80, undefined],
])("with %p descriptors %p requests of each kind are under way at once", (count, requests) => {
  const budget = budgetOf(count);
  expect(budget?.limits.requests).toBe(requests as number);
  if (budget === undefined) return;
  const used = 2 * budget.limits.requests + budget.maxIdle;
  expect(used).toBeLessThan(count);
});

test("reads the limit of file descriptors of this process", () => {
  const limits = new URL("../../../../dispatcher/delivery/limits.ts", import.meta.url).pathname;
  const script = `console.log((await import(${JSON.stringify(limits)})).countDescriptors())`;
  const { stdout } = Bun.spawnSync([
    "sh",
    "-c",
    'ulimit -n 64; exec "$0" -e "$1"',
    process.execPath,
    script,
  ]);
  expect(stdout.toString()).toBe("64\n");
});
