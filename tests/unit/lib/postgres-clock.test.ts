import { describe, expect, test } from "bun:test";

import { addMs } from "../../../src/lib/clock.ts";
import { LOOK_MS, MAX_SKEW_MS, PostgresClock } from "../../../src/lib/postgres-clock.ts";
import { createFakeClock } from "../../support/clock.ts";

describe("the time of a process", () => {
  test.each([0, 40 * DAY_MS, -40 * DAY_MS])(
    "is Postgres' time on a machine that is %d ms ahead",
    async (aheadMs) => {
      const { clock, machine } = await open(aheadMs);
      machine.advance(1_234);
      expect(clock.now()).toEqual(addMs(AT, 1_234));
      expect(clock.skewMs).toBe(aheadMs);
    },
  );

  test("does not move when the machine's clock is set", async () => {
    const { clock, machine } = await open(0);
    const before = clock.now();
    machine.set(addMs(machine.now(), -3_600_000));
    expect(clock.now()).toEqual(before);
    expect(clock.skewMs).toBe(-3_600_000);
  });

  test("goes on while Postgres is away, and follows it again afterwards", async () => {
    const { clock, machine, server, lines } = await open(0);
    const stop = new AbortController();
    const following = clock.follow(stop.signal);
    server.isAway = true;
    machine.advance(LOOK_MS);
    while (server.failures === 0) await Promise.resolve();
    expect(clock.now()).toEqual(addMs(AT, LOOK_MS));
    server.isAway = false;
    server.aheadMs = HOUR_MS;
    for (let n = 0; n < 100 && lines.length === 0; n++) {
      machine.advance(LOOK_MS);
      await Promise.resolve();
    }
    expect(lines).toEqual(["clock.skewed"]);
    stop.abort();
    await following;
  });
});

describe("a difference of the clocks", () => {
  test("is logged above the bound, once when it begins and once when it ends", async () => {
    const { clock, server, lines } = await open(MAX_SKEW_MS);
    expect([clock.agrees, lines]).toEqual([true, []]);
    server.aheadMs = -2;
    await clock.look();
    await clock.look();
    expect([clock.agrees, lines]).toEqual([false, ["clock.skewed"]]);
    server.aheadMs = MAX_SKEW_MS;
    await clock.look();
    await clock.look();
    expect([clock.agrees, lines]).toEqual([true, ["clock.skewed", "clock.agreed"]]);
  });
});

describe("a reported time", () => {
  test.each([HOUR_MS, -HOUR_MS])(
    "replaces the time of a machine that is wrong by %d ms",
    (skewMs) => {
      const own = createFakeClock(addMs(AT, skewMs));
      const clock = new PostgresClock(own);
      expect(clock.now()).toEqual(addMs(AT, skewMs));
      clock.heard(AT, own.monotonicMs());
      own.advance(500);
      expect(clock.now()).toEqual(addMs(AT, 500));
    },
  );

  test("follows a step of Postgres in either direction", () => {
    const own = createFakeClock(AT);
    const clock = new PostgresClock(own);
    for (const stepMs of [0, HOUR_MS, -HOUR_MS]) {
      clock.heard(addMs(AT, stepMs), own.monotonicMs());
      expect(clock.now()).toEqual(addMs(AT, stepMs));
    }
  });

  test("is never ahead of Postgres: a slow answer counts as old as it can be", () => {
    const own = createFakeClock(AT);
    const clock = new PostgresClock(own);
    const askedMs = own.monotonicMs();
    own.advance(300);
    clock.heard(addMs(AT, 100), askedMs);
    expect(clock.now()).toEqual(addMs(AT, 100));
  });

  test("does not move the clock if the answer is slow and consistent with it", () => {
    const own = createFakeClock(AT);
    const clock = new PostgresClock(own);
    clock.heard(AT, own.monotonicMs());
    const askedMs = own.monotonicMs();
    own.advance(2_000);
    clock.heard(addMs(AT, 100), askedMs);
    expect(clock.now()).toEqual(addMs(AT, 2_000));
  });
});

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

const AT = new Date("2026-06-01T12:00:00.000Z");

/** A machine and a server with clocks that advance together and can be set separately. Answers take no time. */
async function open(machineAheadMs: number) {
  const machine = createFakeClock(addMs(AT, machineAheadMs));
  const lines: string[] = [];
  const note = (event: string) => void lines.push(event);
  const log = { debug: note, info: note, warn: note, error: note };
  const server = { aheadMs: 0, isAway: false, failures: 0 };
  const ask = async () => {
    if (server.isAway) {
      server.failures += 1;
      throw new Error("away");
    }
    return addMs(AT, machine.monotonicMs() + server.aheadMs);
  };
  const clock = await PostgresClock.open({ machine, log, ask });
  return { clock, machine, server, lines };
}
