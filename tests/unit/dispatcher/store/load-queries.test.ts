import { describe, expect, test } from "bun:test";

import { nextOf, type ReadEntry } from "../../../../dispatcher/store/load-queries.ts";

const entry = (sequence: number, { isLogged = true, isTest = false, gap = 0 } = {}) =>
  // `nextOf` looks at nothing else of an entry.
  ({ sequence, isLogged, isTest, gap }) as unknown as ReadEntry;
const row = (sequence: number) => entry(sequence, { isLogged: false });

/** Loads for a subscription whose offset is 10. */
function loaded(
  found: readonly ReadEntry[],
  { limit = 4, lastLogged = 10, except = 0, after = 0 } = {},
) {
  const exceptReviews = Array.from({ length: except }, (_, i) => i);
  const { entries, tests, isFull } = nextOf(
    found,
    { after, limit, exceptReviews },
    { settledThrough: 10, lastLogged },
  );
  return {
    entries: entries.map(({ sequence, source }) =>
      source?.kind === "missing" ? `${sequence} missing` : `${sequence}`,
    ),
    tests: tests.map(({ sequence }) => sequence),
    isFull,
  };
}

describe("the entries of a load", () => {
  test("are those of the log and of the rows in the order of the sequence, up to the limit, tests apart", () => {
    const found = [row(3), row(7), entry(11), entry(12), entry(13), entry(5, { isTest: true })];
    expect(loaded(found, { lastLogged: 13 })).toEqual({
      entries: ["3", "7", "11", "12"],
      tests: [5],
      isFull: false,
    });
  });

  test("stand in for events that the log lacks, but for no number that was never in the log", () => {
    const found = [entry(12, { gap: 1 }), entry(13), entry(18, { gap: 2 })];
    const entries = ["12", "13", "15 missing", "18"];
    expect(loaded(found, { lastLogged: 20, limit: 8 }).entries).toEqual([...entries, "20 missing"]);
    expect(loaded(found, { lastLogged: 18, limit: 8 }).entries).toEqual(entries);
    // A load that is as long as it may be says nothing of what comes behind it.
    expect(loaded(found, { lastLogged: 20, limit: 3 }).entries).toEqual(["12", "13", "15 missing"]);
    expect(loaded([entry(18, { gap: 2 })], { lastLogged: 18, after: 15 }).entries).toEqual(["18"]);
  });

  test("stand in for nothing while reviews are left out, whose events are not read", () => {
    expect(loaded([entry(14)], { lastLogged: 20, except: 1 }).entries).toEqual(["14"]);
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

  test("leaves nothing where the window reaches the end, where no review is left out, or where it is full", () => {
    const all = ["9", "11", "12", "13", "2000"];
    expect(loaded(found, { except: 1, limit: 8, lastLogged: 1_010 })).toMatchObject({
      entries: all,
      isFull: false,
    });
    expect(loaded(found, { limit: 8, lastLogged: 1_011 })).toMatchObject({ isFull: false });
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
