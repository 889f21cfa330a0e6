import { describe, expect, test } from "bun:test";

import {
  nextByReview,
  nextOf,
  type ReadEntry,
} from "../../../../dispatcher/store/loaded-entries.ts";

describe("the entries of a load", () => {
  test("are those of the log and of the rows in the order of the sequence, up to the limit, tests apart", () => {
    const test5 = entry(5, { isTest: true, isLogged: false });
    const found = [row(3), row(7), entry(11), entry(12), entry(13), test5];
    expect(loaded(found, { lastLogged: 13 })).toEqual({
      entries: ["3", "7", "11", "12"],
      tests: [5],
      isFull: false,
    });
  });

  test("end with a placeholder for an event that the log lacks, but not for a number that was never in the log", () => {
    const whole = [entry(12, { gap: 1, previous: 10 }), entry(13)];
    expect(loaded(whole, { lastLogged: 20, limit: 8 }).entries).toEqual(["12", "13", "20 missing"]);
    // A load that reaches its limit says nothing about what follows.
    expect(loaded(whole, { lastLogged: 20, limit: 2 }).entries).toEqual(["12", "13"]);
    // 14 and 15 were removed; 16 and 17 were never there.
    const found = [...whole, entry(18, { gap: 2, previous: 13 }), row(19)];
    expect(loaded(found, { lastLogged: 20, limit: 8 }).entries).toEqual(["12", "13", "15 missing"]);
    expect(loaded([entry(18, { gap: 2 })], { lastLogged: 18, after: 15 }).entries).toEqual(["18"]);
  });

  test("are cut before a removed event while reviews are left out, and have its placeholder only once", () => {
    const found = [entry(11), entry(14, { previous: 12 }), row(15)];
    expect(loaded(found, { lastLogged: 14, except: 1 }).entries).toEqual(["11", "13 missing"]);
    expect(loaded(found, { lastLogged: 2_000, except: [null] })).toMatchObject({
      entries: ["11"],
      isFull: false,
    });
    // The log ends with 14 although 20 was logged.
    expect(loaded([entry(14)], { lastLogged: 20, except: 1, lastFound: 14 }).entries).toEqual([
      "14",
      "20 missing",
    ]);
    expect(loaded([entry(14)], { lastLogged: 20, except: 1, lastFound: 20 }).entries).toEqual([
      "14",
    ]);
  });
});

describe("a load by review", () => {
  test("lets due retries and other entries take turns, each in their order", () => {
    const due = (sequence: number, ms: number) =>
      entry(sequence, { isLogged: false, dueAt: new Date(ms), isFirstOnly: true });
    const found = [due(4, 10), due(3, 20), due(5, 30), row(6), entry(11), entry(12)];
    const all = { except: 1, lastLogged: 12 } as const;
    expect(loaded(found, { ...all, limit: 8 }).entries).toEqual(["4", "6", "3", "11", "5", "12"]);
    expect(loaded(found, { ...all, limit: 3 }).entries).toEqual(["4", "6", "3"]);
  });
});

describe("a load that leaves out reviews, of a log that goes on behind the window of 1,000", () => {
  const found = [row(9), entry(11), entry(12), row(13), row(2_000)];

  test("leaves the rows behind its last event for later, and says that there may be more", () => {
    expect(loaded(found, { except: 1, limit: 8, lastLogged: 1_011 })).toEqual({
      entries: ["9", "11", "12"],
      tests: [],
      isFull: true,
    });
    expect(loaded([row(9), row(11)], { except: 1, limit: 8, lastLogged: 1_011 })).toEqual({
      entries: ["9"],
      tests: [],
      isFull: true,
    });
  });

  test("leaves nothing where the window reaches the end or where it is full", () => {
    const all = ["9", "11", "12", "13", "2000"];
    expect(loaded(found, { except: 1, limit: 8, lastLogged: 1_010 })).toMatchObject({
      entries: all,
      isFull: false,
    });
    expect(loaded(found.slice(1, 4), { except: 1, limit: 2, lastLogged: 1_011 })).toMatchObject({
      entries: ["11", "12"],
      isFull: false,
    });
    expect(
      loaded([row(9), entry(11), row(12)], { except: 1, limit: 1, lastLogged: 1_011 }),
    ).toEqual({
      entries: ["9"],
      tests: [],
      isFull: false,
    });
  });
});

const entry = (sequence: number, fields: Partial<ReadEntry> = {}) => {
  const { gap = 0 } = fields;
  // `nextOf` looks at nothing else of an entry.
  return {
    sequence,
    isLogged: true,
    isTest: false,
    dueAt: null,
    bytes: 1,
    gap,
    previous: sequence - gap - 1,
    facts: {},
    ...fields,
  } as unknown as ReadEntry;
};

const row = (sequence: number) => entry(sequence, { isLogged: false });

/** Loads for a subscription whose offset is 10; by review if some are left out. */
function loaded(
  found: readonly ReadEntry[],
  {
    limit = 4,
    lastLogged = 10,
    except = 0,
    after = 0,
    lastFound = lastLogged,
  }: {
    limit?: number;
    lastLogged?: number;
    except?: number | null[];
    after?: number;
    lastFound?: number;
  } = {},
) {
  const exceptReviews =
    typeof except === "number" ? Array.from({ length: except }, (_, i) => i) : except;
  const next = exceptReviews.length > 0 ? nextByReview : nextOf;
  const { entries, tests, isFull } = next(
    found,
    { after, limit, maxBytes: Infinity, exceptReviews },
    { settledThrough: 10, lastLogged, lastFound },
  );
  return {
    entries: entries.map(({ sequence, facts }) =>
      facts === undefined ? `${sequence} missing` : `${sequence}`,
    ),
    tests: tests.map(({ sequence }) => sequence),
    isFull,
  };
}
