import { expect, test } from "bun:test";

import { decodeTime, isValid } from "ulid";

import { newEventId } from "../../../src/outbox/event-id.ts";

const AT = new Date("2026-06-01T12:00:00.123Z");

test("ids of one instant are ULIDs of it, and no two begin alike in what follows the time", () => {
  const ids = Array.from({ length: 10_000 }, () => newEventId(AT));
  expect(ids.filter((id) => !isValid(id))).toEqual([]);
  expect(new Set(ids.map(decodeTime))).toEqual(new Set([AT.getTime()]));
  expect(new Set(ids.map((id) => id.slice(10, 20))).size).toBe(ids.length);
});

test("each character of the random part is drawn from all 32, about as often", () => {
  const DRAWS = 32_000;
  const counts = Array.from({ length: 16 }, () => new Map<string, number>());
  for (let i = 0; i < DRAWS; i++) {
    const id = newEventId(AT);
    for (const [at, count] of counts.entries()) {
      const char = id.charAt(10 + at);
      count.set(char, (count.get(char) ?? 0) + 1);
    }
  }
  for (const count of counts) {
    expect(count.size).toBe(32);
    // A thousand are expected; 8 standard deviations off would come once in 10^12 runs.
    for (const often of count.values()) expect(Math.abs(often - DRAWS / 32)).toBeLessThan(250);
  }
});
