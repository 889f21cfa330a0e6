import { describe, expect, test } from "bun:test";

import { toFieldErrors } from "../../../src/http/rules.ts";
import { readStatsRange, statsErrors } from "../../../src/webhooks/stats-model.ts";
import {
  binMs,
  bucketFloor,
  eventSlices,
  EXACT_MS,
  latencyOf,
  segmentsOf,
  slicesOf,
  scaleUp,
  tally,
  type Range,
} from "../../../src/webhooks/stats.ts";

describe("a bin", () => {
  test("is exact up to 19 ms, and above that its middle is within 5 % of its durations", () => {
    expect([0, 1, 19].map(binMs)).toEqual([0, 1, 19]);
    for (const ms of [20, 99, 1_000, 15_000]) {
      const bin = EXACT_MS + Math.floor(Math.log(ms / EXACT_MS) / Math.log(1.1));
      expect(Math.abs(binMs(bin) - ms) / ms).toBeLessThan(0.06);
    }
  });
});

describe("the latency", () => {
  test("is read by the nearest rank", () => {
    const counts = Array.from({ length: 10 }, (_, bin) => ({ bin, count: 10 })).toReversed();
    expect(latencyOf(counts)).toEqual({ p50: 4, p95: 9, p99: 9 });
    expect(latencyOf([{ bin: 3, count: 1 }])).toEqual({ p50: 3, p95: 3, p99: 3 });
  });

  test("is null without attempts", () => {
    expect(latencyOf([])).toEqual({ p50: null, p95: null, p99: null });
  });
});

describe("attempts by event", () => {
  const since = new Date("2026-06-01T00:00:00Z");
  const range = (steps: number) => ({
    since,
    until: new Date(since.getTime() + steps * 300_000),
    stepMs: 300_000,
    origin: since,
  });
  const late = new Date("2027-06-01T00:00:00Z");

  test("are read up to 500 of a step, and 20,000 of all steps", () => {
    expect(eventSlices(range(40), late).limit).toBe(500);
    expect(eventSlices(range(41), late).limit).toBe(487);
    expect(eventSlices(range(1_000), late).limit).toBe(20);
    expect(eventSlices(range(2), late).steps).toHaveLength(2);
  });

  test("are not read for future steps", () => {
    expect(eventSlices(range(10), new Date(since.getTime() + 299_999)).steps).toHaveLength(2);
    expect(eventSlices(range(10), new Date(since.getTime() - 300_000)).steps).toEqual([]);
  });

  test("are the counts of the sample, scaled up if only some attempts were read", () => {
    const read = [
      { event: "a", count: 300 },
      { event: "b", count: 200 },
    ];
    expect(scaleUp(read, 500)).toEqual({ a: 300, b: 200 });
    expect(scaleUp(read, 1_000)).toEqual({ a: 600, b: 400 });
    expect(scaleUp(read, 499)).toEqual({ a: 300, b: 200 });
    expect(scaleUp([], 7)).toEqual({});
  });
});

test("an interrupted attempt counts neither as success nor as failure", () => {
  const rows = [
    { outcome: "delivered", bin: 5, count: 3 },
    { outcome: "retry", bin: 7, count: 1 },
    { outcome: "failed", bin: 7, count: 1 },
    { outcome: "interrupted", bin: 9, count: 50 },
  ];
  expect(tally(rows)).toEqual({ successes: 3, failures: 2, latency: { p50: 5, p95: 7, p99: 7 } });
});

test.each([
  ["2026-06-01T12:04:59.999Z", "2026-06-01T12:00:00.000Z"],
  ["2026-06-01T12:05:00.000Z", "2026-06-01T12:05:00.000Z"],
  ["1969-12-31T23:59:00.000Z", "1969-12-31T23:55:00.000Z"],
])("the bucket of %s begins at %s", (at, expected) => {
  expect(bucketFloor(new Date(at)).toISOString()).toBe(expected);
});

describe("a range in buckets", () => {
  const at = (text: string) => new Date(`2026-06-${text}Z`);
  const show = (range: Range, counted: Date) =>
    segmentsOf(range, counted).map(({ since, until, levelMs }) =>
      [since, until]
        .map((one) => one.toISOString().slice(8, 16))
        .concat(levelMs === null ? "attempts" : String(levelMs / 1000))
        .join(" "),
    );
  const onePoint = { stepMs: 10 * 86_400_000, origin: at("01T00:00:00") };

  test("uses the longest buckets in the middle, and attempts at the ends", () => {
    const range = { since: at("01T22:53:30"), until: at("04T02:07:10"), ...onePoint };
    expect(show(range, at("09T00:00:00"))).toEqual([
      "01T22:53 01T22:55 attempts",
      "01T22:55 01T23:00 300",
      "01T23:00 02T00:00 3600",
      "02T00:00 04T00:00 86400",
      "04T00:00 04T02:00 3600",
      "04T02:00 04T02:05 300",
      "04T02:05 04T02:07 attempts",
    ]);
  });

  test("uses no bucket that is not counted yet", () => {
    const range = { since: at("02T00:00:00"), until: at("03T00:00:00"), ...onePoint };
    expect(show(range, at("02T01:07:00"))).toEqual([
      "02T00:00 02T01:00 3600",
      "02T01:00 02T01:05 300",
      "02T01:05 03T00:00 attempts",
    ]);
    expect(show(range, at("01T00:00:00"))).toEqual(["02T00:00 03T00:00 attempts"]);
  });

  test("uses no bucket that crosses the end of a step", () => {
    const origin = at("02T00:00:00");
    const range = { since: origin, until: at("04T00:00:00"), stepMs: 2 * 3_600_000, origin };
    expect(show(range, at("09T00:00:00"))).toEqual(["02T00:00 04T00:00 3600"]);
    expect(show({ ...range, stepMs: 600_000 }, at("09T00:00:00"))).toEqual([
      "02T00:00 04T00:00 300",
    ]);
  });
});

describe("the range of the charts", () => {
  const now = new Date("2026-06-01T12:30:00Z");
  const read = (query: Parameters<typeof readStatsRange>[0]) => {
    const faults = Object.keys(toFieldErrors(statsErrors(query, now)));
    if (faults.length > 0) return faults;
    const { since, until, stepMs } = readStatsRange(query, now);
    return [since.toISOString(), until.toISOString(), stepMs / 1000];
  };

  test("is the last day in hours by default, extended to whole hours", () => {
    expect(read({})).toEqual(["2026-05-31T12:00:00.000Z", "2026-06-01T13:00:00.000Z", 3600]);
  });

  test("has at most 1,000 points", () => {
    const until = "2026-06-01T12:00:00Z";
    const before = (points: number) => new Date(Date.parse(until) - points * 300_000).toISOString();
    expect(read({ since: before(1_000), until, step: 300 })).toHaveLength(3);
    expect(read({ since: before(1_001), until, step: 300 })).toEqual(["step"]);
  });

  test("has at most 31 days, within the years that ULIDs and PostgreSQL have", () => {
    const days = (until: string) => read({ since: "2026-05-01T00:00:00Z", until });
    expect(days("2026-06-01T00:00:00Z")).toHaveLength(3);
    expect(days("2026-06-01T00:00:00.001Z")).toEqual(["since"]);
    expect(read({ since: "0001-01-01T00:00:00Z", until: "9999-12-31T23:59:59Z" })).toEqual([
      "since",
      "step",
    ]);
    expect(read({ until: "9999-12-31T23:59:59Z" })).toEqual([
      "9999-12-30T23:00:00.000Z",
      "9999-12-31T00:00:00.000Z",
      3600,
    ]);
  });

  test("is validated by its readable fields, without invented defaults", () => {
    const [late, early] = ["2026-06-01T12:00:00Z", "2026-05-01T12:00:00Z"];
    const named = (query: Parameters<typeof statsErrors>[0]) =>
      Object.keys(toFieldErrors(statsErrors(query, now)));
    expect(named({ since: late, until: early, step: undefined })).toEqual(["since"]);
    expect(named({ since: undefined, until: late, step: 300 })).toEqual([]);
    expect(named({ since: early, until: undefined, step: 300 })).toEqual([]);
  });

  test("has a beginning and an end", () => {
    expect(read({ since: "2026-06-01T12:30:00Z" })).toEqual(["since"]);
    expect(read({ since: "0001-01-01T00:00:00Z", until: "1970-01-02T00:00:00Z" })).toEqual([
      "1970-01-01T00:00:00.000Z",
      "1970-01-02T00:00:00.000Z",
      3600,
    ]);
  });
});

describe("the slices of uncounted attempts", () => {
  const now = new Date("2026-06-01T12:00:00.000Z");
  const before = (ms: number) => new Date(now.getTime() - ms);
  const lengths = (since: Date, until: Date) =>
    slicesOf({ since, until }, now).map((one) => one.until.getTime() - one.since.getTime());

  test("last at least a minute, and are at most eight", () => {
    expect(lengths(before(150_000), now)).toEqual([60_000, 60_000, 30_000]);
    expect(lengths(before(480_000), now)).toEqual(Array.from({ length: 8 }, () => 60_000));
    expect(lengths(before(480_001), now)).toHaveLength(8);
    expect(lengths(before(86_400_000), now)).toEqual(Array.from({ length: 8 }, () => 10_800_000));
  });

  test("end a minute ahead, as far as clocks may differ", () => {
    expect(lengths(before(30_000), before(-86_400_000))).toEqual([60_000, 30_000]);
    expect(lengths(before(-61_000), before(-86_400_000))).toEqual([]);
  });
});
