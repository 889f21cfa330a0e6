import { beforeEach, describe, expect, test } from "bun:test";

import { Scheduler } from "../../../../dispatcher/shards/scheduler.ts";
import { SWEEP_MS, type SweptSubscription } from "../../../../dispatcher/store/sweep.ts";
import { createFakeClock, type FakeClock } from "../../../support/clock.ts";

describe("a sweep", () => {
  test("queries a few shards at once and reports them before it continues", async () => {
    await runFor(SWEEP_MS);
    expect(asked).toEqual([query(0), query(1), query(2)]);
    expect(told.slice(15, 18)).toEqual(["of 15", `swept ${query(0).join(" ")}`, "of 16"]);
    expect(scheduler.lagMs).toBe(4_700);
  });

  test("of a claim covers only the claimed shards, and runs at once: first a little of each, then everything", async () => {
    scheduler.claimed([7, 9, 1, 2, 3]);
    await runFor(0);
    expect(asked).toEqual([
      [7, 9, 1, 2, 3],
      [7, 9, 1, 2, 3],
    ]);
    expect(limits).toEqual([16, undefined]);
    expect(told.filter((one) => one.startsWith("swept"))).toEqual(["swept 7 9 1 2 3"]);
    expect(scheduler.lagMs).toBe(0);
  });

  test("of a claim does not wait for the one of all shards", async () => {
    const first = Promise.withResolvers<void>();
    answer = () => first.promise;
    void scheduler.run(stop.signal);
    clock.advance(SWEEP_MS);
    await Bun.sleep(0);
    answer = async () => {};
    scheduler.claimed([7, 9]);
    await Bun.sleep(0);
    stop.abort();
    expect(asked).toEqual([query(0), [7, 9], [7, 9]]);
    expect(told).toEqual(["of 7", "of 9", "of 7", "of 9", "swept 7 9"]);
    first.resolve();
  });

  test("does not call a shard swept that was claimed anew during the query", async () => {
    answer = async () => void held.set(7, { epoch: asked.length });
    scheduler.claimed([7, 9]);
    await runFor(0);
    expect(told.filter((one) => one.startsWith("swept"))).toEqual(["swept 9"]);
  });

  test("asks for no shard that is held no more, and does not call it swept", async () => {
    scheduler.claimed([7, 99]);
    await runFor(0);
    expect(asked).toEqual([[7], [7]]);
    expect(told.filter((one) => one.startsWith("swept"))).toEqual(["swept 7"]);
  });

  test("that cannot reach Postgres is made again, of the same shards", async () => {
    answer = async () => {
      throw Object.assign(new Error("out of reach"), { code: "ECONNREFUSED" });
    };
    scheduler.claimed([7]);
    void scheduler.run(stop.signal);
    await Bun.sleep(0);
    answer = async () => {};
    clock.advance(SWEEP_MS);
    await Bun.sleep(0);
    stop.abort();
    expect(told).toContain("swept 7");
    expect(told).toContain(`swept ${query(1).join(" ")}`);
  });

  test("of failing shards leaves out no other shard, and retries the failing ones individually", async () => {
    const failing = new Set([8, 9]);
    answer = async () => {
      if (asked.at(-1)?.some((shard) => failing.has(shard))) throw new Error("damaged");
    };
    scheduler.claimed([8, 10]);
    const running = scheduler.run(stop.signal);
    await passing(2 * SWEEP_MS);
    const swept = () =>
      told.filter((one) => one.startsWith("swept")).flatMap((one) => one.split(" ").slice(1));
    const others = [...held.keys()].filter((shard) => !failing.has(shard));
    expect(new Set(swept())).toEqual(new Set(others.map(String)));
    expect(new Set(stuck)).toEqual(new Set([8, 9]));
    failing.delete(8);
    // A failing shard is retried after 30 s at most.
    await passing(30_000);
    expect(swept()).toContain("8");
    expect(swept()).not.toContain("9");
    stop.abort();
    await running;
  });

  test("that reaches nothing ends with the dispatcher", async () => {
    answer = async () => {
      throw Object.assign(new Error("out of reach"), { code: "ECONNREFUSED" });
    };
    const running = scheduler.run(stop.signal);
    await passing(SWEEP_MS);
    stop.abort();
    await running;
    expect(told).toEqual([]);
  });
});

async function passing(ms: number): Promise<void> {
  for (let n = 0; n < ms / 100; n++) {
    clock.advance(100);
    await Bun.sleep(0);
  }
}

async function runFor(ms: number): Promise<void> {
  void scheduler.run(stop.signal);
  clock.advance(ms);
  await Bun.sleep(0);
  stop.abort();
}

const claim = { epoch: 1 };

const SHARDS = 48;

/** The shards of the n-th query of a sweep, from 0. */
const query = (n: number) => Array.from({ length: 16 }, (_, i) => 16 * n + i);

let clock: FakeClock;

let stop: AbortController;

let held: Map<number, unknown>;

let asked: number[][];

/** The limit of each query. */
let limits: (number | undefined)[];

let told: string[];

/** The shards that were logged as stuck. */
let stuck: unknown[];

/** Runs before the response to each query. */
let answer: () => Promise<void>;

let scheduler: Scheduler;

beforeEach(() => {
  clock = createFakeClock();
  stop = new AbortController();
  held = new Map(Array.from({ length: SHARDS }, (_, shard) => [shard, claim]));
  asked = [];
  limits = [];
  told = [];
  stuck = [];
  answer = async () => {};
  const sweep = async (shards: readonly number[], limit?: number): Promise<SweptSubscription[]> => {
    asked.push([...shards]);
    limits.push(limit);
    await answer();
    return shards.map((shard) => ({
      subscriptionId: `of ${shard}`,
      shard,
      dueInMs: 0,
      waitedMs: shard * 100,
    }));
  };
  scheduler = new Scheduler(
    {
      clock,
      log: {
        debug() {},
        info() {},
        warn() {},
        error: (event, fields) => void (event === "sweep.stuck" && stuck.push(fields?.["shard"])),
      },
      holdings: { shards: held },
      schedule: {
        plan: async () => {},
        clear: async () => {},
        takeDue: async () => ({ due: [], nextAt: undefined }),
        onWake: async () => {},
      },
      store: { sweep },
    },
    (event) => {
      if (event.kind === "woken") told.push(event.wake.subscriptionId);
      if (event.kind === "shards_swept") told.push(`swept ${event.shards.join(" ")}`);
    },
  );
});
