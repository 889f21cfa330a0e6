import { beforeEach, describe, expect, test } from "bun:test";

import type { Entry } from "../../../../dispatcher/actor/event.ts";
import {
  complete,
  markInDoubt,
  InDoubtAttempts,
  InDoubtShards,
  isResolved,
  resolve,
} from "../../../../dispatcher/actor/in-doubt.ts";
import { MAX_UNRECORDED } from "../../../../dispatcher/actor/lane.ts";
import { Actor, MAX_TESTS } from "../../../../dispatcher/actor/state.ts";
import { DrivenActor, entry, load, sends, start } from "../../../support/actor.ts";

test("the first 17 entries of each lane may have been sent, and no other", () => {
  show(1, upTo(64));
  show(2, [70, 71]);
  expect([...inDoubt.marked]).toEqual([...upTo(17), 70, 71]);
});

test("entries of a lane in later loads are counted on, but none is counted twice", () => {
  show(1, upTo(10));
  inDoubt.marked.clear();
  show(1, upTo(30));
  expect([...inDoubt.marked]).toEqual([11, 12, 13, 14, 15, 16, 17]);
});

test("the first entries of 4,096 lanes are marked, which is far more than can be without a record", () => {
  inDoubt.lastSequence = 5_000;
  for (const n of upTo(4_097)) show(n, [n]);
  expect([...inDoubt.marked]).toEqual(upTo(4_096));
  expect(inDoubt.marked.size).toBeGreaterThan(MAX_UNRECORDED);
});

test("a retry that was due at the takeover may have been made", () => {
  show(1, [1], takeover);
  expect([...inDoubt.marked]).toEqual([1]);
});

test("a head with a later retry was not sent, but the entries behind it may have been", () => {
  show(1, [1], at(1));
  show(1, [2, 3]);
  expect([...inDoubt.marked]).toEqual([2, 3]);
});

test("entries appended after the takeover were not sent", () => {
  show(1, [100, 101]);
  expect([...inDoubt.marked]).toEqual([100]);
});

test("nothing is marked once every lane was seen; it is resolved when the last was recorded", () => {
  show(1, [1]);
  complete(inDoubt);
  show(9, [2]);
  expect([...inDoubt.marked]).toEqual([1]);
  expect(isResolved(inDoubt)).toBe(false);
  inDoubt.marked.delete(1);
  expect(isResolved(inDoubt)).toBe(true);
});

test("a test event that stands behind more new ones than a load shows is marked when its turn comes", () => {
  const driven = new DrivenActor(inDoubt);
  const fresh = Array.from({ length: MAX_TESTS }, (_, n) => testEvent(20 + n, null));
  const request = load(driven.wake());
  driven.show(request, { tests: fresh, settings: { ordering: "review" }, lastSequence: 100 });
  expect(inDoubt.lanes).toBeDefined();
  const tests = [...fresh.slice(0, 3), testEvent(1, at(-1))];
  driven.show(request, { tests, settings: { ordering: "review" }, lastSequence: 100 });
  expect(inDoubt.marked).toContain(1);
  expect(inDoubt.lanes).toBeUndefined();
});

test("nothing is left to be repeated once it is resolved, and nothing is marked any more", () => {
  show(1, [1]);
  resolve(inDoubt);
  expect(isResolved(inDoubt)).toBe(true);
  show(1, [2]);
  expect([...inDoubt.marked]).toEqual([]);
});

describe("the actor of an inherited subscription", () => {
  test("asks for 18 entries at first: the head and the 17 that may have been sent", () => {
    expect(load(new DrivenActor(new InDoubtAttempts(takeover)).wake()).limit).toBe(18);
  });

  test("flags possible repeats of entries from before the takeover, and no later ones", () => {
    const driven = new DrivenActor(new InDoubtAttempts(takeover));
    const effects = driven.loaded({ entries: [entry(1), entry(2)], lastSequence: 1 });
    expect(sends(effects)).toMatchObject([{ possiblyRepeated: true }]);
    expect(sends(driven.answer("main"))).toMatchObject([{ possiblyRepeated: false }]);
  });

  test("flags no possible repeat without attempts in doubt", () => {
    const effects = new DrivenActor().loaded({ entries: [entry(1)], lastSequence: 1 });
    expect(sends(effects)).toMatchObject([{ possiblyRepeated: false }]);
  });

  test("marks none after the first 18 entries of a lane, however many of them wait and loads show them", () => {
    const own = new InDoubtAttempts(takeover);
    own.ordering = "subscription";
    own.lastSequence = 100;
    const dueAt = new Date(takeover.getTime() + 60_000);
    const shown = upTo(20).map((n) => entry(n, n <= 5 ? { dueAt } : {}));
    for (const one of [...shown.slice(0, 8), ...shown]) markInDoubt(own, one);
    expect([...own.marked]).toEqual(upTo(18).slice(5));
  });

  test("has not seen all while a pending test holds the entries", () => {
    const own = new InDoubtAttempts(takeover);
    const request = load(new DrivenActor(own).wake());
    const settings = { pendingTestEventId: "E9" };
    new DrivenActor(own).show(request, { settings, lastSequence: 100 });
    expect(own.lanes).toBeDefined();
  });

  interface Case {
    readonly title: string;
    readonly ordering: "subscription" | "review";
    readonly limit: number;
    readonly exceptReviews?: readonly number[];
    readonly sequences: readonly number[];
    readonly isComplete: boolean;
  }
  const single = (title: string, limit: number, sequences: readonly number[]) =>
    ({ title, ordering: "subscription", limit, sequences }) as const;
  const byReview = (title: string, sequences: readonly number[]) =>
    ({ title, ordering: "review", limit: 18, sequences }) as const;
  test.each<Case>([
    { ...single("has not seen all after a load of the settings", 0, []), isComplete: false },
    { ...single("has seen all when a load is not full", 18, upTo(17)), isComplete: true },
    { ...single("has seen all of a single lane in 18 entries", 18, upTo(18)), isComplete: true },
    { ...single("has not seen all of it in 17 entries", 17, upTo(17)), isComplete: false },
    { ...single("has seen all with the last entry", 2, [99, 100]), isComplete: true },
    { ...single("has not seen all with the last but one", 2, [98, 99]), isComplete: false },
    { ...byReview("has not seen all reviews in 18 entries", upTo(18)), isComplete: false },
    {
      ...byReview("has seen all reviews with the last entry", [...upTo(17), 100]),
      isComplete: true,
    },
    { ...byReview("has seen all reviews when a load is not full", upTo(17)), isComplete: true },
    {
      ...byReview("has not seen all while a load leaves a review out", upTo(17)),
      exceptReviews: [7],
      isComplete: false,
    },
  ])("$title", ({ ordering, limit, exceptReviews = [], sequences, isComplete }) => {
    const own = new InDoubtAttempts(takeover);
    const request = {
      id: "S",
      shard: 1,
      generation: 0,
      after: 0,
      limit,
      maxBytes: 1,
      exceptReviews,
    };
    const entries = sequences.map((sequence) => entry(sequence));
    new DrivenActor(own).show(request, { entries, settings: { ordering }, lastSequence: 100 });
    expect(own.lanes === undefined).toBe(isComplete);
  });
});

const claimedAt = new Date("2026-05-01T12:00:00Z");
const wake = (subscriptionId: string, shard = 1) => ({ subscriptionId, shard });

let inDoubtShards: InDoubtShards;
beforeEach(() => {
  inDoubtShards = new InDoubtShards();
  inDoubtShards.begin([1], [1], claimedAt);
});

test("a subscription that is woken before the sweep of its shard has attempts in doubt, whenever its actor comes", () => {
  inDoubtShards.note(wake("before"));
  inDoubtShards.swept([1]);
  inDoubtShards.note(wake("after"));
  const own = inDoubtShards.of(wake("before"));
  expect(own?.takenOverAt).toEqual(claimedAt);
  expect(inDoubtShards.of(wake("before"))).toBe(own);
  expect(inDoubtShards.of(wake("after"))).toBeUndefined();
});

test("entries recorded after the subscription was done are not in doubt, even before the sweep", () => {
  inDoubtShards.note(wake("a"));
  const first = new Actor("a", 1, inDoubtShards.of(wake("a")));
  if (first.inDoubt) complete(first.inDoubt);
  inDoubtShards.dropped(first);
  inDoubtShards.note(wake("a"));
  expect(inDoubtShards.of(wake("a"))).toMatchObject({ lanes: undefined, marked: new Set() });
  inDoubtShards.swept([1]);
  expect(inDoubtShards.has(1)).toBe(false);
});

test("a shard without a crashed holder has no attempts in doubt", () => {
  inDoubtShards.note(wake("elsewhere", 2));
  expect(inDoubtShards.of(wake("elsewhere", 2))).toBeUndefined();
});

test("a shard is open until all that was noted has been looked at and repeated", () => {
  inDoubtShards.note(wake("a"));
  inDoubtShards.swept([1]);
  expect(inDoubtShards.has(1)).toBe(true);
  const actor = new Actor("a", 1, inDoubtShards.of(wake("a")));
  actor.inDoubt?.marked.add(1);
  inDoubtShards.dropped(actor);
  expect(inDoubtShards.has(1)).toBe(true);
  if (actor.inDoubt) complete(actor.inDoubt);
  actor.inDoubt?.marked.delete(1);
  expect(inDoubtShards.has(1)).toBe(false);
});

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1);

const takeover = start;

const at = (ms: number) => new Date(takeover.getTime() + ms);

let inDoubt: InDoubtAttempts;

beforeEach(() => {
  inDoubt = new InDoubtAttempts(takeover);
  inDoubt.lastSequence = 100;
  inDoubt.ordering = "review";
});

/** Shows these entries of a review, each of which is a lane, with this due time. */
function show(reviewId: number, sequences: number[], dueAt: Date | null = null): void {
  for (const sequence of sequences) {
    markInDoubt(inDoubt, entry(sequence, { dueAt, reviewId }));
  }
}

function testEvent(sequence: number, dueAt: Date | null): Entry {
  return entry(sequence, { isTest: true, dueAt });
}
