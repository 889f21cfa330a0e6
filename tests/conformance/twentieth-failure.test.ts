import { describe, expect, test } from "bun:test";

import { startPostgres } from "./postgres-store.ts";
import { TwoStores } from "./two-stores.ts";
import { fixture } from "../support/fixture.ts";

const postgres = fixture(startPostgres);

describe("permanent failures in a row", () => {
  test.each(CASES)("after %d of them, %s makes %d, %s", async (before, kinds, after, state) => {
    const stores = await subscribed(before, kinds.length);
    const { disabled } = await stores.commit("dispatcher", outcomesOf(stores, kinds));
    expect(disabled).toEqual(state === "disabled" ? ["one"] : []);
    const { failures, state: found } = stores.subscription("one");
    expect([failures, found]).toEqual([after, state]);
  });

  test("count once, though the answer to their commit was lost", async () => {
    const stores = await subscribed(17, 2);
    const outcomes = outcomesOf(stores, "ff");
    await stores.commit("dispatcher", outcomes);
    await stores.commit("dispatcher", outcomes);
    expect(stores.subscription("one")).toMatchObject({ failures: 19, state: "active" });
  });

  test("do not change the counter of a disabled subscription, and neither do successes", async () => {
    const stores = await subscribed(19, 3);
    const [first, ...late] = outcomesOf(stores, "ffd");
    await stores.commit("dispatcher", first === undefined ? [] : [first]);
    const answer = await stores.commit("dispatcher", late);
    expect(answer).toEqual({ fenced: false, inactive: ["one"], disabled: [] });
    expect(stores.subscription("one")).toMatchObject({ failures: 20, state: "disabled" });
  });

  test("count nothing under a lease that is lost", async () => {
    const stores = await subscribed(19, 1);
    await stores.leave("dispatcher");
    const answer = await stores.commit("dispatcher", outcomesOf(stores, "f"));
    expect(answer).toEqual({ fenced: true, inactive: [], disabled: [] });
    expect(stores.subscription("one")).toMatchObject({ failures: 19, attempts: [] });
  });
});

/** The rule of the 20th failure (contract 6.3): the failures before a commit, its outcomes in order, and the result. */
const CASES: [before: number, outcomes: string, after: number, state: "active" | "disabled"][] = [
  [0, "f", 1, "active"],
  [18, "f", 19, "active"],
  [19, "f", 20, "disabled"],
  [0, "f".repeat(19), 19, "active"],
  [0, "f".repeat(20), 20, "disabled"],
  [5, "f".repeat(15), 20, "disabled"],
  // The counter stops at 20, however many more fail in the same commit.
  [18, "fffff", 20, "disabled"],
  // A success ends the run, also if another process reports it later.
  [19, "d", 0, "active"],
  // A success also ends a run of a single failure.
  [1, "d", 0, "active"],
  [19, "df", 1, "active"],
  [19, "fd", 20, "disabled"],
  [18, "fd", 0, "active"],
  [18, "fdf", 1, "active"],
  [10, "f".repeat(9) + "d" + "f".repeat(19), 19, "active"],
  [10, "f".repeat(10) + "d", 20, "disabled"],
  [0, "dfdff", 2, "active"],
  // A run after a success counts like one before it, also if another success follows.
  [0, "d" + "f".repeat(19), 19, "active"],
  [0, "d" + "f".repeat(20), 20, "disabled"],
  [0, "d" + "f".repeat(20) + "d", 20, "disabled"],
  [0, "d" + "f".repeat(21) + "dff", 20, "disabled"],
  [19, "df".repeat(3) + "f".repeat(19) + "d", 20, "disabled"],
  [5, "f".repeat(14) + "d" + "f".repeat(19) + "d" + "f".repeat(3), 3, "active"],
  // Neither a retry nor an interrupted attempt counts, in either direction.
  [19, "r", 19, "active"],
  [19, "i", 19, "active"],
  [19, "rif", 20, "disabled"],
  [5, "frifd", 0, "active"],
];

/** The letters of outcomes. f: failed permanently, d: delivered, r: retry, i: interrupted. */
const KINDS = { f: "failed", d: "delivered", r: "retry", i: "interrupted" } as const;

async function subscribed(failures: number, events: number): Promise<TwoStores> {
  const stores = await TwoStores.withOne(postgres, { failures });
  await stores.appendReviews(Array.from({ length: events }, () => 0));
  return stores;
}

/** Makes one outcome for each of the first entries. */
const outcomesOf = (stores: TwoStores, kinds: string) =>
  Array.from(kinds, (kind, at) => stores.outcome(at + 1, KINDS[kind as keyof typeof KINDS], 1_000));
