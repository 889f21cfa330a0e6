import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { startPostgres, type Postgres } from "./postgres-store.ts";
import type { NewSubscription, Outcome } from "./tested-store.ts";
import { TwoStores } from "./two-stores.ts";

/** Entries of a lane, lanes of a subscription, that whoever ends a lease tells of. */
const [TOLD_PER_LANE, TOLD_LANES] = [17, 16];
/** After so long a lease has run out. */
const LEASE_MS = 4_001;

let postgres: Postgres;
let stores: TwoStores;

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

async function subscribed(fields: Partial<NewSubscription> = {}): Promise<void> {
  stores = await TwoStores.on(postgres);
  await stores.create({
    name: "one",
    partner: 0,
    kind: "immediate",
    ordering: "subscription",
    shard: 7,
    failures: 0,
    intervalHours: 1,
    ...fields,
  });
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
  const { event, isTest, round, attempt } = entry;
  return {
    id: stores.newName("ATTEMPT"),
    subscription: "one",
    event,
    isTest,
    sequence,
    round,
    attempt,
    kind,
    delayMs,
  };
}

/** The holder of every shard dies, and another one finds out. */
async function takeOver(): Promise<void> {
  await stores.join("survivor");
  await stores.pass(LEASE_MS);
  await stores.renew("survivor", true);
}

function interrupted(): number[] {
  return stores
    .subscription("one")
    .attempts.filter((one) => one.outcome === "interrupted")
    .map((one) => one.sequence);
}

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
    // The 17th, which is due now, and the 15 whose turn comes first.
    expect(loaded?.tests.map((one) => one.event)).toEqual(
      Array.from({ length: 16 }, (_, n) => `T${n + 2}`),
    );
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

  test("shows nothing of a subscription that is disabled", async () => {
    await subscribed({ failures: 19 });
    await append([0, 0]);
    await stores.join("dispatcher");
    await stores.commit("dispatcher", [outcome(1, "failed")]);
    const ask = { subscription: "one", after: 0, limit: 64, exceptReviews: [] };
    expect(await stores.load(ask)).toBeUndefined();
  });
});

describe("whoever ends a lease", () => {
  test(`tells of the first ${TOLD_PER_LANE} entries of a lane`, async () => {
    await subscribed();
    await append(Array.from({ length: 20 }, () => 0));
    await stores.join("holder");
    await stores.renew("holder", false);
    await takeOver();
    expect(interrupted()).toEqual(Array.from({ length: TOLD_PER_LANE }, (_, n) => n + 1));
  });

  test(`tells of the first ${TOLD_LANES} lanes, each test being one`, async () => {
    await subscribed();
    await sendTests(20);
    await stores.join("holder");
    await stores.renew("holder", false);
    await takeOver();
    expect(interrupted()).toEqual(Array.from({ length: TOLD_LANES }, (_, n) => n + 1));
  });

  test("tells nothing of what stands behind a wait, but of other lanes", async () => {
    await subscribed({ ordering: "review" });
    await append([0, 0, 1]);
    await stores.join("holder");
    await stores.renew("holder", false);
    await stores.commit("holder", [outcome(1, "retry", 10_000)]);
    await takeOver();
    expect(interrupted()).toEqual([3]);
  });

  test("tells nothing of what was recorded when the dead could no longer send", async () => {
    await subscribed();
    await append([0]);
    await stores.join("holder");
    await stores.renew("holder", false);
    await stores.pass(3_001);
    await stores.sendTest("one", "T1");
    await takeOver();
    expect(interrupted()).toEqual([1]);
  });

  test("frees its shards for itself, and fences its commits", async () => {
    await subscribed();
    await append([0]);
    await stores.join("holder");
    await stores.renew("holder", false);
    await takeOver();
    expect(stores.tables.dispatchers).toEqual(["survivor"]);
    expect(new Set(stores.tables.shards.map((one) => one.owner))).toEqual(new Set(["survivor"]));
    const { fenced } = await stores.commit("holder", [outcome(1, "delivered")]);
    expect(fenced).toBe(true);
  });

  test("leaves alone whoever renewed in time", async () => {
    await subscribed();
    await stores.join("holder");
    await stores.join("survivor");
    await stores.pass(LEASE_MS - 1_000);
    await stores.renew("holder", false);
    await stores.pass(1_000);
    const { owned } = await stores.renew("survivor", true);
    expect(stores.tables.dispatchers).toEqual(["holder", "survivor"]);
    expect(owned).toHaveLength(32);
  });
});

test("a release that comes late leaves alone what was claimed again", async () => {
  await subscribed();
  await stores.join("one");
  const { owned } = await stores.renew("one", false);
  await stores.release("one", new Map(owned));
  const { owned: again } = await stores.renew("one", false);
  await stores.release("one", new Map(owned));
  expect(again).toHaveLength(64);
  expect(stores.tables.shards.filter((one) => one.owner === "one")).toHaveLength(64);
});

describe("a batch", () => {
  test("takes what waits, review by review, and moves on its grid", async () => {
    await subscribed({ kind: "batch" });
    await append([1, 0, null, 1, 2, 0]);
    await stores.join("dispatcher");
    await stores.pass(2_300);
    expect(await stores.dispatchBatch("dispatcher", "one")).toEqual({ fenced: false, jobs: 3 });
    const { queued, waiting, ...cursor } = stores.subscription("one");
    expect(queued.map((one) => one.event)).toEqual(["E1", "E4", "E2", "E6", "E5"]);
    expect(waiting).toEqual([]);
    expect(cursor).toMatchObject({ lastBatchAtMs: 2_300, nextBatchAtMs: 3_000 });
  });

  test("is not dispatched before it is due, nor for somebody who is dead", async () => {
    await subscribed({ kind: "batch" });
    await append([0]);
    await stores.join("dispatcher");
    await stores.pass(999);
    expect(await stores.dispatchBatch("dispatcher", "one")).toEqual({ fenced: false, jobs: 0 });
    await stores.pass(1);
    expect(await stores.dispatchBatch("nobody", "one")).toEqual({ fenced: true, jobs: 0 });
    expect(stores.subscription("one").waiting).toEqual(["E1"]);
  });

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

describe("a delete", () => {
  test("settles what is queued, and nothing is appended after it", async () => {
    await subscribed();
    await append([0, 1]);
    await stores.remove("one");
    expect(await stores.append([{ name: "late", partner: 0, review: 0 }])).toEqual([]);
    const { queued, ended, lastSequence } = stores.subscription("one");
    expect([queued, lastSequence]).toEqual([[], null]);
    expect(ended.map((one) => one.reason)).toEqual(["deleted", "deleted"]);
  });

  test("records a POST that was under way, which moves no counter", async () => {
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
