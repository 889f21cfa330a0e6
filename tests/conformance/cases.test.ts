import { describe, expect, test } from "bun:test";

import { CHUNK } from "../../db/log.ts";
import { WINDOW } from "../../dispatcher/store/loaded-entries.ts";
import { startPostgres } from "./postgres-store.ts";
import type { NewSubscription, Outcome } from "./tested-store.ts";
import { TwoStores } from "./two-stores.ts";
import { fixture } from "../support/fixture.ts";

const postgres = fixture(startPostgres);

describe("a load", () => {
  test("shows 16 test events beside the entries that were asked for", async () => {
    await subscribed();
    await append([0, 1, 2, 0]);
    await sendTests(18);
    const ask = { subscription: "one", after: 1, limit: 2, exceptReviews: [] };
    const loaded = await stores.load(ask);
    expect(loaded?.entries.map((one) => one.event)).toEqual(["E2", "E3"]);
    expect(loaded?.tests.map((one) => one.event)).toEqual(
      Array.from({ length: 16 }, (_, n) => `T${n + 1}`),
    );
  });

  test("shows the tests that are due first, however many wait", async () => {
    await subscribed();
    await stores.join("dispatcher");
    await sendTests(17);
    const waits = Array.from({ length: 16 }, (_, n) => outcome(n + 1, "retry", 60_000 - n));
    await stores.commit("dispatcher", waits);
    const ask = { subscription: "one", after: 0, limit: 64, exceptReviews: [] };
    const loaded = await stores.load(ask);
    // The 17th test is due now; the other 15 are due first.
    expect(loaded?.tests.map((one) => one.event)).toEqual(
      Array.from({ length: 16 }, (_, n) => `T${n + 2}`),
    );
  });

  test("shows a waiting head each time, however many entries before it are settled", async () => {
    await subscribed();
    await append(Array.from({ length: 42 }, () => 0));
    await stores.join("dispatcher");
    const settled = Array.from({ length: 40 }, (_, n) => outcome(n + 1, "delivered"));
    await stores.commit("dispatcher", [...settled, outcome(41, "retry", 60_000)]);
    const ask = { subscription: "one", after: 0, limit: 64, exceptReviews: [] };
    for (let load = 1; load <= 3; load++) {
      const loaded = await stores.load(ask);
      expect(loaded?.entries.map((one) => one.event)).toEqual(["E41", "E42"]);
    }
  });

  test("leaves out reviews, and events without one", async () => {
    await subscribed({ ordering: "review" });
    await append([0, 1, null, 2]);
    const events = async (exceptReviews: (string | null)[]) => {
      const ask = { subscription: "one", after: 0, limit: 64, exceptReviews };
      return (await stores.load(ask))?.entries.map((one) => one.event);
    };
    expect(await events(["p0 r0"])).toEqual(["E2", "E3", "E4"]);
    expect(await events([null])).toEqual(["E1", "E2", "E4"]);
    expect(await events(["p0 r1", null])).toEqual(["E1", "E4"]);
  });

  test("looks behind many events of a review that it leaves out", async () => {
    await subscribed({ ordering: "review" });
    await append([...Array.from({ length: 2 * WINDOW + 20 }, () => 0), 1, 0]);
    const ask = { subscription: "one", after: 0, limit: 8, exceptReviews: ["p0 r0"] };
    const loaded = await stores.load(ask);
    expect(loaded?.entries.map((one) => one.event)).toEqual([`E${2 * WINDOW + 21}`]);
    expect(stores.subscription("one").settledThrough).toBe(2 * WINDOW);
  });

  test("answers the others of its group before it looks behind them", async () => {
    await subscribed({ ordering: "review" });
    await stores.create({ ...ONE, name: "two", partner: 1 });
    await append([...Array.from({ length: WINDOW + 20 }, () => 0), 1]);
    const ask = { after: 0, limit: 8, exceptReviews: ["p0 r0"] };
    const answered = await stores.loadTogether([
      { ...ask, subscription: "one" },
      { ...ask, subscription: "two" },
    ]);
    expect(answered).toEqual(["two", "one"]);
  });

  test("shows no row before log events of the same review behind the window", async () => {
    await subscribed({ ordering: "review" });
    await append([1, ...Array.from({ length: WINDOW + 1 }, () => 0), 1]);
    await stores.join("dispatcher");
    await stores.commit("dispatcher", [outcome(1, "delivered")]);
    await stores.redeliver("one", "E1");
    const ask = { subscription: "one", after: 0, limit: 1, exceptReviews: ["p0 r0"] };
    const loaded = await stores.load(ask);
    expect(loaded?.entries.map((one) => one.sequence)).toEqual([WINDOW + 3]);
  });

  test("shows nothing of a subscription that is disabled", async () => {
    await subscribed({ failures: 19 });
    await append([0, 0]);
    await stores.join("dispatcher");
    await stores.commit("dispatcher", [outcome(1, "failed")]);
    const ask = { subscription: "one", after: 0, limit: 64, exceptReviews: [] };
    expect(await stores.load(ask)).toBeUndefined();
  });
});

describe("a commit", () => {
  test("gives rows to the entries that the offset passes, even with an entry twice", async () => {
    await subscribed({ ordering: "review" });
    await append([0, 1, 2]);
    await stores.join("dispatcher");
    const twice = [outcome(3, "delivered"), outcome(3, "delivered")];
    await stores.commit("dispatcher", [outcome(2, "delivered"), ...twice]);
    const { queued, ended, settledThrough } = stores.subscription("one");
    expect(queued.map(({ sequence, isLogged }) => [sequence, isLogged])).toEqual([[1, false]]);
    expect([ended.map((one) => one.sequence), settledThrough]).toEqual([[2, 3], 3]);
  });
});

describe("a batch", () => {
  test.each([
    ["that is not due stays due when it was", 500, 1_000],
    ["that is overdue waits for the next time of its grid", 1_500, 2_000],
  ])("%s, after an enable that skips", async (_, passedMs, nextBatchAtMs) => {
    await subscribed({ kind: "batch", failures: 19 });
    await append([0]);
    await stores.join("dispatcher");
    await stores.sendTest("one", "T1");
    await stores.commit("dispatcher", [outcome(1, "failed")]);
    await stores.pass(passedMs);
    await stores.enable("one", "skip");
    const { waiting, ...cursor } = stores.subscription("one");
    expect(waiting).toEqual([]);
    expect(cursor).toMatchObject({ lastBatchAtMs: passedMs, nextBatchAtMs });
  });
});

test("a skip of more than a chunk leaves only later entries to the loads", async () => {
  await subscribed({ failures: 19 });
  await append(Array.from({ length: CHUNK + 30 }, () => 0));
  await stores.join("dispatcher");
  await stores.commit("dispatcher", [outcome(1, "failed")]);
  await stores.enable("one", "skip");
  await stores.append([{ name: "late", partner: 0, review: 1 }]);
  const ask = { subscription: "one", after: 0, limit: 64, exceptReviews: [] };
  const loaded = await stores.load(ask);
  expect(loaded?.entries.map((one) => one.event)).toEqual(["late"]);
});

test("a POST that was under way at a delete is recorded and moves no counter", async () => {
  await subscribed({ failures: 19 });
  await append([0]);
  await stores.join("dispatcher");
  const late = outcome(1, "failed");
  await stores.remove("one");
  const answer = await stores.commit("dispatcher", [late]);
  expect(answer).toEqual({ fenced: false, inactive: ["one"], disabled: [] });
  const { failures, attempts } = stores.subscription("one");
  expect([failures, attempts.length]).toEqual([19, 1]);
});

test("a test that is delivered again was asked for when it was first", async () => {
  await subscribed();
  await stores.sendTest("one", "T1");
  await stores.join("dispatcher");
  await stores.commit("dispatcher", [outcome(1, "delivered")]);
  await stores.pass(700);
  expect(await stores.redeliver("one", "T1")).toBe(true);
  expect(await stores.redeliver("one", "T1")).toBe(false);
  const [entry] = stores.subscription("one").queued;
  expect(entry).toMatchObject({ event: "T1", isTest: true, round: 2, recordedAtMs: 0 });
});

let stores: TwoStores;

const ONE: NewSubscription = {
  name: "one",
  partner: 0,
  kind: "immediate",
  ordering: "subscription",
  shard: 7,
  failures: 0,
  intervalHours: 1,
};

async function subscribed(fields: Partial<NewSubscription> = {}): Promise<void> {
  stores = await TwoStores.on(postgres);
  await stores.create({ ...ONE, ...fields });
}

function append(reviews: readonly (number | null)[]): Promise<unknown> {
  return stores.append(reviews.map((review, at) => ({ name: `E${at + 1}`, partner: 0, review })));
}

async function sendTests(count: number): Promise<void> {
  for (let n = 1; n <= count; n++) await stores.sendTest("one", `T${n}`);
}

function outcome(sequence: number, kind: Outcome["kind"], delayMs = 0): Outcome {
  const entry = stores.subscription("one").queued.find((one) => one.sequence === sequence);
  if (entry === undefined) throw new Error(`There is no entry ${sequence}.`);
  const { event, isTest, isLogged, recordedAtMs, round, attempt } = entry;
  return {
    id: stores.newName("ATTEMPT"),
    subscription: "one",
    event,
    isTest,
    isLogged,
    recordedAtMs,
    sequence,
    round,
    attempt,
    kind,
    delayMs,
  };
}
