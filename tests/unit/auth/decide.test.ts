import { describe, expect, test } from "bun:test";

import {
  decideWrongAttempt,
  lockedUntil,
  retryAfterS,
  type SignInLock,
} from "../../../src/auth/decide.ts";
import { addMs } from "../../../src/lib/clock.ts";

describe("a wrong password", () => {
  test.each([
    [0, 1],
    [1, 2],
    [2, 3],
    [3, 4],
  ])("after %d others is counted without a lock", (failures, expected) => {
    const decision = decideWrongAttempt(lock({ failures }), now, SCHEDULE_S);
    expect(decision).toEqual({
      kind: "counted",
      lock: lock({ failures: expected, lastFailureAt: now }),
    });
  });

  test("is the first one if nothing is stored for the email", () => {
    const decision = decideWrongAttempt(undefined, now, SCHEDULE_S);
    expect(decision).toEqual({ kind: "counted", lock: lock({ failures: 1, lastFailureAt: now }) });
  });

  test.each([
    [0, 60],
    [1, 120],
    [2, 240],
    [3, 480],
    [4, 900],
    [5, 900],
    [50, 900],
  ])("is the fifth and locks, after %d locks for %d s", (locks, seconds) => {
    const until = addMs(now, seconds * 1000);
    const locked = lock({ failures: 0, locks: locks + 1, lockedUntil: until, lastFailureAt: now });
    expect(fifth(locks)).toEqual({ kind: "counted", lock: locked });
  });

  test("neither counts nor extends while sign-in is locked", () => {
    const until = addMs(now, 1);
    const decision = decideWrongAttempt(lock({ locks: 1, lockedUntil: until }), now, SCHEDULE_S);
    expect(decision).toEqual({ kind: "locked", until });
  });

  test("counts again from the instant at which the lock ends, and keeps the number of locks", () => {
    const decision = decideWrongAttempt(lock({ locks: 3, lockedUntil: now }), now, SCHEDULE_S);
    expect(decision).toEqual({
      kind: "counted",
      lock: lock({ failures: 1, locks: 3, lastFailureAt: now }),
    });
  });

  test("is the first one again 24 h after the last one", () => {
    const old = lock({ failures: 4, locks: 5, lastFailureAt: addMs(now, -DAY_MS) });
    const decision = decideWrongAttempt(old, now, SCHEDULE_S);
    expect(decision).toEqual({ kind: "counted", lock: lock({ failures: 1, lastFailureAt: now }) });
  });

  test("adds to the earlier ones until 1 ms before 24 h have passed", () => {
    const old = lock({ failures: 4, locks: 5, lastFailureAt: addMs(now, 1 - DAY_MS) });
    expect(decideWrongAttempt(old, now, SCHEDULE_S)).toMatchObject({ lock: { locks: 6 } });
  });
});

test("sign-in is locked until the last millisecond and open after it", () => {
  const until = addMs(now, 60_000);
  expect(lockedUntil({ lockedUntil: until }, addMs(until, -1))).toEqual(until);
  expect(lockedUntil({ lockedUntil: until }, until)).toBeUndefined();
  expect(lockedUntil(undefined, now)).toBeUndefined();
});

test.each([
  [1, 1],
  [1000, 1],
  [1001, 2],
  [60_000, 60],
])("with %d ms to go Retry-After is %d s", (ms, seconds) => {
  expect(retryAfterS(addMs(now, ms), now)).toBe(seconds);
});

const SCHEDULE_S = [60, 120, 240, 480, 900];

const DAY_MS = 24 * 60 * 60 * 1000;

const now = new Date("2026-06-01T12:00:00.000Z");

function lock(over: Partial<SignInLock> = {}): SignInLock {
  return { failures: 0, locks: 0, lockedUntil: null, lastFailureAt: addMs(now, -1000), ...over };
}

/** Decides the fifth wrong password, which locks, after the given number of earlier locks. */
function fifth(locks: number) {
  return decideWrongAttempt(lock({ failures: 4, locks }), now, SCHEDULE_S);
}
