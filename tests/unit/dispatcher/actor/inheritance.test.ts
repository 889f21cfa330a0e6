import { beforeEach, expect, test } from "bun:test";

import {
  complete,
  createInheritance,
  inherit,
  isResolved,
  type Inheritance,
} from "../../../../dispatcher/actor/inheritance.ts";
import type { Entry } from "../../../../dispatcher/actor/entry.ts";

const takeover = new Date("2026-06-01T12:00:00.000Z");
const at = (ms: number) => new Date(takeover.getTime() + ms);

let inheritance: Inheritance;
beforeEach(() => {
  inheritance = createInheritance(takeover);
  inheritance.lastSequence = 100;
  inheritance.ordering = "review";
});

/** Shows these entries of a review, each of which is a lane, due as is said. */
function show(reviewId: number, sequences: number[], dueAt: Date | null = null): void {
  for (const sequence of sequences) {
    const entry: Entry = {
      sequence,
      eventId: `E${sequence}`,
      event: "review_received",
      isTest: false,
      payloadMode: "full",
      reviewId,
      round: 1,
      attempt: 1,
      dueAt,
      source: { kind: "test", eventId: `E${sequence}`, partnerId: 1, occurredAt: takeover },
    };
    inherit(inheritance, entry);
  }
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
