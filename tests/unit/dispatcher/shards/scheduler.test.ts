import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import { Scheduler } from "../../../../dispatcher/shards/scheduler.ts";
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
    expect(woken()).toEqual(["A", "C"]);
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
    expect([woken(), cleared]).toEqual([["A"], []]);
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
    expect(woken()).toEqual(["A", "B"]);
    find = () => ({ due: [], nextAt: undefined });
    await pass(1_000);
    expect(looks).toEqual([
      [SHARD, 20],
      [SHARD, 330],
    ]);
    expect(woken()).toEqual(["A", "B"]);
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

describe("a sweep of all shards", () => {
  test("reports due subscriptions, plans the others in time, and returns the longest wait", async () => {
    inPostgres = [
      { subscriptionId: "A", shard: SHARD, dueInMs: 0, waitedMs: 4_000 },
      { subscriptionId: "B", shard: SHARD, dueInMs: 500, waitedMs: -500 },
    ];
    await pass(SWEEP_MS);
    expect([woken(), swept()]).toEqual([["A*"], [SHARD]]);
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
    expect(swept()).toEqual([SHARD]);
  });
});

describe("a sweep of many shards", () => {
  beforeEach(() => {
    held.clear();
    for (let shard = 0; shard < 48; shard++) {
      held.set(shard, { epoch: 1 });
      const found = { subscriptionId: `of ${shard}`, shard, dueInMs: 0, waitedMs: shard * 100 };
      inPostgres.push(found);
    }
  });

  test("queries a few shards at once and reports them before it continues", async () => {
    await pass(SWEEP_MS, SWEEP_MS);
    expect(asked).toEqual([query(0), query(1), query(2)]);
    expect(told.slice(15, 18)).toEqual(["of 15*", `swept ${query(0).join(" ")}`, "of 16*"]);
    expect(scheduler.lagMs).toBe(4_700);
  });

  test("of a claim reads the sorted sets of the claimed shards alone, and sweeps them at once: first a little of each, then everything", async () => {
    scheduler.claimed([7, 9, 1, 2, 3]);
    await Bun.sleep(0);
    expect(asked).toEqual([
      [7, 9, 1, 2, 3],
      [7, 9, 1, 2, 3],
    ]);
    expect(looks.map(([shard]) => shard)).toEqual([7, 9, 1, 2, 3]);
    expect(sweepLimits).toEqual([16, undefined]);
    expect(told.filter(isSwept)).toEqual(["swept 7 9 1 2 3"]);
    expect(scheduler.lagMs).toBe(0);
  });

  test("of a claim does not wait for the one of all shards", async () => {
    const first = Promise.withResolvers<void>();
    answer = () => first.promise;
    await pass(SWEEP_MS, SWEEP_MS);
    answer = async () => {};
    scheduler.claimed([7, 9]);
    await Bun.sleep(0);
    expect(asked).toEqual([query(0), [7, 9], [7, 9]]);
    expect(told).toEqual(["of 7*", "of 9*", "of 7*", "of 9*", "swept 7 9"]);
    first.resolve();
  });

  test("does not call a shard swept that was claimed anew during the query", async () => {
    answer = async () => void held.set(7, { epoch: asked.length });
    scheduler.claimed([7, 9]);
    await Bun.sleep(0);
    expect(told.filter(isSwept)).toEqual(["swept 9"]);
  });

  test("that cannot reach Postgres is made again, of the same shards", async () => {
    answer = async () => {
      throw Object.assign(new Error("out of reach"), { code: "ECONNREFUSED" });
    };
    scheduler.claimed([7]);
    await Bun.sleep(0);
    answer = async () => {};
    await pass(SWEEP_MS, SWEEP_MS);
    expect(told).toContain("swept 7");
    expect(told).toContain(`swept ${query(1).join(" ")}`);
  });

  test("of failing shards leaves out no other shard, and retries the failing ones individually", async () => {
    const failing = new Set([8, 9]);
    answer = async () => {
      if (asked.at(-1)?.some((shard) => failing.has(shard))) throw new Error("damaged");
    };
    scheduler.claimed([8, 10]);
    await pass(2 * SWEEP_MS, 100);
    const others = [...held.keys()].filter((shard) => !failing.has(shard));
    expect(new Set(swept())).toEqual(new Set(others));
    expect(new Set(stuck)).toEqual(new Set([8, 9]));
    failing.delete(8);
    // A failing shard is retried after 30 s at most.
    await pass(30_000, 100);
    expect(swept()).toContain(8);
    expect(swept()).not.toContain(9);
  });
});

const SHARD = 7;

/** The shards of the n-th query of a sweep, from 0. */
const query = (n: number) => Array.from({ length: 16 }, (_, i) => 16 * n + i);

const wake = (subscriptionId: string, shard = SHARD): Wake => ({ subscriptionId, shard });

/** Returns the instant `ms` after the start of a test. */
const at = (ms: number) => addMs(start, ms);

let clock: FakeClock;

let start: Date;

let held: Map<number, unknown>;

/** The woken subscriptions, with a star if a sweep found them, and the swept shards (`swept 7 9`). */
let told: string[];

const isSwept = (one: string) => one.startsWith("swept ");

const woken = () => told.filter((one) => !isSwept(one));

const swept = () => told.filter(isSwept).flatMap((one) => one.split(" ").slice(1).map(Number));

/** The shards and the limit of each sweep query. */
let asked: number[][];

let sweepLimits: (number | undefined)[];

/** Runs before the response to each sweep query. */
let answer: () => Promise<void>;

/** The shards that were logged as stuck. */
let stuck: unknown[];

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
  [told, warned, stuck, planned, cleared] = [[], [], [], [], []];
  [looks, limits, asked, sweepLimits] = [[], [], [], []];
  answer = async () => {};
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
  const sweep = async (shards: readonly number[], limit?: number) => {
    asked.push([...shards]);
    sweepLimits.push(limit);
    await answer();
    return inPostgres.filter(({ shard }) => shards.includes(shard));
  };
  const log = {
    debug() {},
    info() {},
    warn: (event: string, fields?: object) =>
      void warned.push([event, fields && Reflect.get(fields, "shard")]),
    error: (event: string, fields?: object) =>
      void (event === "sweep.stuck" && stuck.push(fields && Reflect.get(fields, "shard"))),
  };
  scheduler = new Scheduler(
    { clock, log, schedule, store: { sweep }, holdings: { shards: held } },
    (event) => {
      if (event.kind === "shards_swept") told.push(`swept ${event.shards.join(" ")}`);
      else if (event.kind === "woken")
        told.push(event.wake.subscriptionId + (event.isSwept ? "*" : ""));
    },
  );
  running = scheduler.run(ended.signal);
  await Bun.sleep(0);
}

async function stop(): Promise<void> {
  ended.abort();
  await running;
}

/** Passes time in steps and runs due work. */
async function pass(ms: number, stepMs = 10): Promise<void> {
  await Bun.sleep(0);
  for (let n = 0; n < ms / stepMs; n++) {
    clock.advance(stepMs);
    await Bun.sleep(0);
  }
}
