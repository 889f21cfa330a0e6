import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import { Scheduler } from "../../../../dispatcher/shards/scheduler.ts";
import type { DispatchStore } from "../../../../dispatcher/store/store.ts";
import { SWEEP_MS, type SweptSubscription } from "../../../../dispatcher/store/sweep.ts";
import { addMs } from "../../../../src/lib/clock.ts";
import type { DueTimes, Wake } from "../../../../src/outbox/schedule.ts";
import { createFakeClock, type FakeClock } from "../../../support/clock.ts";

let ended: AbortController;
let running: Promise<void>;

describe("a received wake", () => {
  test("is reported at once if its shard is held, and otherwise not at all", async () => {
    publish(wake("A"));
    publish(wake("B", 8));
    publish(wake("C"));
    await Bun.sleep(0);
    expect(woken).toEqual(["A", "C"]);
  });

  test("is removed from the sorted sets with those of the next 250 ms", async () => {
    publish(wake("A"));
    await pass(240);
    publish(wake("B"));
    await Bun.sleep(0);
    expect(cleared).toEqual([]);
    await pass(10);
    expect(cleared).toEqual([["A", "B"]]);
    publish(wake("C"));
    await pass(250);
    expect(cleared).toEqual([["A", "B"], ["C"]]);
  });

  test("is removed before a wake of its subscription is planned, and not again", async () => {
    publish(wake("A"));
    publish(wake("B"));
    await pass(100);
    expect(cleared).toEqual([]);
    await scheduler.plan(wake("A"), at(60_000));
    expect(cleared).toEqual([["A"]]);
    expect(planned).toEqual([{ ...wake("A"), at: at(60_000) }]);
    await pass(150);
    expect(cleared).toEqual([["A"], ["B"]]);
  });

  test("is left to the next holder if its shard is released meanwhile", async () => {
    publish(wake("A"));
    held.clear();
    await pass(250);
    expect([woken, cleared]).toEqual([["A"], []]);
  });
});

describe("a sorted set", () => {
  test("is read when the earliest planned wake is due", async () => {
    await scheduler.plan(wake("A"), at(150));
    await scheduler.plan(wake("B"), at(500));
    await scheduler.plan(wake("C"), at(130));
    await pass(120);
    expect(looks).toEqual([]);
    await pass(480);
    expect(looks).toEqual([[SHARD, 130]]);
    expect(cleared).toEqual([]);
  });

  test("returns the due subscriptions and the time of the next read", async () => {
    await scheduler.plan(wake("A"), at(20));
    find = () => ({ due: ["A", "B"], nextAt: at(330) });
    await pass(20);
    expect(woken).toEqual(["A", "B"]);
    find = () => ({ due: [], nextAt: undefined });
    await pass(1_000);
    expect(looks).toEqual([
      [SHARD, 20],
      [SHARD, 330],
    ]);
    expect(woken).toEqual(["A", "B"]);
    expect(limits).toEqual([256, 256]);
  });

  test("that cannot be read is read again after a second", async () => {
    find = () => {
      throw new Error("The connection is closed.");
    };
    await scheduler.plan(wake("A"), at(10));
    await pass(2_000);
    expect(looks).toEqual([
      [SHARD, 10],
      [SHARD, 1_010],
    ]);
    expect(warned).toEqual([
      ["schedule.read_failed", SHARD],
      ["schedule.read_failed", SHARD],
    ]);
  });

  test("of a shard that is not held any more is not read", async () => {
    held.set(8, {});
    await scheduler.plan(wake("A"), at(50));
    await scheduler.plan(wake("B", 8), at(50));
    held.delete(SHARD);
    await pass(100);
    expect(looks).toEqual([[8, 50]]);
    // A shard that comes back is read by its claim and not by this plan.
    held.set(SHARD, {});
    await pass(1_000);
    expect(looks).toEqual([[8, 50]]);
  });

  test("is read within 200 ms after the clock is set forward past its time", async () => {
    await scheduler.plan(wake("A"), at(3_600_000));
    // The running sleep does not notice the change.
    const { now } = clock;
    clock.now = () => addMs(now(), 3_600_000);
    await pass(200);
    expect(looks.map(([shard]) => shard)).toEqual([SHARD]);
  });
});

describe("a shard that was just claimed", () => {
  test("is read and swept at once", async () => {
    const found = { dueInMs: 0, waitedMs: 4_000 };
    inPostgres = [
      { subscriptionId: "A", shard: SHARD, ...found },
      { subscriptionId: "B", shard: 8, ...found },
    ];
    scheduler.claimed([SHARD]);
    await Bun.sleep(0);
    expect(looks).toEqual([[SHARD, 0]]);
    // A first query finds a few of each shard, a second one all.
    expect([woken, swept]).toEqual([["A*", "A*"], [SHARD]]);
  });
});

describe("a sweep of all shards", () => {
  test("reports due subscriptions, plans the others in time, and returns the longest wait", async () => {
    inPostgres = [
      { subscriptionId: "A", shard: SHARD, dueInMs: 0, waitedMs: 4_000 },
      { subscriptionId: "B", shard: SHARD, dueInMs: 500, waitedMs: -500 },
    ];
    await pass(SWEEP_MS);
    expect([woken, swept]).toEqual([["A*"], [SHARD]]);
    expect(scheduler.lagMs).toBe(4_000);
    expect(planned).toEqual([{ ...wake("B"), at: at(SWEEP_MS + 500) }]);
    await pass(600);
    expect(looks).toEqual([[SHARD, SWEEP_MS + 500]]);
  });

  test("continues while wakes cannot be received", async () => {
    await stop();
    schedule.onWake = () => Promise.reject(new Error("The connection is closed."));
    await run();
    expect(warned).toEqual([["schedule.subscribe_failed", undefined]]);
    await pass(SWEEP_MS);
    expect(swept).toEqual([SHARD]);
  });
});

test("the shutdown does not wait for the next read", async () => {
  const sleeping = clock.sleepers;
  ended.abort();
  await running;
  expect([sleeping > 0, clock.sleepers]).toEqual([true, 0]);
});

const SHARD = 7;

const wake = (subscriptionId: string, shard = SHARD): Wake => ({ subscriptionId, shard });

/** Returns the instant `ms` after the start of a test. */
const at = (ms: number) => addMs(start, ms);

let clock: FakeClock;

let start: Date;

let held: Map<number, unknown>;

/** The woken subscriptions; those that a sweep found have a star. */
let woken: string[];

let swept: number[];

let warned: unknown[][];

let publish: (wake: Wake) => void;

let planned: (Wake & { readonly at: Date })[];

/** The subscriptions of each command that removes some from the sorted sets. */
let cleared: string[][];

/** The time of each read of a sorted set, in ms since the start. */
let looks: [shard: number, ms: number][];

let limits: number[];

/** Returns the result of the next read of a sorted set. */
let find: () => { due: string[]; nextAt: Date | undefined };

let inPostgres: SweptSubscription[];

let schedule: DueTimes;

let scheduler: Scheduler;

beforeEach(async () => {
  clock = createFakeClock();
  start = clock.now();
  held = new Map([[SHARD, {}]]);
  [woken, swept, warned, planned, cleared, looks, limits] = [[], [], [], [], [], [], []];
  inPostgres = [];
  find = () => ({ due: [], nextAt: undefined });
  schedule = {
    plan: async (wakes) => void planned.push(...wakes),
    async clear(wakes) {
      if (wakes.length > 0) cleared.push(wakes.map(({ subscriptionId }) => subscriptionId));
    },
    async takeDue(shard, now, limit) {
      looks.push([shard, now.getTime() - start.getTime()]);
      limits.push(limit);
      return find();
    },
    onWake: async (listener) => void (publish = listener),
  };
  await run();
});

afterEach(stop);

async function run(): Promise<void> {
  ended = new AbortController();
  const store = {
    sweep: async (shards: readonly number[]) =>
      inPostgres.filter(({ shard }) => shards.includes(shard)),
  } as unknown as DispatchStore;
  const log = {
    debug() {},
    info() {},
    warn: (event: string, fields?: object) =>
      void warned.push([event, fields && Reflect.get(fields, "shard")]),
    error() {},
  };
  scheduler = new Scheduler(
    { clock, log, schedule, store, holdings: { shards: held } },
    (event) => {
      if (event.kind === "shards_swept") swept.push(...event.shards);
      else if (event.kind === "woken")
        woken.push(event.wake.subscriptionId + (event.isSwept ? "*" : ""));
    },
  );
  running = scheduler.run(ended.signal);
  await Bun.sleep(0);
}

async function stop(): Promise<void> {
  ended.abort();
  await running;
}

/** Passes time in steps of 10 ms and runs due work. */
async function pass(ms: number): Promise<void> {
  await Bun.sleep(0);
  for (let n = 0; n < ms / 10; n++) {
    clock.advance(10);
    await Bun.sleep(0);
  }
}
