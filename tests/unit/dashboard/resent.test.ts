import { describe, expect, test } from "bun:test";

import {
  listedFilterOf,
  resentIn,
  resentText,
  sumOf,
} from "../../../src/dashboard/app/pages/webhooks/data/resent.ts";
import {
  numbersInParts,
  numbersText,
  readNumbers,
  readRanges,
} from "../../../src/outbox/event-numbers.ts";

const at = "2026-06-01T12:00:00.000Z";
const none = { pending: 0, waiting: 0, held: 0, delivered: 0, failed: 0, skipped: 0 };

describe("numbers of events", () => {
  test.each([
    [[], ""],
    [[7], "7"],
    [[31, 17, 18, 19, 18], "17-19,31"],
  ])("%j are written as %p", (numbers, text) => expect(numbersText(numbers)).toBe(text));

  test("are read up to 500, and in parts of any size", () => {
    expect(readNumbers("1-500")).toEqual([{ first: 1, last: 500 }]);
    expect(readNumbers("1-500,502")).toBeUndefined();
    expect(numbersInParts(readRanges("1-5,9,11-13") ?? [], 4)).toEqual(["1-4", "5,9,11-12", "13"]);
  });
});

describe("a resend in the address", () => {
  test("is read as it was written, and is the filter of its list", () => {
    const resent = { at, count: 4, numbers: readRanges("17-19,31") };
    const params = new URLSearchParams({ tab: "deliveries", resent: resentText(resent) });
    expect(params.get("resent")).toBe("1780315200000_4_17-19.31");
    expect(resentIn(params)).toEqual(resent);
    params.set("state", "failed");
    expect(listedFilterOf(params)).toEqual({ state: "failed", sequence: "17-19,31" });
  });

  test("of events without numbers, or of too many, lists what was attempted since", () => {
    // A minute before, because clocks differ.
    const since = "2026-06-01T11:59:00.000Z";
    const batch = new URLSearchParams({
      resent: resentText({ at, count: 4, numbers: undefined }),
    });
    const many = new URLSearchParams({
      resent: resentText({ at, count: 501, numbers: readRanges("1-501") }),
    });
    expect([batch, many].map(listedFilterOf)).toEqual([{ since }, { since }]);
  });

  test.each(["", "x", "1_2_3", "1780315200000", "1780315200000_x"])("is not %p", (text) =>
    expect(resentIn(new URLSearchParams({ resent: text }))).toBeUndefined(),
  );

  test("counts events that were not found yet as queued", () => {
    const parts = [
      { ...none, delivered: 2 },
      { ...none, failed: 1 },
    ];
    const resent = { at, count: 5, numbers: undefined };
    expect(sumOf(parts, resent)).toEqual({ ...none, delivered: 2, failed: 1, pending: 2 });
  });
});
