import { expect, test } from "bun:test";

import { PostgresClock } from "../../../../dispatcher/shards/postgres-clock.ts";
import { addMs } from "../../../../src/lib/clock.ts";
import { createFakeClock } from "../../../support/clock.ts";

const HOUR_MS = 3_600_000;
const start = new Date("2026-06-01T12:00:00.000Z");

test.each([HOUR_MS, -HOUR_MS])("a clock that is wrong by %d ms is not heard any more", (skewMs) => {
  const own = createFakeClock(addMs(start, skewMs));
  const clock = new PostgresClock(own);
  expect(clock.now()).toEqual(addMs(start, skewMs));
  clock.heard(start, own.monotonicMs());
  own.advance(500);
  expect(clock.now()).toEqual(addMs(start, 500));
});

test("it follows a step of Postgres in either direction", () => {
  const own = createFakeClock(start);
  const clock = new PostgresClock(own);
  for (const stepMs of [0, HOUR_MS, -HOUR_MS]) {
    clock.heard(addMs(start, stepMs), own.monotonicMs());
    expect(clock.now()).toEqual(addMs(start, stepMs));
  }
});

test("it is never ahead of Postgres: an answer that took long is as old as it may be", () => {
  const own = createFakeClock(start);
  const clock = new PostgresClock(own);
  const askedMs = own.monotonicMs();
  own.advance(300);
  clock.heard(addMs(start, 100), askedMs);
  expect(clock.now()).toEqual(addMs(start, 100));
});

test("a slow answer does not move it while it can be right", () => {
  const own = createFakeClock(start);
  const clock = new PostgresClock(own);
  clock.heard(start, own.monotonicMs());
  const askedMs = own.monotonicMs();
  own.advance(2_000);
  clock.heard(addMs(start, 100), askedMs);
  expect(clock.now()).toEqual(addMs(start, 2_000));
});
