import { beforeAll, describe, expect, test } from "bun:test";

import { fixture } from "../../support/fixture.ts";
import { planCases } from "../../support/plans/cases.ts";
import { measurePlans, type Measured } from "../../support/plans/run.ts";
import { createDatabase } from "../../support/postgres.ts";

/** Enough rows that a plan that scans a table exceeds every limit. */
const SIZES = { queued: 100_000, attempts: 100_000, others: 500, batches: 1_000 };
const FILL_MS = 120_000;

const database = fixture(createDatabase);

describe.each(planCases(SIZES).map((one) => [one.name, one] as const))("%s", (name, planCase) => {
  const { bound } = planCase;
  const own = () => measured.filter(({ one }) => one.name === name);

  test(`reads at most ${bound} blocks with any statistics of the planner`, () => {
    const over = own().filter(({ blocks }) => blocks > bound);
    const told = over.map((one) => `${one.state}, ${one.mode}: ${one.blocks}`);
    expect(told, over[0]?.plans.join("\n")).toEqual([]);
  });
});

let measured: readonly Measured[];

beforeAll(async () => {
  measured = await measurePlans(database, SIZES);
}, FILL_MS);
