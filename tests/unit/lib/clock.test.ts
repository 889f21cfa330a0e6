import { describe, expect, test } from "bun:test";

import { isoInstant, parseInstant, systemClock } from "../../../src/lib/clock.ts";

test("writes instants with milliseconds and an offset", () => {
  expect(isoInstant(new Date(Date.UTC(2026, 5, 1, 12)))).toBe("2026-06-01T12:00:00.000+00:00");
});

describe("an instant read from text", () => {
  const good = {
    "2026-06-01T12:00:00Z": "2026-06-01T12:00:00.000Z",
    "2026-06-01T12:00:00.5+02:00": "2026-06-01T10:00:00.500Z",
    "0001-01-01T00:00:00Z": "0001-01-01T00:00:00.000Z",
    "9999-12-31T23:59:59.999Z": "9999-12-31T23:59:59.999Z",
    "2024-02-29T23:59:59.999999-00:30": "2024-03-01T00:29:59.999Z",
  };
  for (const [text, expected] of Object.entries(good))
    test(`${text} is accepted`, () => expect(parseInstant(text)?.toISOString()).toBe(expected));
  const bad = [
    "2026-06-01T12:00:00",
    "2026-06-01",
    "2026-02-30T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-06-01T25:00:00Z",
    "0000-12-31T23:59:59Z",
    "0001-01-01T00:00:00+00:01",
    "9999-12-31T23:59:59-00:01",
    "now",
    "",
  ];
  for (const text of bad)
    test(`"${text}" is refused`, () => expect(parseInstant(text)).toBeUndefined());
});

test("a sleep ends at once when its signal aborts", async () => {
  const stop = new AbortController();
  const sleep = systemClock.sleep(60_000, stop.signal);
  stop.abort();
  await sleep;
  await systemClock.sleep(60_000, stop.signal);
});
