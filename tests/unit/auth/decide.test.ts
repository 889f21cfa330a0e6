import { expect, test } from "bun:test";

import { lockedUntil, retryAfterS } from "../../../src/auth/decide.ts";
import { addMs } from "../../../src/lib/clock.ts";

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

const now = new Date("2026-06-01T12:00:00.000Z");
