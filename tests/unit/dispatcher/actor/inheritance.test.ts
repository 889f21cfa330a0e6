import { beforeEach, expect, test } from "bun:test";

import {
  complete,
  Inheritance,
  inherit,
  isResolved,
} from "../../../../dispatcher/actor/inheritance.ts";
import { MAX_UNRECORDED } from "../../../../dispatcher/actor/lane.ts";
import type { Entry, Subscription } from "../../../../dispatcher/actor/entry.ts";
import type { LoadRequest } from "../../../../dispatcher/actor/event.ts";
import { Actor, MAX_TESTS } from "../../../../dispatcher/actor/state.ts";
import { step } from "../../../../dispatcher/actor/step.ts";

const takeover = new Date("2026-06-01T12:00:00.000Z");
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
    inherit(inheritance, { ...testEvent(sequence, dueAt), isTest: false, reviewId });
  }
}
function testEvent(sequence: number, dueAt: Date | null): Entry {
  return {
    sequence,
    isLogged: false,
    eventId: `E${sequence}`,
    event: "webhook.test",
    isTest: true,
    payloadMode: "full",
    reviewId: null,
    batchJobId: null,
    recordedAt: takeover,
    round: 1,
    attempt: 1,
    dueAt,
    source: {
      kind: "test",
      event: "webhook.test",
      eventId: `E${sequence}`,
      partnerId: 1,
      occurredAt: takeover,
    },
  };
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
  const subscription: Subscription = {
    id: "S",
    shard: 1,
    partnerId: 1,
    webhookUrl: "https://receiver.test/",
    ordering: "review",
    secret: "",
    previousSecret: null,
    nextBatchAt: null,
  };
  const request: LoadRequest = {
    id: "S",
    shard: 1,
    generation: 0,
    after: 0,
    limit: 18,
    exceptReviews: [],
  };
  const actor = new Actor("S", 1, inheritance);
  const load = (tests: Entry[]) => {
    const found = { subscription, entries: [], tests, lastSequence: 100 };
    step(actor, { kind: "loaded", loaded: { request, found } }, at(10));
  };
  const fresh = Array.from({ length: MAX_TESTS }, (_, n) => testEvent(20 + n, null));
  load(fresh);
  expect(inheritance.isComplete).toBe(false);
  load([...fresh.slice(0, 3), testEvent(1, at(-1))]);
  expect(inheritance.marked).toContain(1);
  expect(inheritance.isComplete).toBe(true);
});
