import { afterEach, beforeEach, expect, test } from "bun:test";

import { Holdings } from "../../../../dispatcher/shards/holdings.ts";
import type { Leases } from "../../../../dispatcher/shards/leases.ts";
import { createFakeClock, type FakeClock } from "../../../support/clock.ts";

const SHARD = 7;
let clock: FakeClock;
let ended: AbortController;
let said: string[];
let surplus: number;
let lingering: boolean;
let busy: boolean;
let hasPostgres: boolean;
let running: Promise<void>;
let holdings: Holdings;

beforeEach(async () => {
  clock = createFakeClock();
  ended = new AbortController();
  said = [];
  [surplus, lingering, busy, hasPostgres] = [0, false, true, true];
  let epoch = 1;
  let isOurs = true;
  const leases: Leases = {
    join: async () => undefined,
    renew: async () => ({
      alive: true,
      owned: new Map(isOurs ? [[SHARD, epoch]] : []),
      surplus: isOurs ? surplus : 0,
    }),
    async release(_, epochs) {
      said.push(`released ${epochs.get(SHARD)}`);
      isOurs = false;
      epoch += 1;
    },
    async leave() {
      if (!hasPostgres) throw new Error("connect ECONNREFUSED");
      said.push("left");
    },
  };
  const log = {
    debug() {},
    info() {},
    warn: (event: string) => void said.push(event),
    error() {},
  };
  holdings = new Holdings(
    { clock, log, leases, newId: () => "one" },
    {
      claimed: () => undefined,
      lingers: () => lingering,
      closed: () => void said.push("closed"),
      overdue: () => void said.push("overdue"),
      busyShards: () => new Set(busy ? [SHARD] : []),
      checked: () => undefined,
      lost: () => undefined,
    },
  );
  running = holdings.run(ended.signal);
  await pass(0);
});
afterEach(async () => {
  ended.abort();
  await running;
});

/** So many seconds, with a renewal in each. */
async function pass(seconds: number): Promise<void> {
  for (let second = 0; second <= seconds; second++) {
    if (second > 0) clock.advance(1_000);
    await Bun.sleep(0);
  }
}

test("a shard is served on while a request of it hangs, and closed when that has ended", async () => {
  [surplus, lingering] = [1, true];
  await pass(10);
  expect(holdings.serves(SHARD)).toBe(true);
  lingering = false;
  await pass(1);
  expect(holdings.serves(SHARD)).toBe(false);
  expect(said).toEqual(["closed"]);
  busy = false;
  await pass(1);
  expect(said).toEqual(["closed", "released 1"]);
});

test("a shard in which something hangs for ever is closed after 20 seconds and broken off after two more", async () => {
  [surplus, lingering] = [1, true];
  await pass(20);
  expect(said).toEqual([]);
  await pass(1);
  expect(said).toEqual(["closed"]);
  await pass(2);
  expect(said).toEqual(["closed", "overdue"]);
});

test("a shard that nobody wants any more while it waits to go stays", async () => {
  [surplus, lingering] = [1, true];
  await pass(5);
  surplus = 0;
  await pass(1);
  lingering = false;
  await pass(30);
  expect(holdings.serves(SHARD)).toBe(true);
  expect(said).toEqual([]);
});

test("what a closed shard was told to break off does not concern it once it is given up", async () => {
  surplus = 1;
  busy = false;
  await pass(10);
  expect(said).toEqual(["closed", "released 1"]);
});

test("the lease is given back at the end", async () => {
  ended.abort();
  await running;
  expect(said).toEqual(["left"]);
});

test("a lease that cannot be given back does not keep the process from ending in good order", async () => {
  hasPostgres = false;
  ended.abort();
  await running;
  expect(said).toEqual(["lease.unreturned"]);
});
