import { beforeEach, expect, test } from "bun:test";

import {
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
});

/** Shows these entries of a lane, due as is said. */
function show(lane: string, sequences: number[], dueAt: Date | null = null): void {
  for (const sequence of sequences) {
    const entry: Entry = {
      sequence,
      eventId: `E${sequence}`,
      event: "review_received",
      isTest: false,
      payloadMode: "full",
      reviewId: 1,
      round: 1,
      attempt: 1,
      dueAt,
      source: { kind: "test", eventId: `E${sequence}`, partnerId: 1, occurredAt: takeover },
    };
    inherit(inheritance, lane, entry);
  }
}
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1);

test("the first 17 entries of each lane may have been sent, and no other", () => {
  show("main", upTo(64));
  show("review:2", [70, 71]);
  expect([...inheritance.marked]).toEqual([...upTo(17), 70, 71]);
});

test("what a later load shows of a lane counts on, and what was shown before does not again", () => {
  show("main", upTo(10));
  inheritance.marked.clear();
  show("main", upTo(30));
  expect([...inheritance.marked]).toEqual([11, 12, 13, 14, 15, 16, 17]);
});

test("a retry that was due at the takeover may have been made", () => {
  show("main", [1], takeover);
  expect([...inheritance.marked]).toEqual([1]);
});

test("behind a head whose retry was not due yet nothing was sent", () => {
  show("main", [1], at(1));
  show("main", [2, 3]);
  expect([...inheritance.marked]).toEqual([]);
});

test("what was appended after the takeover was not sent", () => {
  show("main", [100, 101]);
  expect([...inheritance.marked]).toEqual([100]);
});

test("nothing is marked once every lane was seen; it is resolved when the last was recorded", () => {
  show("main", [1]);
  inheritance.isComplete = true;
  show("review:9", [2]);
  expect([...inheritance.marked]).toEqual([1]);
  expect(isResolved(inheritance)).toBe(false);
  inheritance.marked.delete(1);
  expect(isResolved(inheritance)).toBe(true);
});
