import { describe, expect, test } from "bun:test";

import { CHUNK } from "../../db/log.ts";
import { WINDOW } from "../../dispatcher/store/loaded-entries.ts";
import { startPostgres } from "./postgres-store.ts";
import type { NewSubscription } from "./tested-store.ts";
import { ONE, TwoStores } from "./two-stores.ts";
import { fixture } from "../support/fixture.ts";

const postgres = fixture(startPostgres);

describe("a load", () => {
  test("shows 16 test events beside the entries that were asked for", async () => {
    await subscribed();
    await stores.appendReviews([0, 1, 2, 0]);
    await stores.sendTests(18);
    const ask = { subscription: "one", after: 1, limit: 2, exceptReviews: [] };
    const loaded = await stores.load(ask);
    expect(loaded?.entries.map((one) => one.event)).toEqual(["E2", "E3"]);
    expect(loaded?.tests.map((one) => one.event)).toEqual(
      Array.from({ length: 16 }, (_, n) => `T${n + 1}`),
    );
  });

  test("shows the tests that are due first, however many wait", async () => {
    await subscribed();
    await stores.sendTests(17);
    const waits = Array.from({ length: 16 }, (_, n) => stores.outcome(n + 1, "retry", 60_000 - n));
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
    await stores.appendReviews(Array.from({ length: 42 }, () => 0));
    const settled = Array.from({ length: 40 }, (_, n) => stores.outcome(n + 1, "delivered"));
    await stores.commit("dispatcher", [...settled, stores.outcome(41, "retry", 60_000)]);
    const ask = { subscription: "one", after: 0, limit: 64, exceptReviews: [] };
    for (let load = 1; load <= 3; load++) {
      const loaded = await stores.load(ask);
      expect(loaded?.entries.map((one) => one.event)).toEqual(["E41", "E42"]);
    }
  });

  test("leaves out reviews, and events without one", async () => {
    await subscribed({ ordering: "review" });
    await stores.appendReviews([0, 1, null, 2]);
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
    await stores.appendReviews([...Array.from({ length: 2 * WINDOW + 20 }, () => 0), 1, 0]);
    const ask = { subscription: "one", after: 0, limit: 8, exceptReviews: ["p0 r0"] };
    const loaded = await stores.load(ask);
    expect(loaded?.entries.map((one) => one.event)).toEqual([`E${2 * WINDOW + 21}`]);
    expect(stores.subscription("one").settledThrough).toBe(2 * WINDOW);
  });

  test("shows no row before log events of the same review behind the window", async () => {
    await subscribed({ ordering: "review" });
    await stores.appendReviews([1, ...Array.from({ length: WINDOW + 1 }, () => 0), 1]);
    await stores.commit("dispatcher", [stores.outcome(1, "delivered")]);
    await stores.redeliver("one", "E1");
    const ask = { subscription: "one", after: 0, limit: 1, exceptReviews: ["p0 r0"] };
    const loaded = await stores.load(ask);
    expect(loaded?.entries.map((one) => one.sequence)).toEqual([WINDOW + 3]);
  });

  test("shows nothing of a subscription that is disabled", async () => {
    await subscribed({ failures: 19 });
    await stores.appendReviews([0, 0]);
    await stores.commit("dispatcher", [stores.outcome(1, "failed")]);
    const ask = { subscription: "one", after: 0, limit: 64, exceptReviews: [] };
    expect(await stores.load(ask)).toBeUndefined();
  });
});

describe("a commit", () => {
  test("gives rows to the entries that the offset passes, even with an entry twice", async () => {
    await subscribed({ ordering: "review" });
    await stores.appendReviews([0, 1, 2]);
    const twice = [stores.outcome(3, "delivered"), stores.outcome(3, "delivered")];
    await stores.commit("dispatcher", [stores.outcome(2, "delivered"), ...twice]);
    const { queued, ended, settledThrough } = stores.subscription("one");
    expect(queued.map(({ sequence, isLogged }) => [sequence, isLogged])).toEqual([[1, false]]);
    expect([ended.map((one) => one.sequence), settledThrough]).toEqual([[2, 3], 3]);
  });
});

describe("the numbers of a load", () => {
  const ask = { subscription: "one", after: 0, limit: 64, exceptReviews: [] };
  const numbered = async () => {
    const loaded = await stores.load(ask);
    const entries = loaded?.entries.map((one) => [one.event, one.number, one.settledBefore]);
    return { entries, tests: loaded?.tests.map((one) => one.number), limit: loaded?.settledLimit };
  };

  test("leave out tests and later rounds, which have sequences", async () => {
    await subscribed({ sequenceHeaders: true });
    await stores.sendTests(2);
    await stores.appendReviews([0, 1]);
    await stores.commit(
      "dispatcher",
      [3, 4].map((one) => stores.outcome(one, "delivered")),
    );
    await stores.redeliver("one", "E1");
    await stores.append([{ name: "last", partner: 0, review: 0 }]);
    expect(await numbered()).toEqual({
      entries: [
        ["E1", 1, 2],
        ["last", 3, 2],
      ],
      tests: [null, null],
      limit: 3,
    });
  });

  test("end before the first review that waits, and after a skip at the last event", async () => {
    await subscribed({ sequenceHeaders: true, ordering: "review", failures: 19 });
    await stores.appendReviews([0, 1, 2, 1]);
    const e1 = ["E1", 1, 0];
    await stores.commit("dispatcher", [stores.outcome(2, "retry", 60_000)]);
    // The fourth waits behind the second.
    expect(await numbered()).toMatchObject({ entries: [e1, ["E3", 3, 2]], limit: 0 });
    await stores.reorder("one", "subscription");
    const all = { entries: [e1, ["E2", 2, 1], ["E3", 3, 2], ["E4", 4, 3]], limit: 4 };
    expect(await numbered()).toMatchObject(all);
    await stores.reorder("one", "review");
    await stores.commit("dispatcher", [stores.outcome(1, "failed")]);
    await stores.enable("one", "skip");
    await stores.sendTests(1);
    await stores.append([{ name: "late", partner: 0, review: 1 }]);
    expect(await numbered()).toMatchObject({ entries: [["late", 5, 4]], limit: 4 });
  });

  test("are read only with the headers", async () => {
    await subscribed();
    await stores.appendReviews([0]);
    expect(await numbered()).toMatchObject({ entries: [["E1", null, 0]], limit: null });
    await stores.renumber("one", true);
    expect(await numbered()).toMatchObject({ entries: [["E1", 1, 0]], limit: 1 });
  });
});

describe("a batch", () => {
  test.each([
    ["that is not due stays due when it was", 500, 1_000],
    ["that is overdue waits for the next time of its grid", 1_500, 2_000],
  ])("%s, after an enable that skips", async (_, passedMs, nextBatchAtMs) => {
    await subscribed({ kind: "batch", failures: 19 });
    await stores.appendReviews([0]);
    await stores.sendTest("one", "T1");
    await stores.commit("dispatcher", [stores.outcome(1, "failed")]);
    await stores.pass(passedMs);
    await stores.enable("one", "skip");
    const { waiting, ...cursor } = stores.subscription("one");
    expect(waiting).toEqual([]);
    expect(cursor).toMatchObject({ lastBatchAtMs: passedMs, nextBatchAtMs });
  });
});

test("an enable makes only the first retry due, also with lanes by review", async () => {
  await subscribed({ ordering: "review", failures: 19 });
  await stores.appendReviews([0, 1, 2]);
  const retries = [1, 2].map((sequence) => stores.outcome(sequence, "retry", 60_000));
  await stores.commit("dispatcher", [...retries, stores.outcome(3, "failed")]);
  const ask = { subscription: "one", after: 0, limit: 64, exceptReviews: [] };
  expect(await stores.load(ask)).toBeUndefined();
  await stores.enable("one", "deliver");
  const loaded = await stores.load(ask);
  expect(loaded?.entries.map((one) => one.event)).toEqual(["E1"]);
});

test("a skip of more than a chunk leaves only later entries to the loads", async () => {
  await subscribed({ failures: 19 });
  await stores.appendReviews(Array.from({ length: CHUNK + 30 }, () => 0));
  await stores.commit("dispatcher", [stores.outcome(1, "failed")]);
  await stores.enable("one", "skip");
  await stores.append([{ name: "late", partner: 0, review: 1 }]);
  const ask = { subscription: "one", after: 0, limit: 64, exceptReviews: [] };
  const loaded = await stores.load(ask);
  expect(loaded?.entries.map((one) => one.event)).toEqual(["late"]);
});

test("a POST that was under way at a delete is recorded and moves no counter", async () => {
  await subscribed({ failures: 19 });
  await stores.appendReviews([0]);
  const late = stores.outcome(1, "failed");
  await stores.remove("one");
  const answer = await stores.commit("dispatcher", [late]);
  expect(answer).toEqual({ fenced: false, inactive: ["one"], disabled: [] });
  const { failures, attempts } = stores.subscription("one");
  expect([failures, attempts.length]).toEqual([19, 1]);
});

test("a test that is delivered again was asked for when it was first", async () => {
  await subscribed();
  await stores.sendTest("one", "T1");
  await stores.commit("dispatcher", [stores.outcome(1, "delivered")]);
  await stores.pass(700);
  expect(await stores.redeliver("one", "T1")).toBe(true);
  expect(await stores.redeliver("one", "T1")).toBe(false);
  const [entry] = stores.subscription("one").queued;
  expect(entry).toMatchObject({ event: "T1", isTest: true, round: 2, recordedAtMs: 0 });
});

describe("a sweep", () => {
  async function subscribedTwice(): Promise<void> {
    await subscribed();
    await stores.create({ ...ONE, name: "two", kind: "batch", shard: 8, intervalHours: 2 });
  }

  test("finds entries that can be sent now, waiting entries, and the next batch", async () => {
    await subscribedTwice();
    await stores.appendReviews([0, 0]);
    await stores.commit("dispatcher", [stores.outcome(1, "retry", 500)]);
    const waiting = { subscription: "one", shard: 7, dueInMs: 500, waitedMs: -500 };
    const batch = { subscription: "two", shard: 8, dueInMs: 2_000, waitedMs: null };
    expect(await stores.sweep([7, 8])).toEqual([waiting, batch]);
    expect(await stores.sweep([8])).toEqual([batch]);
    await stores.sendTest("one", "T1");
    expect(await stores.sweep([7])).toEqual([{ ...waiting, dueInMs: 0 }]);
  });

  test("leaves entries that are due after the next sweep to a later one", async () => {
    await subscribedTwice();
    await stores.appendReviews([0]);
    await stores.commit("dispatcher", [stores.outcome(1, "retry", 60_000)]);
    expect(await stores.sweep([7])).toEqual([]);
    await stores.pass(54_000);
    const found = { subscription: "one", shard: 7, dueInMs: 6_000, waitedMs: -6_000 };
    expect(await stores.sweep([7])).toEqual([found]);
  });

  test("finds a head each time, however many entries before it are settled", async () => {
    await subscribed();
    await stores.appendReviews(Array.from({ length: 41 }, () => 0));
    const settled = Array.from({ length: 40 }, (_, n) => stores.outcome(n + 1, "delivered"));
    await stores.commit("dispatcher", settled);
    const found = [{ subscription: "one", shard: 7, dueInMs: 0, waitedMs: 0 }];
    for (let sweep = 1; sweep <= 3; sweep++) expect(await stores.sweep([7])).toEqual(found);
  });

  test("follows the test that is due first, and the entries behind a test that waits", async () => {
    await subscribed();
    await stores.sendTests(2);
    const retries = [stores.outcome(1, "retry", 60_000), stores.outcome(2, "retry", 5_000)];
    await stores.commit("dispatcher", retries);
    const found = { subscription: "one", shard: 7, waitedMs: null };
    expect(await stores.sweep([7])).toEqual([{ ...found, dueInMs: 5_000 }]);
    await stores.appendReviews([0]);
    expect(await stores.sweep([7])).toEqual([{ ...found, dueInMs: 0, waitedMs: 0 }]);
  });

  test("with a limit finds those that come first in their shard, and every batch", async () => {
    await subscribedTwice();
    await stores.appendReviews([0, 0]);
    expect((await stores.sweep([7, 8], 1)).map(({ subscription }) => subscription)).toEqual([
      "one",
      "two",
    ]);
    expect((await stores.sweep([7, 8], 0)).map(({ subscription }) => subscription)).toEqual([
      "two",
    ]);
  });
});

let stores: TwoStores;

async function subscribed(fields: Partial<NewSubscription> = {}): Promise<void> {
  stores = await TwoStores.withOne(postgres, fields);
}
