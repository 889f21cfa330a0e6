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

describe("an expiry of a lease", () => {
  test("finds the shards unclean and records nothing", async () => {
    await subscribed();
    await append([0, 0]);
    await holds("holder");
    await takeOver();
    expect(stores.tables.dispatchers).toEqual(["survivor"]);
    expect(holdings()).toEqual({ survivor: [64, 64] });
    expect(stores.subscription("one").attempts).toEqual([]);
  });

  test("fences the commits of the expired dispatcher", async () => {
    await subscribed();
    await append([0]);
    await holds("holder");
    await takeOver();
    const { fenced } = await stores.commit("holder", [outcome(1, "delivered")]);
    expect(fenced).toBe(true);
    expect(await stores.renew("holder")).toBeNull();
  });

  test("does not expire a lease that was renewed since it was read", async () => {
    await subscribed();
    await holds("holder");
    const [seen] = await stores.heartbeats();
    if (seen === undefined) throw new Error("Nobody is there.");
    expect(await stores.renew("holder")).toMatchObject({ now: 0 });
    expect(await stores.expire(seen)).toBeUndefined();
    expect(holdings()).toEqual({ holder: [64, 0] });
  });

  test("comes too late if another process was faster", async () => {
    await subscribed();
    await holds("holder");
    const [seen] = await stores.heartbeats();
    if (seen === undefined) throw new Error("Nobody is there.");
    expect([await stores.expire(seen), await stores.expire(seen)]).toEqual([64, undefined]);
  });
});

test("a renewal moves the heartbeat on although the clock of Postgres stands still", async () => {
  await subscribed();
  await stores.join("holder");
  const seen: number[] = [];
  for (let n = 0; n < 3; n++) {
    expect(await stores.renew("holder")).toMatchObject({ now: 0 });
    seen.push(...(await stores.heartbeats()).map(({ renewedMs }) => renewedMs));
  }
  expect(seen).toEqual([1, 2, 3]);
});

describe("an unclean shard", () => {
  test("stays one when it is given up before its entries were repeated, and is none afterwards", async () => {
    await subscribed();
    await holds("holder");
    await takeOver();
    const { owned } = await stores.assign("survivor");
    const left = Array.from(
      owned,
      ([shard, claim]) => [shard, { ...claim, unclean: shard < 10 }] as const,
    );
    await stores.release("survivor", new Map(left));
    expect(holdings()).toEqual({ nobody: [64, 10] });
    await stores.assign("survivor");
    expect(holdings()).toEqual({ survivor: [64, 10] });
  });

  test("stays one when its holder leaves without having taken it in", async () => {
    await subscribed();
    await holds("holder");
    await takeOver();
    await stores.leave("survivor");
    expect(holdings()).toEqual({ nobody: [64, 64] });
  });
});

test("a late release does not change shards that were claimed again", async () => {
  await subscribed();
  await stores.join("one");
  const { owned } = await stores.assign("one");
  await stores.release("one", owned);
  const { owned: again } = await stores.assign("one");
  await stores.release("one", owned);
  expect(again.size).toBe(64);
  expect(holdings()).toEqual({ one: [64, 0] });
});

describe("a batch", () => {
  test("takes the waiting events review by review, and moves on its grid", async () => {
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

  test("of more than a chunk continues with the review in which the chunk ended", async () => {
    await subscribed({ kind: "batch" });
    await append(Array.from({ length: CHUNK + 30 }, (_, n) => n % 3));
    await stores.join("dispatcher");
    await stores.pass(1_000);
    expect(await stores.dispatchBatch("dispatcher", "one")).toEqual({ fenced: false, jobs: 3 });
    const reviews = stores.subscription("one").queued.map((one) => one.review);
    const changes = reviews.filter((review, n) => review !== reviews[n - 1]);
    expect([reviews.length, changes.length]).toEqual([CHUNK + 30, 3]);
  });

  test("is not dispatched before it is due, nor for an expired dispatcher", async () => {
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

describe("a skip", () => {
  const MANY = CHUNK + 30;

  async function skipped(): Promise<void> {
    await subscribed({ failures: 19 });
    await append(Array.from({ length: MANY }, () => 0));
    await stores.join("dispatcher");
    await stores.commit("dispatcher", [outcome(1, "failed")]);
    await stores.enable("one", "skip");
  }

  test("takes all that is queued, however much it is", async () => {
    await skipped();
    const { queued, ended, settledThrough, skippedThrough } = stores.subscription("one");
    expect([queued.length, settledThrough, skippedThrough]).toEqual([0, MANY, MANY]);
    expect(new Set(ended.slice(1).map((one) => one.reason))).toEqual(new Set(["skipped"]));
  });

  test("leaves only later entries to the loads", async () => {
    await skipped();
    await stores.append([{ name: "late", partner: 0, review: 1 }]);
    const ask = { subscription: "one", after: 0, limit: 64, exceptReviews: [] };
    const loaded = await stores.load(ask);
    expect(loaded?.entries.map((one) => one.event)).toEqual(["late"]);
  });

  test("leaves it skipped, but for what a POST delivers that was under way", async () => {
    await subscribed({ failures: 19, ordering: "review" });
    await append([0, 1, 2, 0, 1]);
    await stores.join("dispatcher");
    const late = [outcome(1, "delivered"), outcome(4, "delivered"), outcome(5, "retry", 500)];
    await stores.commit("dispatcher", [outcome(3, "failed")]);
    await stores.enable("one", "skip");
    await stores.commit("dispatcher", late);
    const { ended, queued } = stores.subscription("one");
    const states = ended.map((one) => one.state);
    expect([states, queued]).toEqual([
      ["delivered", "skipped", "failed", "delivered", "skipped"],
      [],
    ]);
    expect(stores.subscription("one").failures).toBe(0);
  });
});

describe("a delete", () => {
  test("settles the queued entries, and nothing is appended after it", async () => {
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

/** Makes a dispatcher the holder of all free shards. */
async function holds(dispatcher: string): Promise<void> {
  await stores.join(dispatcher);
  await stores.assign(dispatcher);
}

/** Expires the lease of the holder of every shard, and has another dispatcher claim the shards. */
async function takeOver(): Promise<void> {
  const [dead] = await stores.heartbeats();
  if (dead === undefined) throw new Error("Nobody is there.");
  await stores.join("survivor");
  expect(await stores.expire(dead)).toBe(64);
  await stores.assign("survivor");
}

/** Counts the shards of each dispatcher, and the unclean ones of them. */
function holdings(): Record<string, [held: number, unclean: number]> {
  const held: Record<string, [number, number]> = {};
  for (const { owner, unclean } of stores.tables.shards) {
    const [count, orphans] = held[owner ?? "nobody"] ?? [0, 0];
    held[owner ?? "nobody"] = [count + 1, orphans + (unclean ? 1 : 0)];
  }
  return held;
}
