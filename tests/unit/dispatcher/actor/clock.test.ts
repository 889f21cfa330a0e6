import { expect, test } from "bun:test";

import { DrivenActor, entry, later, load, sent, start } from "../../../support/actor.ts";

const DAY_MS = 86_400_000;
const retry = { kind: "retry", delayMs: 60_000 } as const;
const byReview = { ordering: "review" } as const;
const ahead = later(40 * DAY_MS);

/** An actor with one lane that waits for a retry by a clock which is ahead, and one whose request is under way. */
function waitingAhead(): DrivenActor {
  const actor = new DrivenActor();
  actor.now = ahead;
  const entries = [entry(1, { reviewId: 1 }), entry(2, { reviewId: 2 })];
  expect(sent(actor.loaded({ entries, settings: byReview }))).toEqual([1, 2]);
  actor.end("review:1", retry);
  return actor;
}

test("a wait ends with a new load when the clock is set back, and not when it is corrected by 5 s", () => {
  for (const [backMs, isRead] of [
    [5_000, false],
    [5_001, true],
    [40 * DAY_MS, true],
  ] as const) {
    const actor = waitingAhead();
    actor.now = new Date(ahead.getTime() - backMs);
    actor.end("review:2");
    expect(actor.actor.generation > 0).toBe(isRead);
  }
});

test("a due time that is not brought back yet is read again after two minutes at the latest", () => {
  const actor = new DrivenActor();
  const found = { entries: [entry(1, { dueAt: ahead })], settings: byReview };
  expect(sent(actor.loaded(found))).toEqual([]);
  actor.now = later(120_000);
  expect(sent(actor.show(load(actor.wake()), { ...found, entries: [entry(1)] }))).toEqual([1]);
  expect(start < actor.now).toBe(true);
});
