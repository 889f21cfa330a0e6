// With `PLANS_ATTEMPTS` (and `PLANS_DAYS`, 5 by default) the table of attempts has that many rows, and the slowest run of
// each statement is printed instead of the comparison with its limit:
// PLANS_ATTEMPTS=10000000 PLANS_DAYS=30 bun run test tests/integration/db/plans.test.ts
import { beforeAll, describe, expect, test } from "bun:test";

import { fixture } from "../../support/fixture.ts";
import { planCases } from "../../support/plans/cases.ts";
import { measurePlans, type Measured } from "../../support/plans/run.ts";
import { createDatabase } from "../../support/postgres.ts";

/** Enough rows that a plan that scans a table exceeds every limit. */
const ATTEMPTS = 100_000;
const attempts = Number(process.env["PLANS_ATTEMPTS"] ?? ATTEMPTS);
/** The limits hold for the default sizes only, because some statements read every day. */
const isDefault = attempts === ATTEMPTS;
const days = Number(process.env["PLANS_DAYS"] ?? 5);
const SIZES = { queued: 100_000, attempts, days, others: 500, batches: 1_000 };
/** Time limit in ms for filling the tables and running the statements, which take a minute on an idle machine. */
const FILL_MS = 600_000 * Math.ceil(attempts / ATTEMPTS);

const database = fixture(createDatabase);

describe.each(planCases(SIZES).map((one) => [one.name, one] as const))("%s", (name, planCase) => {
  const { bound } = planCase;
  const own = () => measured.filter(({ one }) => one.name === name);

  test.skipIf(!isDefault)(
    `reads at most ${bound} blocks with any statistics of the planner`,
    () => {
      const over = own().filter(({ blocks }) => blocks > bound);
      const told = over.map((one) => `${one.state}, ${one.mode}: ${one.blocks}`);
      expect(told, over[0]?.plans.join("\n")).toEqual([]);
    },
  );
});

let measured: readonly Measured[];

beforeAll(async () => {
  measured = await measurePlans(database, SIZES);
  if (isDefault) return;
  for (const [name, runs] of Map.groupBy(measured, ({ one }) => one.name))
    console.log(
      `${Math.max(...runs.map(({ ms }) => ms))
        .toFixed(1)
        .padStart(9)} ms  ${name}`,
    );
}, FILL_MS);
