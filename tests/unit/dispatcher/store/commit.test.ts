import { expect, test } from "bun:test";

import type { DbOrTx } from "../../../../db/client.ts";
import type { AttemptRecord } from "../../../../dispatcher/store/attempt-queries.ts";
import { commitAttempts } from "../../../../dispatcher/store/attempt-queries.ts";

test("runs of successes lock their subscriptions in one order, whatever the order of the records", async () => {
  const given = await committed(
    record("C", 5),
    record("A", 1),
    record("B", 7),
    record("A", 2),
    record("D", 9),
  );
  expect(given).toEqual([
    {
      subscriptionIds: ["A", "B", "C", "D"],
      firsts: ["1", "7", "5", "9"],
      lasts: ["2", "7", "5", "9"],
    },
  ]);
});

test("failures lock their subscriptions in one order, too", async () => {
  const given = await committed(record("B", 5, FAILED), record("A", 3, FAILED));
  expect(given).toEqual([{ subscriptionIds: ["A", "B"] }]);
});

const FAILED = { kind: "retry", delayMs: 1_000 };

const DELIVERED = { kind: "delivered" };

const record = (subscriptionId: string, sequence: number, decision: object = DELIVERED) =>
  ({ subscriptionId, sequence, decision, isLogged: true, endedMs: 0 }) as unknown as AttemptRecord;

/** Commits against a database that takes everything, and answers the texts that each statement was given. */
async function committed(...records: AttemptRecord[]) {
  const given: Record<string, string[]>[] = [];
  const db = {
    run: async (_statement: unknown, parameters: Record<string, unknown>) => {
      const { subscriptionIds, firsts, lasts } = parameters;
      given.push(
        Object.fromEntries(
          Object.entries({ subscriptionIds, firsts, lasts }).flatMap(([name, text]) =>
            typeof text === "string" ? [[name, text.split("\x1e")]] : [],
          ),
        ),
      );
      return [{ held: 1, left: [], inactive: [], disabled: [] }];
    },
  } as unknown as DbOrTx;
  await commitAttempts(db, "D", { records, now: new Date(0), monotonicMs: 0 });
  return given;
}
