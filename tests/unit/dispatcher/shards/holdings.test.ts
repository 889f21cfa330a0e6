import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import { Holdings, type HoldingsEvent } from "../../../../dispatcher/shards/holdings.ts";
import {
  type Claim,
  type Heartbeat,
  LEASE_SAFE_MS,
  type Leases,
} from "../../../../dispatcher/shards/lease-queries.ts";
import { addMs, type Clock } from "../../../../src/lib/clock.ts";
import { PostgresClock } from "../../../../src/lib/postgres-clock.ts";
import { SHARDS } from "../../../../src/outbox/schedule.ts";
import { createFakeClock, type FakeClock } from "../../../support/clock.ts";

test("a dispatcher that is alone with all shards reads neither shards nor heartbeats, until another one joins", async () => {
  isAlone = true;
  await pass(2);
  expect(all("assign").length).toBeGreaterThan(2);
  for (let shard = 0; shard < SHARDS; shard++) owned.set(shard, claim());
  await pass(2);
  asked = [];
  await pass(5);
  expect(asked).toEqual([]);
  isAlone = false;
  await pass(1);
  expect(asked.map(([call]) => call).toSorted()).toEqual(["assign", "heartbeats"]);
  isAlone = true;
  await pass(2);
  asked = [];
  answering.renew = Promise.reject(new Error("connect ECONNREFUSED"));
  await pass(2);
  expect(all("assign").length).toBeGreaterThan(0);
});

test("the shards of a lease that another process expired are claimed at the next check, and only once", async () => {
  rows = ["D1", "other"].map((id) => ({ id, renewedAt: clock.now() }));
  await pass(1, 200);
  const before = all("assign").length;
  rows = rows.slice(0, 1);
  await pass(0.2, 200);
  expect(all("assign").length).toBe(before + 1);
  await pass(0.6, 200);
  expect(all("assign").length).toBe(before + 1);
});

describe("shards that are ours from now on", () => {
  test("are reported once, with the unclean ones among them", async () => {
    expect(told).toEqual([["claimed", FIVE, []]]);
    expect(logged).toContainEqual(["shards.claimed", { shards: 5, unclean: 0, owned: 5 }]);
    owned.set(6, claim(3, true)).set(7, claim());
    await pass(2);
    expect(told.slice(1)).toEqual([["claimed", [6, 7], [6]]]);
    expect(logged).toContainEqual(["shards.claimed", { shards: 2, unclean: 1, owned: 7 }]);
    expect([...holdings.shards.keys()]).toEqual([...FIVE, 6, 7]);
    expect([holdings.serves(6), holdings.serves(8)]).toEqual([true, false]);
  });

  test("are not taken by a dispatcher that stops, which serves none, renews and gives up", async () => {
    holdings.stop();
    owned.set(6, claim());
    surplus = 1;
    busy.clear();
    await pass(1);
    expect(holdings.serves(1)).toBe(false);
    expect(told.slice(1)).toEqual([["closed", 5]]);
    expect(all("release")).toEqual([["release", "D1", [5, claim()]]]);
    expect(holdings.safe).toBe(true);
  });

  test("are not taken under an id that is lost by then", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    answering.assign = promise;
    owned.set(6, claim());
    await pass(1);
    owned = new Map([[7, claim()]]);
    lose("D1");
    answering = {};
    resolve();
    await turn();
    expect(told.slice(1)).toEqual([["lost"], ["claimed", [7], []]]);
  });

  test("that cannot be asked for are asked for again", async () => {
    answering.assign = Promise.reject(new Error("connect ECONNREFUSED"));
    owned.set(6, claim());
    await pass(1);
    expect(logged.at(-1)).toMatchObject([
      "shards.assign_failed",
      { error: "connect ECONNREFUSED" },
    ]);
    answering = {};
    await pass(1);
    expect(holdings.serves(6)).toBe(true);
  });
});

describe("shards that are too many", () => {
  test("are the last ones, closed at once, and given up when nothing of them is under way", async () => {
    surplus = 2;
    await pass(3);
    expect(told.slice(1)).toEqual([
      ["closed", 5],
      ["closed", 4],
      ["overdue", 5],
      ["overdue", 4],
    ]);
    expect([holdings.serves(3), holdings.serves(4)]).toEqual([true, false]);
    expect(all("release")).toEqual([]);
    busy.delete(5);
    await pass(1);
    expect(all("release")).toEqual([["release", "D1", [5, claim()]]]);
    expect(logged.at(-1)).toEqual(["shards.released", { shards: 1, owned: 4 }]);
    expect([...holdings.shards.keys()]).toEqual([1, 2, 3, 4]);
  });

  test("are served on while a request of them hangs, and closed when that has ended", async () => {
    lingering = new Set([5]);
    surplus = 1;
    await pass(10);
    expect(holdings.serves(5)).toBe(true);
    lingering.clear();
    await pass(1);
    expect(holdings.serves(5)).toBe(false);
    expect(told.slice(1)).toEqual([["closed", 5]]);
  });

  test("wait for 20 s each, from when they were chosen", async () => {
    lingering = new Set(FIVE);
    surplus = 1;
    await pass(5);
    surplus = 2;
    await pass(15);
    expect(told.slice(1)).toEqual([]);
    await pass(1);
    expect(told.slice(1)).toEqual([["closed", 5]]);
    surplus = 2;
    await pass(4);
    expect(told.slice(1)).toEqual([
      ["closed", 5],
      ["overdue", 5],
    ]);
    await pass(1);
    expect(told.at(-1)).toEqual(["closed", 4]);
  });

  test("are held again if they were claimed again after a release with a lost response", async () => {
    surplus = 1;
    await pass(1);
    surplus = 0;
    owned.set(5, claim(2, true));
    await pass(1);
    expect(told.slice(1)).toEqual([
      ["closed", 5],
      ["claimed", [5], [5]],
    ]);
    expect(holdings.serves(5)).toBe(true);
  });

  test("are released as unclean if they were claimed as unclean and have attempts in doubt", async () => {
    owned = new Map(FIVE.map((shard) => [shard, claim(shard, shard > 3)]));
    lose("D1");
    await pass(1);
    inDoubt = new Set([3, 4]);
    ended.abort();
    await running;
    const left = FIVE.map((shard) => [shard, claim(shard, shard === 4)]);
    expect(all("leave")).toEqual([["leave", "D2", ...left]]);
    expect(holdings.shards.size).toBe(0);
  });
});

describe("a lease that is lost", () => {
  test("takes everything with it, and a new one is taken at once under another id", async () => {
    surplus = 1;
    await pass(1);
    fenced.add("D1");
    await pass(1);
    expect(told.slice(2)).toEqual([["lost"], ["claimed", FIVE, []], ["closed", 5]]);
    expect(holdings.id).toBe("D2");
    expect(all("join")).toEqual([
      ["join", "D1"],
      ["join", "D2"],
    ]);
    expect(logged).toContainEqual(["lease.lost", { dispatcher_id: "D1" }]);
    // A shard that was closed under the old lease is not overdue under the new one.
    await pass(1);
    expect(told.at(-1)).toEqual(["closed", 5]);
  });

  test("is not renewed by a renewal of the former lease", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    answering.renew = promise;
    await pass(1);
    lose("D1");
    resolve();
    await turn();
    expect(all("join")).toEqual([
      ["join", "D1"],
      ["join", "D2"],
    ]);
    // One check is that of the start, and one that of the new lease.
    expect(checks).toBe(2);
  });

  test("is lost only under its own id: another id changes nothing", () => {
    lose("D0");
    expect([holdings.id, holdings.shards.size, holdings.safe]).toEqual(["D1", 5, true]);
    expect(told.length).toBe(1);
  });

  test("does not keep the process from ending in good order if it cannot be released", async () => {
    answering.leave = Promise.reject(new Error("connect ECONNREFUSED"));
    ended.abort();
    await running;
    expect(logged.at(-1)).toMatchObject(["lease.release_failed", {}]);
  });

  test("is not released by a process that may have unrecorded attempts", async () => {
    holdings.abandon();
    ended.abort();
    await running;
    expect(all("leave")).toEqual([]);
  });
});

describe("a renewal", () => {
  test("goes on while an expiry or an assignment of shards waits for PostgreSQL", async () => {
    rows = [{ id: "other", renewedAt: clock.now() }];
    const { promise, resolve } = Promise.withResolvers<void>();
    await pass(1);
    answering.assign = promise;
    await pass(20);
    expect(all("expire")).toEqual([["expire", "other"]]);
    expect(holdings.safe).toBe(true);
    resolve();
  });

  test("makes sending safe again after a suspension, which the monotonic clock does not show", async () => {
    aheadMs = 60_000;
    expect(holdings.safe).toBe(false);
    await pass(1);
    expect(holdings.safe).toBe(true);
  });

  test("makes sending safe for 2.5 s from when it began", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    answering.renew = promise;
    clock.advance(LEASE_SAFE_MS - 1);
    expect(holdings.safe).toBe(true);
    clock.advance(1);
    expect(holdings.safe).toBe(false);
    resolve();
  });

  test.each([
    ["ahead", 1],
    ["behind", -1],
  ])("is void if the clock of the machine was set 500 ms %s, but not at 499 ms", (_, sign) => {
    aheadMs = sign * 499;
    expect(holdings.safe).toBe(true);
    aheadMs = sign * 500;
    expect(holdings.safe).toBe(false);
  });
});

const FIVE = [1, 2, 3, 4, 5];

const claim = (epoch = 1, unclean = false): Claim => ({ epoch, unclean });

let clock: FakeClock;

/** The time by which the wall clock of the machine was set forward. */
let aheadMs: number;

let ended: AbortController;

/** The shards of this dispatcher in PostgreSQL. */
let owned: Map<number, Claim>;

let surplus: number;

/** The leases of all dispatchers in PostgreSQL. */
let rows: Heartbeat[];

/** Whether this dispatcher is the only one and holds every shard, by its last renewal. */
let isAlone: boolean;

/** The ids of expired leases. */
let fenced: Set<string>;

/** The shards with work, with work that hangs, and with attempts in doubt. */
let busy: Set<number>;

let lingering: Set<number>;

let inDoubt: Set<number>;

/** The calls of PostgreSQL, and the reported events. */
let asked: unknown[][];

let told: unknown[][];

let logged: unknown[][];

let checks: number;

/** Promises that delay the responses of PostgreSQL. */
let answering: Partial<Record<"join" | "renew" | "assign" | "release" | "leave", Promise<void>>>;

let ids: number;

let holdings: Holdings;

let running: Promise<void>;

/** Starts a process with a lease of its own. */
let start: () => void;

beforeEach(async () => {
  clock = createFakeClock();
  owned = new Map(FIVE.map((shard) => [shard, claim()]));
  [aheadMs, surplus, checks, fenced] = [0, 0, 0, new Set()];
  [busy, lingering, inDoubt] = [new Set(FIVE), new Set(), new Set()];
  [asked, told, logged, answering, isAlone] = [[], [], [], {}, false];
  [rows, ids] = [[], 0];
  const leases: Leases = {
    async join(id) {
      await answering.join;
      asked.push(["join", id]);
    },
    async renew(id) {
      await answering.renew;
      return fenced.has(id) ? undefined : { now: clock.now(), isAlone };
    },
    async assign(id) {
      asked.push(["assign", id]);
      const answer = { owned: new Map(owned), surplus };
      await answering.assign;
      return answer;
    },
    heartbeats: async () => (asked.push(["heartbeats"]), rows),
    expire({ id }) {
      asked.push(["expire", id]);
      return new Promise(() => {});
    },
    async release(id, claims) {
      asked.push(["release", id, ...claims]);
      await answering.release;
      for (const shard of claims.keys()) owned.delete(shard);
    },
    async leave(id, claims) {
      await answering.leave;
      asked.push(["leave", id, ...claims]);
    },
  };
  const own: Clock = { ...clock, now: () => addMs(clock.now(), aheadMs) };
  const say = (event: string, fields: object = {}) =>
    void logged.push([event, { ...fields, stack: undefined }]);
  const log = { debug() {}, info: say, warn: say, error() {} };
  const use = {
    hasInDoubt: (shard: number) => inDoubt.has(shard),
    lingers: (shard: number) => lingering.has(shard),
    busyShards: () => busy,
    outage: () => undefined,
    quarantined: () => [],
  };
  start = () => {
    ended = new AbortController();
    const deps = { clock: new PostgresClock(own), log, leases, newId: () => `D${++ids}` };
    holdings = new Holdings(deps, use, report);
    running = holdings.run(ended.signal);
  };
  start();
  await turn();
});

afterEach(async () => {
  ended.abort();
  await running;
});

const turn = () => Bun.sleep(0);

function report(event: HoldingsEvent): void {
  switch (event.kind) {
    case "shards_claimed":
      return void told.push(["claimed", event.shards, event.unclean]);
    case "shard_closed":
      return void told.push(["closed", event.shard]);
    case "shard_overdue":
      return void told.push(["overdue", event.shard]);
    case "lease_checked":
      return void (checks += 1);
    case "lease_lost":
      return lose(event.dispatcherId);
  }
}

/** Gives up the lease as the dispatcher does. */
function lose(id: string): void {
  if (holdings.lose(id)) told.push(["lost"]);
}

/** Passes seconds in steps of `stepMs`. Each second has a renewal and an assignment. */
async function pass(seconds: number, stepMs = 1_000): Promise<void> {
  for (let ms = 0; ms < seconds * 1_000; ms += stepMs) {
    clock.advance(stepMs);
    await turn();
  }
}

/** Returns the calls of one kind. */
const all = (kind: string) => asked.filter(([one]) => one === kind);
