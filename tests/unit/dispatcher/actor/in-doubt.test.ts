import { beforeEach, describe, expect, test } from "bun:test";

import type { Entry } from "../../../../dispatcher/actor/event.ts";
import {
  complete,
  inherit,
  Inheritance,
  Inheritances,
  isResolved,
  resolve,
} from "../../../../dispatcher/actor/in-doubt.ts";
import { MAX_UNRECORDED } from "../../../../dispatcher/actor/lane.ts";
import { Actor, MAX_TESTS } from "../../../../dispatcher/actor/state.ts";
import { DrivenActor, entry, load, sends, start } from "../../../support/actor.ts";

const takeover = start;
const at = (ms: number) => new Date(takeover.getTime() + ms);

let inheritance: Inheritance;
beforeEach(() => {
  inheritance = new Inheritance(takeover);
  inheritance.lastSequence = 100;
  inheritance.ordering = "review";
});

/** Shows these entries of a review, each of which is a lane, due as is said. */
function show(reviewId: number, sequences: number[], dueAt: Date | null = null): void {
  for (const sequence of sequences) {
    inherit(inheritance, entry(sequence, { dueAt, reviewId }));
  }
}
function testEvent(sequence: number, dueAt: Date | null): Entry {
  return entry(sequence, { isTest: true, dueAt });
}
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1);

test("the first 17 entries of each lane may have been sent, and no other", () => {
  show(1, upTo(64));
  show(2, [70, 71]);
  expect([...inheritance.marked]).toEqual([...upTo(17), 70, 71]);
});

test("what a later load shows of a lane counts on, and what was shown before does not again", () => {
  show(1, upTo(10));
  inheritance.marked.clear();
  show(1, upTo(30));
  expect([...inheritance.marked]).toEqual([11, 12, 13, 14, 15, 16, 17]);
});

test("the first entries of 4,096 lanes are marked, which is far more than can be without a record", () => {
  inheritance.lastSequence = 5_000;
  for (const n of upTo(4_097)) show(n, [n]);
  expect([...inheritance.marked]).toEqual(upTo(4_096));
  expect(inheritance.marked.size).toBeGreaterThan(MAX_UNRECORDED);
});

test("a retry that was due at the takeover may have been made", () => {
  show(1, [1], takeover);
  expect([...inheritance.marked]).toEqual([1]);
});

test("a head whose retry was not due yet was not sent, but what stands behind it may have been", () => {
  show(1, [1], at(1));
  show(1, [2, 3]);
  expect([...inheritance.marked]).toEqual([2, 3]);
});

test("what was appended after the takeover was not sent", () => {
  show(1, [100, 101]);
  expect([...inheritance.marked]).toEqual([100]);
});

test("nothing is marked once every lane was seen; it is resolved when the last was recorded", () => {
  show(1, [1]);
  complete(inheritance);
  show(9, [2]);
  expect([...inheritance.marked]).toEqual([1]);
  expect(isResolved(inheritance)).toBe(false);
  inheritance.marked.delete(1);
  expect(isResolved(inheritance)).toBe(true);
});

test("a test event that stands behind more new ones than a load shows is marked when its turn comes", () => {
  const driven = new DrivenActor(inheritance);
  const fresh = Array.from({ length: MAX_TESTS }, (_, n) => testEvent(20 + n, null));
  const request = load(driven.wake());
  driven.show(request, { tests: fresh, settings: { ordering: "review" }, lastSequence: 100 });
  expect(inheritance.isComplete).toBe(false);
  const tests = [...fresh.slice(0, 3), testEvent(1, at(-1))];
  driven.show(request, { tests, settings: { ordering: "review" }, lastSequence: 100 });
  expect(inheritance.marked).toContain(1);
  expect(inheritance.isComplete).toBe(true);
});

test("nothing is left to be repeated once it is resolved, and nothing is marked any more", () => {
  show(1, [1]);
  resolve(inheritance);
  expect(isResolved(inheritance)).toBe(true);
  show(1, [2]);
  expect([...inheritance.marked]).toEqual([]);
});

describe("the actor of an inherited subscription", () => {
  test("asks for 18 entries at first: the head and the 17 that may have been sent", () => {
    expect(load(new DrivenActor(new Inheritance(takeover)).wake()).limit).toBe(18);
  });

  test("tells of a possible repeat with what was there at the takeover, and with nothing later", () => {
    const driven = new DrivenActor(new Inheritance(takeover));
    const effects = driven.loaded({ entries: [entry(1), entry(2)], lastSequence: 1 });
    expect(sends(effects)).toMatchObject([{ possiblyRepeated: true }]);
    expect(sends(driven.answer("main"))).toMatchObject([{ possiblyRepeated: false }]);
  });

  test("tells of no possible repeat without an inheritance", () => {
    const effects = new DrivenActor().loaded({ entries: [entry(1)], lastSequence: 1 });
    expect(sends(effects)).toMatchObject([{ possiblyRepeated: false }]);
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
    const own = new Inheritance(takeover);
    const request = { id: "S", shard: 1, generation: 0, after: 0, limit, exceptReviews };
    const entries = sequences.map((sequence) => entry(sequence));
    new DrivenActor(own).show(request, { entries, settings: { ordering }, lastSequence: 100 });
    expect(own.isComplete).toBe(isComplete);
  });
});

const claimedAt = new Date("2026-05-01T12:00:00Z");
const wake = (subscriptionId: string, shard = 1) => ({ subscriptionId, shard });

let inheritances: Inheritances;
beforeEach(() => {
  inheritances = new Inheritances();
  inheritances.begin([1], [1], claimedAt);
});

test("what is woken before a shard is swept inherits, whenever its actor comes", () => {
  inheritances.note(wake("before"));
  inheritances.swept([1]);
  inheritances.note(wake("after"));
  const own = inheritances.of(wake("before"));
  expect(own?.at).toEqual(claimedAt);
  expect(inheritances.of(wake("before"))).toBe(own);
  expect(inheritances.of(wake("after"))).toBeUndefined();
});

test("what is recorded after its subscription was done inherits nothing, even before the sweep", () => {
  inheritances.note(wake("a"));
  const first = new Actor("a", 1, inheritances.of(wake("a")));
  if (first.inheritance) complete(first.inheritance);
  inheritances.dropped(first);
  inheritances.note(wake("a"));
  expect(inheritances.of(wake("a"))).toMatchObject({ isComplete: true, marked: new Set() });
  inheritances.swept([1]);
  expect(inheritances.isOpen(1)).toBe(false);
});

test("nothing of a shard that no dead process held inherits", () => {
  inheritances.note(wake("elsewhere", 2));
  expect(inheritances.of(wake("elsewhere", 2))).toBeUndefined();
});

test("a shard is open until all that was noted has been looked at and repeated", () => {
  inheritances.note(wake("a"));
  inheritances.swept([1]);
  expect(inheritances.isOpen(1)).toBe(true);
  const actor = new Actor("a", 1, inheritances.of(wake("a")));
  actor.inheritance?.marked.add(1);
  inheritances.dropped(actor);
  expect(inheritances.isOpen(1)).toBe(true);
  if (actor.inheritance) complete(actor.inheritance);
  actor.inheritance?.marked.delete(1);
  expect(inheritances.isOpen(1)).toBe(false);
});
