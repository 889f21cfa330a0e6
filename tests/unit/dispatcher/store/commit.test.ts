import { expect, test } from "bun:test";

import type { DbOrTx } from "../../../../db/client.ts";
import type { AttemptRecord } from "../../../../dispatcher/store/attempt-queries.ts";
import { commitAttempts } from "../../../../dispatcher/store/attempt-queries.ts";

test("runs of successes lock their subscriptions in one order, whatever the order of the records", async () => {
  const { given } = await committed(
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

test("a commit without a run of successes makes no statement for runs, and changes nothing else", async () => {
  const { given, result } = await committed(record("B", 5, FAILED), record("A", 3, FAILED));
  expect(given).toEqual([{ subscriptionIds: ["A", "B"] }]);
  expect(result).toEqual({ fenced: false, inactive: [], disabled: [] });
});

test("a commit of runs alone makes one statement, and one with both makes two", async () => {
  expect((await committed(record("A", 1))).given).toHaveLength(1);
  const { given } = await committed(record("B", 1), record("A", 1, FAILED));
  expect(given.map(({ subscriptionIds }) => subscriptionIds)).toEqual([["B"], ["A"]]);
});

const DELIVERED = { kind: "delivered" };

const FAILED = { kind: "retry", delayMs: 1_000 };

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
  const result = await commitAttempts(db, "D", { records, now: new Date(0), monotonicMs: 0 });
  return { given, result };
}
