import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import { Holdings } from "../../../../dispatcher/shards/holdings.ts";
import type { Heartbeat, Leases } from "../../../../dispatcher/shards/lease-queries.ts";
import { PostgresClock } from "../../../../src/lib/postgres-clock.ts";
import { addMs, type Clock } from "../../../../src/lib/clock.ts";
import { createFakeClock, type FakeClock } from "../../../support/clock.ts";

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

test("a shard that waits for its release stays if it is not surplus any more", async () => {
  [surplus, lingering] = [1, true];
  await pass(5);
  surplus = 0;
  await pass(1);
  lingering = false;
  await pass(30);
  expect(holdings.serves(SHARD)).toBe(true);
  expect(said).toEqual([]);
});

test("a shard that was released is not reported as overdue", async () => {
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
  expect(said).toEqual(["lease.release_failed"]);
});

test("a shard is released as unclean while attempts of it are in doubt", async () => {
  surplus = 1;
  busy = false;
  hasInDoubt = true;
  await pass(1);
  expect(said).toEqual(["closed", "released 1 as unclean"]);
});

test("the lease is renewed while an expiry or an assignment of shards waits for PostgreSQL", async () => {
  rows = [{ id: "other", renewedAt: clock.now() }];
  const { promise, resolve } = Promise.withResolvers<void>();
  await pass(1);
  isAssigning = promise;
  await pass(20);
  expect(said).toEqual(["expires other"]);
  expect(holdings.safe).toBe(true);
  resolve();
});

test("a process that starts while Postgres is away takes its place when Postgres is back", async () => {
  ended.abort();
  await running;
  ended = new AbortController();
  said = [];
  hasPostgres = false;
  holdings = make();
  running = holdings.run(ended.signal);
  await pass(2);
  expect(said).toEqual(["lease.renew_failed", "lease.renew_failed", "lease.renew_failed"]);
  expect(holdings.serves(SHARD)).toBe(false);
  hasPostgres = true;
  await pass(2);
  expect(holdings.serves(SHARD)).toBe(true);
});

describe("sending is unsafe", () => {
  test("when the lease was not renewed for three seconds", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    await pass(1);
    isRenewing = promise;
    await pass(3);
    expect(holdings.safe).toBe(false);
    isRenewing = undefined;
    resolve();
  });

  test("after a suspension, which the monotonic clock does not show", async () => {
    await pass(1);
    expect(holdings.safe).toBe(true);
    suspendedMs = 60_000;
    expect(holdings.safe).toBe(false);
    await pass(1);
    expect(holdings.safe).toBe(true);
  });
});

test.each([
  ["beside others looks at them every 200 ms", 1, 5],
  ["alone looks every second whether one has joined", 0, 1],
])("a dispatcher %s", async (_, before, each) => {
  rows = Array.from("abcdefgh", (id) => ({ id, renewedAt: clock.now() })).slice(0, before);
  rows.push({ id: "one", renewedAt: clock.now() });
  await glance(5);
  looks = 0;
  await glance(10);
  expect(looks).toBe(2 * each);
});

test("the shards of a lease that another process expired are claimed at the next check, and only once", async () => {
  rows = ["one", "other"].map((id) => ({ id, renewedAt: clock.now() }));
  await glance(5);
  const before = assignments;
  rows = rows.slice(0, 1);
  await glance(1);
  expect(assignments).toBe(before + 1);
  await glance(3);
  expect(assignments).toBe(before + 1);
});

/** Passes this many intervals of 200 ms. */
async function glance(times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    clock.advance(200);
    await Bun.sleep(0);
  }
}

const SHARD = 7;

let clock: FakeClock;

let suspendedMs: number;

let ended: AbortController;

let said: string[];

let surplus: number;

let lingering: boolean;

let busy: boolean;

let hasPostgres: boolean;

let hasInDoubt: boolean;

let rows: Heartbeat[];

let looks: number;

let assignments: number;

/** Delays the responses of PostgreSQL to renewals, or to calls about shards. */
let isRenewing: Promise<void> | undefined;

let isAssigning: Promise<void> | undefined;

let running: Promise<void>;

let holdings: Holdings;

let make: () => Holdings;

beforeEach(async () => {
  clock = createFakeClock();
  suspendedMs = 0;
  const own: Clock = { ...clock, now: () => addMs(clock.now(), suspendedMs) };
  ended = new AbortController();
  said = [];
  [surplus, lingering, busy, hasPostgres] = [0, false, true, true];
  [hasInDoubt, rows, isRenewing, isAssigning] = [false, [], undefined, undefined];
  [looks, assignments] = [0, 0];
  let epoch = 1;
  let isOurs = true;
  const leases: Leases = {
    async join() {
      if (!hasPostgres) throw new Error("write CONNECT_TIMEOUT");
    },
    async renew() {
      if (isRenewing !== undefined) await isRenewing;
      return { now: clock.now(), isAlone: false };
    },
    async assign() {
      assignments += 1;
      if (isAssigning !== undefined) await isAssigning;
      const owned = new Map(isOurs ? [[SHARD, { epoch, unclean: true }]] : []);
      return { owned, surplus: isOurs ? surplus : 0 };
    },
    async heartbeats() {
      looks += 1;
      return rows;
    },
    async expire({ id }) {
      said.push(`expires ${id}`);
      return new Promise(() => {});
    },
    async release(_, claims) {
      const claim = claims.get(SHARD);
      said.push(`released ${claim?.epoch}${claim?.unclean ? " as unclean" : ""}`);
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
  make = () =>
    new Holdings(
      { clock: new PostgresClock(own), log, leases, newId: () => "one" },
      {
        hasInDoubt: () => hasInDoubt,
        lingers: () => lingering,
        busyShards: () => new Set(busy ? [SHARD] : []),
        outage: () => undefined,
        quarantined: () => [],
      },
      ({ kind }) => {
        if (kind === "shard_closed") said.push("closed");
        if (kind === "shard_overdue") said.push("overdue");
      },
    );
  holdings = make();
  running = holdings.run(ended.signal);
  await pass(0);
});

afterEach(async () => {
  ended.abort();
  await running;
});

/** Passes seconds, with a renewal in each. */
async function pass(seconds: number): Promise<void> {
  for (let second = 0; second <= seconds; second++) {
    if (second > 0) clock.advance(1_000);
    await Bun.sleep(0);
  }
}
