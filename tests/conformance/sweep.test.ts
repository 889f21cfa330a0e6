import { describe, expect, test } from "bun:test";

import { startPostgres } from "./postgres-store.ts";
import type { Outcome } from "./tested-store.ts";
import { TwoStores } from "./two-stores.ts";
import { fixture } from "../support/fixture.ts";

const postgres = fixture(startPostgres);

describe("a sweep", () => {
  async function subscribedTwice(): Promise<void> {
    await subscribed();
    await stores.create({
      name: "two",
      partner: 0,
      kind: "batch",
      ordering: "subscription",
      shard: 8,
      failures: 0,
      intervalHours: 2,
    });
  }

  test("finds entries that can be sent now, waiting entries, and the next batch", async () => {
    await subscribedTwice();
    await append([0, 0]);
    await stores.join("dispatcher");
    await stores.commit("dispatcher", [outcome(1, "retry", 500)]);
    const waiting = { subscription: "one", shard: 7, dueInMs: 500, waitedMs: -500 };
    const batch = { subscription: "two", shard: 8, dueInMs: 2_000, waitedMs: null };
    expect(await stores.sweep([7, 8])).toEqual([waiting, batch]);
    expect(await stores.sweep([8])).toEqual([batch]);
    await stores.sendTest("one", "T1");
    expect(await stores.sweep([7])).toEqual([{ ...waiting, dueInMs: 0 }]);
  });

  test("leaves entries that are due after the next sweep to a later one", async () => {
    await subscribedTwice();
    await append([0]);
    await stores.join("dispatcher");
    await stores.commit("dispatcher", [outcome(1, "retry", 60_000)]);
    expect(await stores.sweep([7])).toEqual([]);
    await stores.pass(54_000);
    const found = { subscription: "one", shard: 7, dueInMs: 6_000, waitedMs: -6_000 };
    expect(await stores.sweep([7])).toEqual([found]);
  });

  test("finds a head each time, however many entries before it are settled", async () => {
    await subscribed();
    await append(Array.from({ length: 41 }, () => 0));
    await stores.join("dispatcher");
    const settled = Array.from({ length: 40 }, (_, n) => outcome(n + 1, "delivered"));
    await stores.commit("dispatcher", settled);
    const found = [{ subscription: "one", shard: 7, dueInMs: 0, waitedMs: 0 }];
    for (let sweep = 1; sweep <= 3; sweep++) expect(await stores.sweep([7])).toEqual(found);
  });

  test("follows the test that is due first, and the entries behind a test that waits", async () => {
    await subscribed();
    await stores.join("dispatcher");
    await sendTests(2);
    await stores.commit("dispatcher", [outcome(1, "retry", 60_000), outcome(2, "retry", 5_000)]);
    const found = { subscription: "one", shard: 7, waitedMs: null };
    expect(await stores.sweep([7])).toEqual([{ ...found, dueInMs: 5_000 }]);
    await append([0]);
    expect(await stores.sweep([7])).toEqual([{ ...found, dueInMs: 0, waitedMs: 0 }]);
  });

  test("with a limit finds those that come first in their shard, and every batch", async () => {
    await subscribedTwice();
    await append([0, 0]);
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

async function subscribed(): Promise<void> {
  stores = await TwoStores.on(postgres);
  await stores.create({
    name: "one",
    partner: 0,
    kind: "immediate",
    ordering: "subscription",
    shard: 7,
    failures: 0,
    intervalHours: 1,
  });
}

function append(reviews: readonly number[]): Promise<unknown> {
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
