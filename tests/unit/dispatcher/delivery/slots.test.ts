import { beforeEach, describe, expect, test } from "bun:test";

import { SLOW_HOSTS, Slots, type Slot } from "../../../../dispatcher/delivery/slots.ts";
import { LIMITS } from "../../../../dispatcher/delivery/limits.ts";
import { createFakeClock, type FakeClock } from "../../../support/clock.ts";

test("starts no more requests to a host than its bound, and the next one when one has ended", () => {
  acquire("a", 4);
  expect(started).toHaveLength(3);
  end("a");
  expect(started).toHaveLength(4);
});

test("a full host does not hold up another one", () => {
  acquire("a", 9);
  acquire("b");
  expect(started.at(-1)).toBe("b");
});

test("starts no more requests than its bound over all hosts, and lets the waiting hosts take turns", () => {
  for (let host = 0; host < 8; host++) acquire(`h${host}`);
  acquire("x", 2);
  acquire("y", 2);
  expect(started).toHaveLength(8);
  for (let host = 0; host < 4; host++) end(`h${host}`);
  expect(started.slice(8)).toEqual(["x", "y", "x", "y"]);
});

test("starts nothing while it is paused", () => {
  slots.pause();
  acquire("a", 2);
  expect(started).toEqual([]);
  slots.resume();
  expect(started).toEqual(["a", "a"]);
});

test("forgets everything when it is cleared", () => {
  acquire("a", 5);
  slots.clear();
  started = [];
  acquire("a", 3);
  expect(started).toHaveLength(3);
  for (const slot of running) slots.release(slot);
  expect(started).toHaveLength(3);
});

test("waiting requests of a shard can be cancelled, and the others keep their turns", () => {
  acquire("a", 3);
  acquire("a", 1, 7);
  acquire("a", 1, 8);
  slots.cancelWaiting(7);
  expect(cancelled).toEqual(["a"]);
  end("a");
  end("a");
  expect(started).toHaveLength(4);
});

describe("a host that hangs", () => {
  test("takes no slot from those that answer, known to hang or not known", () => {
    makeFast("well");
    for (let host = 0; host < 8; host++) acquire(`hanging${host}`);
    acquire("hanging", 2);
    acquire("well", 3);
    expect(started.filter((host) => host === "well")).toHaveLength(3);
    expect(started).not.toContain("hanging");
  });

  test("though it answered before, gives up its place among those that answer within about a second", async () => {
    const hosts = Array.from({ length: 8 }, (_, n) => `h${n}`);
    makeFast("well", ...hosts);
    for (const host of hosts) acquire(host);
    acquire("well");
    expect(started).not.toContain("well");
    for (let ms = 0; ms < 1_250; ms += LOOK_MS) await pass(LOOK_MS);
    expect(started).toContain("well");
    acquire("h1");
    expect(started.filter((host) => host === "h1")).toHaveLength(1);
  });

  test("is fast again after its first response within a second", async () => {
    acquire("a");
    await pass(3_000);
    end("a");
    acquire("a");
    end("a");
    for (let host = 0; host < 8; host++) acquire(`hanging${host}`);
    acquire("a");
    expect(started.at(-1)).toBe("a");
  });
});

describe("a saturated host group", () => {
  test("is a host with enough waiting requests, until half of them have started", () => {
    acquire("a", 4);
    expect(slots.saturatedGroupOf("a")).toBeUndefined();
    acquire("a");
    expect([slots.saturatedGroupOf("a"), slots.saturatedGroupOf("b")]).toEqual(["a", undefined]);
    expect(slots.hasDrained("a")).toBe(false);
    end("a");
    end("a");
    expect(slots.hasDrained("a")).toBe(true);
  });

  test("is that of all hosts which are not known to be fast, when enough requests wait", () => {
    makeFast("well");
    for (let host = 0; host < 12; host++) acquire(`h${host}`);
    expect([slots.saturatedGroupOf("other"), slots.saturatedGroupOf("well")]).toEqual([
      SLOW_HOSTS,
      undefined,
    ]);
  });
});

test("a host is not slow while its request has a slot but has not begun", async () => {
  makeFast("a");
  slots.acquire("a", { shard: 0, bytes: 0, start: () => {}, cancel: () => {} });
  for (let host = 0; host < 9; host++) acquire(`hanging${host}`);
  await pass(3_000);
  acquire("a");
  expect(started.at(-1)).toBe("a");
});

const LOOK_MS = 250;

const limits = { ...LIMITS, requests: 8, requestsPerHost: 3, waitingPerHost: 2, waitingSlow: 4 };

let clock: FakeClock;

let slots: Slots;

let started: string[];

let running: Slot[];

let cancelled: string[];

beforeEach(() => {
  clock = createFakeClock();
  slots = new Slots(clock, limits);
  [started, running, cancelled] = [[], [], []];
  slots.resume();
});

function acquire(host: string, count = 1, shard = 0, bytes = 0): void {
  for (let n = 0; n < count; n++) {
    slots.acquire(host, {
      shard,
      bytes,
      start: (slot) => {
        slot.startedMs = clock.monotonicMs();
        started.push(host);
        running.push(slot);
      },
      cancel: () => void cancelled.push(host),
    });
  }
}

/** Ends the first request to a host. */
function end(host: string): void {
  const at = running.findIndex((slot) => slot.host === host);
  const [slot] = running.splice(at, 1);
  if (slot !== undefined) slots.release(slot);
}

/** Lets hosts answer at once, so that they are known to be fast. */
function makeFast(...hosts: string[]): void {
  for (const host of hosts) {
    acquire(host);
    end(host);
  }
  started = [];
}

async function pass(ms: number): Promise<void> {
  clock.advance(ms);
  await Bun.sleep(0);
}
