import { beforeEach, expect, test } from "bun:test";

import { FailureDetector } from "../../../../dispatcher/shards/failure-detector.ts";
import {
  type Heartbeat,
  LEASE_TTL_MS,
  type Leases,
} from "../../../../dispatcher/shards/lease-queries.ts";
import { createFakeClock, type FakeClock } from "../../../support/clock.ts";

test("a lease that is not renewed is expired once, and its free shards are reported", async () => {
  await lookUntilDead("B");
  expect(expired).toEqual(["A"]);
  expect(freed).toBe(1);
  expect(logged).toEqual([["dispatcher.lost", { dispatcher_id: "A", shards: 16 }]]);
});

test("the own lease is not ended, however long it stands still", async () => {
  rows = rows.slice(0, 1);
  await lookUntilDead();
  expect([expired, freed]).toEqual([[], 0]);
});

test("an expiry that is under way is not started again, and no check waits for it", async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  expiry = () => promise;
  await lookUntilDead("B");
  await lookUntilDead("B");
  expect(expired).toEqual(["A"]);
  resolve(16);
  await Bun.sleep(0);
  expect(freed).toBe(1);
});

test("a failed expiry is logged and retried at the next check", async () => {
  expiry = () => Promise.reject(new Error("connect ECONNREFUSED"));
  await lookUntilDead("B");
  expect(logged).toMatchObject([
    ["lease.expire_failed", { dispatcher_id: "A", error: "connect ECONNREFUSED" }],
  ]);
  expiry = async () => 16;
  await detector.check("own");
  await Bun.sleep(0);
  expect([expired, freed]).toEqual([["A", "A"], 1]);
});

test("a dispatcher that has vanished since the last check has freed its shards, which is reported once", async () => {
  await detector.check("own");
  rows = rows.slice(0, 2);
  await detector.check("own");
  await detector.check("own");
  expect(freed).toBe(1);
  rows = [...rows, { id: "C", renewedAt: clock.now() }];
  await detector.check("own");
  expect(freed).toBe(1);
});

let nowMs: number;
beforeEach(() => {
  nowMs = 0;
});

/** Reads heartbeats with these renewal times after `afterMs` and returns the expired ones. */
function look(afterMs: number, renewed: Record<string, number>, tookMs = 0): string[] {
  nowMs += afterMs;
  const read = Object.entries(renewed).map(([id, ms]) => ({ id, renewedAt: new Date(ms) }));
  const askedMs = nowMs;
  nowMs += tookMs;
  return detector.read(read, { askedMs, answeredMs: nowMs }).map(({ id }) => id);
}

test("a heartbeat that stands still for the TTL is expired, and not a moment earlier", () => {
  look(0, { A: 1, B: 1 });
  for (let ms = 1_000; ms < LEASE_TTL_MS; ms += 1_000)
    expect(look(1_000, { A: 1, B: ms })).toEqual([]);
  expect(look(499, { A: 1, B: 9 })).toEqual([]);
  expect(look(1, { A: 1, B: 10 })).toEqual(["A"]);
});

test("a step of the clock of Postgres ends no lease, in either direction", () => {
  for (const at of [0, 1_000, 3_602_000, 3_603_000, 4_000, 5_000, 6_000, 7_000])
    expect(look(1_000, { A: at, B: at + 1 })).toEqual([]);
});

test("a late read starts anew, because PostgreSQL may have been out of reach for all", () => {
  look(0, { A: 1 });
  look(1_000, { A: 1 });
  expect(look(8_000, { A: 1 })).toEqual([]);
  expect(look(2_000, { A: 1 })).toEqual([]);
  expect(look(2_000, { A: 1 })).toEqual(["A"]);
});

test("the time counts from the first answer to the last question", () => {
  look(0, { A: 1 }, 1_500);
  look(500, { A: 1 });
  look(1_500, { A: 1 });
  expect(look(1_499, { A: 1 })).toEqual([]);
  expect(look(1, { A: 1 })).toEqual(["A"]);
});

let clock: FakeClock;

let rows: Heartbeat[];

let isAway: boolean;

let expired: string[];

/** The response of PostgreSQL to an expiry. */
let expiry: () => Promise<number | undefined>;

let freed: number;

let logged: unknown[][];

let detector: FailureDetector;

beforeEach(() => {
  clock = createFakeClock();
  rows = ["own", "A", "B"].map((id) => ({ id, renewedAt: clock.now() }));
  [isAway, expired, freed, logged] = [false, [], 0, []];
  expiry = async () => 16;
  const leases: Pick<Leases, "heartbeats" | "expire"> = {
    async heartbeats() {
      if (isAway) throw new Error("connect ECONNREFUSED");
      return rows;
    },
    expire({ id }) {
      expired.push(id);
      return expiry();
    },
  };
  const log = {
    debug() {},
    info() {},
    warn: (event: string, fields: object = {}) =>
      void logged.push([event, { ...fields, stack: undefined }]),
    error() {},
  };
  detector = new FailureDetector({ clock, log, leases: leases as Leases }, () => void (freed += 1));
});

/** Checks every second until after the TTL. Only the leases in `moving` are renewed. */
async function lookUntilDead(...moving: string[]): Promise<void> {
  for (let ms = 0; ms <= LEASE_TTL_MS + 1_000; ms += 1_000) {
    rows = rows.map((row) => (moving.includes(row.id) ? { ...row, renewedAt: clock.now() } : row));
    await detector.check("own");
    clock.advance(1_000);
  }
  await Bun.sleep(0);
}
