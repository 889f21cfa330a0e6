import { beforeEach, describe, expect, test } from "bun:test";

import type { Decision } from "../../../../dispatcher/actor/decide.ts";
import type { Entry, Subscription } from "../../../../dispatcher/actor/event.ts";
import { MAX_QUEUED, MAX_TESTS } from "../../../../dispatcher/actor/state.ts";
import {
  DrivenActor,
  entry,
  kinds,
  later,
  load,
  sends,
  sent,
  start,
} from "../../../support/actor.ts";

describe("one lane", () => {
  test("sends one entry at a time, the next one after the answer and before its commit", () => {
    expect(sent(loaded([entry(1), entry(2)]))).toEqual([1]);
    expect(sent(wake())).toEqual([]);
    expect(sent(answer("main"))).toEqual([2]);
  });

  test("has 128 attempts of all its reviews without a record, and not one more", () => {
    const byReview = (from: number, count: number) =>
      Array.from({ length: count }, (_, i) => entry(from + i, { reviewId: from + i }));
    let asked: ReturnType<typeof load> | undefined;
    let count = 0;
    // Each review has one event. Every POST is answered at once, and no commit succeeds.
    let effects = loaded(byReview(1, 64), [], { ordering: "review" });
    for (;;) {
      asked = effects.find((effect) => effect.kind === "load")?.request ?? asked;
      const lanes = effects.flatMap((effect) => (effect.kind === "send" ? [effect.lane] : []));
      count += lanes.length;
      if (lanes.length > 0) effects = lanes.flatMap((lane) => answer(lane));
      else if (asked !== undefined) {
        const entries = byReview(asked.exceptReviews.length + 1, asked.limit);
        effects = driven.show(asked, { entries, settings: { ordering: "review" } });
        asked = undefined;
      } else break;
    }
    expect(count).toBe(128);
    expect(sent(commit("review:1"))).toHaveLength(1);
  });

  test("sends no more reviews than may fail before the 20th failure, and all again after a success", () => {
    const entries = Array.from({ length: 12 }, (_, i) => entry(i + 1, { reviewId: i + 1 }));
    const settings = { ordering: "review", consecutiveFailureCount: 17 } as const;
    const failed = { kind: "failed" } as const;
    expect(sent(loaded(entries, [], settings))).toEqual([1, 2, 3]);
    expect(sent(answer("review:1", failed))).toEqual([]);
    expect(sent(answer("review:2", failed))).toEqual([]);
    for (const lane of ["review:1", "review:2"]) expect(sent(commit(lane, failed))).toEqual([]);
    expect(sent(answer("review:3"))).toHaveLength(8);
  });

  test("sends ahead of 16 commits and not of one more", () => {
    let next = sent(loaded(Array.from({ length: 18 }, (_, i) => entry(i + 1))));
    for (let n = 1; n < 16; n++) {
      expect(next).toEqual([n]);
      next = sent(answer("main"));
    }
    expect(next).toEqual([16]);
    expect(sent(answer("main"))).toEqual([]);
    expect(sent(commit("main"))).toEqual([17]);
  });

  test("sends nothing between a failure and its commit", () => {
    loaded([entry(1), entry(2)]);
    const failed: Decision = { kind: "failed" };
    expect(sent(answer("main", failed))).toEqual([]);
    expect(sent(commit("main", failed))).toEqual([2]);
  });

  test("waits in memory after a failure on our side, so that no sweep makes it retry sooner", () => {
    loaded([entry(1), entry(2)]);
    const until = later(2_000);
    const waiting = tell({ kind: "postponed", lane: "main", until });
    expect(waiting).toEqual([{ kind: "sleep", until }]);
    expect(driven.actor.postponed).toBe(1);
    expect(sent(loaded([entry(1), entry(2)]))).toEqual([]);
    driven.now = until;
    expect(sent(loaded([entry(1), entry(2)]))).toEqual([1]);
    answer("main");
    expect(driven.actor.postponed).toBe(0);
  });

  test("waits after a failure on our side, although other reviews are answered and wakes come", () => {
    const entries = [entry(1, { reviewId: 1 }), entry(2, { reviewId: 2 })];
    loaded(entries, [], { ordering: "review" });
    tell({ kind: "postponed", lane: "review:1", until: later(60_000) });
    answer("review:2");
    commit("review:2");
    expect(driven.actor.postponed).toBe(0);
    expect(load(wake())).toMatchObject({ exceptReviews: [1] });
  });

  test("is dropped when its last request after a stop failed on our side", () => {
    loaded([entry(1), entry(2)]);
    tell({ kind: "stopped" });
    const effects = tell({ kind: "postponed", lane: "main", until: later(1_000) });
    expect(kinds(effects)).toContain("drop");
  });

  test("waits with everything behind a head that is due later, sleeps and is dropped", () => {
    const dueAt = later(60_000);
    const effects = loaded([entry(1, { attempt: 2, dueAt }), entry(2)]);
    expect(effects).toEqual([{ kind: "sleep", until: dueAt }, { kind: "drop" }]);
  });

  test("reads from the head again when the wait is over", () => {
    loaded([entry(1), entry(2)]);
    const retry: Decision = { kind: "retry", delayMs: 60_000 };
    answer("main", retry);
    const effects = commit("main", retry);
    expect(effects).toContainEqual({ kind: "sleep", until: later(60_000) });
    driven = new DrivenActor();
    driven.now = later(60_000);
    expect(sent(loaded([entry(1, { attempt: 2, dueAt: later(60_000) }), entry(2)]))).toEqual([1]);
  });

  test("reads a waiting head again after a wake, because its retry may be due now", () => {
    const [tested, retried] = [entry(3, { isTest: true }), entry(1, { attempt: 2 })];
    loaded([{ ...retried, dueAt: later(60_000) }], [tested]);
    driven.now = later(1_000);
    const request = load(wake());
    expect(request).toMatchObject({ after: 0, limit: 4 });
    // The second wake comes too late for the load under way.
    expect(wake()).toEqual([]);
    const again = load(driven.show(request, { entries: [{ ...retried, dueAt: later(60_000) }] }));
    expect(again).toMatchObject({ after: 0, limit: 4 });
    const effects = driven.show(again, { entries: [{ ...retried, dueAt: later(900) }] });
    expect(sent(effects)).toEqual([1]);
  });

  test("drops itself when nothing is left, and only then", () => {
    loaded([entry(1)]);
    expect(kinds(answer("main"))).not.toContain("drop");
    expect(kinds(commit("main"))).toEqual(["drop"]);
  });

  test("forgets its queue when the subscription is no longer active", () => {
    loaded([entry(1), entry(2)]);
    const failed: Decision = { kind: "failed" };
    answer("main", failed);
    expect(
      kinds(tell({ kind: "committed", lane: "main", decision: failed, active: false })),
    ).toEqual(["drop"]);
  });

  test("reads its queue again when its requests begin to carry numbers", () => {
    loaded([entry(1), entry(2)]);
    driven.show(load(wake()), { settings: { settledLimit: 2 } });
    const again = load(driven.end("main"));
    const found = { entries: [entry(2, { number: 2 })], settings: { settledLimit: 2 } };
    const effects = driven.show(again, found);
    expect(sends(effects).map((send) => send.entry.number)).toEqual([2]);
  });

  test("keeps a wake that comes while it loads", () => {
    const request = load(wake());
    expect(wake()).toEqual([]);
    expect(kinds(driven.show(request, {}))).toEqual(["load"]);
  });

  test("keeps a wake that comes before the commit that ends its subscription", () => {
    loaded([entry(1)]);
    const failed: Decision = { kind: "failed" };
    answer("main", failed);
    const woken = kinds(wake());
    const ended = kinds(tell({ kind: "committed", lane: "main", decision: failed, active: false }));
    expect([...woken, ...ended].filter((kind) => kind === "load")).toHaveLength(1);
  });

  test("reads URL and secret again before it uses them after a second", () => {
    loaded([entry(1), entry(2)]);
    driven.now = later(1_000);
    const effects = answer("main");
    expect(sent(effects)).toEqual([]);
    const request = load(effects);
    const settings = { webhookUrl: "https://elsewhere.example/hook" };
    const [next] = sends(driven.show(request, { settings }));
    expect(next?.subscription).toMatchObject(settings);
  });

  test("ignores the answer to a load that began before its queue was thrown away", () => {
    loaded(Array.from({ length: MAX_QUEUED }, (_, i) => entry(i + 1)));
    for (let n = 1; n < MAX_QUEUED / 2 - 1; n++) {
      answer("main");
      commit("main");
    }
    const effects = answer("main");
    const request = load(effects);
    expect(request.after).toBe(MAX_QUEUED);
    commit("main");
    const retry: Decision = { kind: "retry", delayMs: 50 };
    answer("main", retry);
    commit("main", retry);
    driven.now = later(100);
    const late = driven.show(request, { entries: [entry(MAX_QUEUED + 1)] });
    expect(sent(late)).toEqual([]);
    expect(load(late).after).toBe(0);
  });
});

describe("several causes at once", () => {
  const byReview = { ordering: "review" } as const;

  test("reads nothing in another ordering before the entries under way are committed", () => {
    loaded([entry(1), entry(2)]);
    const effects = driven.show(load(wake()), { settings: byReview });
    expect(kinds(effects)).not.toContain("load");
    expect(answer("main")).toEqual([]);
    const request = load(commit("main"));
    expect(request.after).toBe(0);
    expect(sent(driven.show(request, { entries: [entry(2)], settings: byReview }))).toEqual([2]);
  });

  test("does not use a load that left reviews out for another ordering", () => {
    loaded([entry(1)], [], byReview);
    const request = load(wake());
    answer("review:1");
    commit("review:1");
    const effects = driven.show(request, { entries: [entry(3, { reviewId: 2 })] });
    expect(sent(effects)).toEqual([]);
    expect(load(effects)).toMatchObject({ after: 0, exceptReviews: [] });
  });

  test("does not let a lane of another ordering wait, nor leaves its review out", () => {
    loaded([entry(1), entry(2, { reviewId: 2 })], [], byReview);
    driven.show(load(wake()), {});
    const retry: Decision = { kind: "retry", delayMs: 60_000 };
    answer("review:1", retry);
    commit("review:1", retry);
    answer("review:2");
    expect(load(commit("review:2")).exceptReviews).toEqual([]);
  });

  test("sends the head although an entry behind it waits, as after a change of the ordering", () => {
    const waiting = entry(2, { attempt: 2, dueAt: later(60_000) });
    expect(sent(loaded([entry(1), waiting, entry(3)]))).toEqual([1]);
    expect(answer("main")).toEqual([{ kind: "sleep", until: later(60_000) }]);
  });

  test("plans again after a wake, which took the plan away", () => {
    const waiting = entry(2, { reviewId: 2, attempt: 2, dueAt: later(60_000) });
    loaded([entry(1), waiting], [], byReview);
    expect(loaded([waiting], [], byReview)).toContainEqual({ kind: "sleep", until: later(60_000) });
    expect(kinds(tell({ kind: "stopped" }))).not.toContain("sleep");
  });

  test("reads the entries of a wake that came with a full queue, once there is room", () => {
    const entries = Array.from({ length: MAX_QUEUED / 2 + 2 }, (_, i) => entry(i + 1));
    loaded(entries);
    driven.now = later(200);
    const request = load(wake());
    expect(request.limit).toBe(0);
    driven.show(request, {});
    const effects = answer("main");
    expect(load(effects)).toMatchObject({ after: entries.length, limit: MAX_QUEUED / 2 });
  });

  test("looks for test events behind a full queue 100 ms after a wake, for any number of wakes once", () => {
    loaded(Array.from({ length: MAX_QUEUED / 2 + 2 }, (_, i) => entry(i + 1)));
    driven.now = later(99);
    expect(wake()).toEqual([{ kind: "recheck", afterMs: 100 }]);
    expect(wake()).toEqual([]);
    driven.now = later(199);
    expect(load(tell({ kind: "rechecked" })).limit).toBe(0);
  });

  test("is not dropped before the time to look again has passed", () => {
    loaded(Array.from({ length: MAX_QUEUED / 2 + 2 }, (_, i) => entry(i + 1)));
    wake();
    tell({ kind: "stopped" });
    answer("main");
    expect(commit("main")).toEqual([]);
    expect(tell({ kind: "rechecked" })).toEqual([{ kind: "drop" }]);
  });

  test("reads other reviews while one has a long queue", () => {
    const entries = Array.from({ length: MAX_QUEUED }, (_, i) => entry(i + 1));
    const effects = loaded(entries, [], byReview);
    expect(load(effects)).toMatchObject({ limit: 7, exceptReviews: [1] });
  });
});

describe("a test event", () => {
  const probe = entry(2, { isTest: true, event: "webhook.test" });

  test("is sent beside the main lane", () => {
    expect(sent(loaded([entry(1)], [probe]))).toEqual([1, 2]);
  });

  test("is sent while the head of the main lane waits", () => {
    expect(sent(loaded([entry(1, { attempt: 2, dueAt: later(60_000) })], [probe]))).toEqual([2]);
  });

  test("is sent once, although a load shows it that began before its commit", () => {
    loaded([entry(1)], [probe]);
    const request = load(wake());
    answer("test:2");
    commit("test:2");
    expect(sent(driven.show(request, { tests: [probe] }))).toEqual([]);
  });

  test("is sent once, although every load shows it again", () => {
    loaded([entry(1)], [probe]);
    const request = load(wake());
    expect(sent(driven.show(request, { tests: [probe] }))).toEqual([]);
  });
});

describe("a pending test", () => {
  const pending = { pendingTestEventId: "E9" };
  const test9 = entry(9, { isTest: true });
  const failed: Decision = { kind: "failed" };

  test("holds the entries that the actor has already read", () => {
    expect(sent(loaded([entry(1), entry(2)]))).toEqual([1]);
    // The subscription was disabled, and enabled with a test, before this load.
    expect(sent(loaded([], [test9], pending))).toEqual([]);
    expect(sent(answer("main"))).toEqual([]);
    const again = load(
      tell({ kind: "committed", lane: "main", decision: { kind: "delivered" }, active: false }),
    );
    const found = { settings: pending, tests: [test9], lastSequence: 9 };
    expect(sent(driven.show(again, found))).toEqual([9]);
  });

  test.each([true, false])("reads the subscription again when it is recorded", (active) => {
    expect(sent(loaded([], [test9], pending))).toEqual([9]);
    answer("test:9", failed);
    const effects = tell({ kind: "committed", lane: "test:9", decision: failed, active });
    expect(kinds(effects)).toContain("load");
  });
});

describe("a lane per review", () => {
  const byReview = { ordering: "review" } as const;

  test("sends one entry of each review at once", () => {
    const entries = [entry(1), entry(2, { reviewId: 2 }), entry(3), entry(4, { reviewId: null })];
    expect(sent(loaded(entries, [], byReview))).toEqual([1, 2, 4]);
  });

  test("continues with the other reviews while one waits", () => {
    const waiting = entry(1, { attempt: 3, dueAt: later(300_000) });
    expect(sent(loaded([waiting, entry(2), entry(3, { reviewId: 2 })], [], byReview))).toEqual([3]);
  });

  test("leaves the reviews in memory out of a load, and looks for more of them when they are done", () => {
    loaded([entry(1), entry(2, { reviewId: 2 })], [], byReview);
    const request = load(wake());
    expect(request.exceptReviews).toEqual([1, 2]);
    driven.show(request, { settings: byReview });
    answer("review:1");
    const effects = commit("review:1");
    expect(load(effects).exceptReviews).toEqual([2]);
  });
});

describe("a batch slot", () => {
  test("is dispatched once when it is due, and then read again", () => {
    expect(kinds(loaded([], [], { nextBatchAt: start }))).toEqual(["batch"]);
    expect(kinds(wake())).toEqual([]);
    expect(kinds(tell({ kind: "batched" }))).toEqual(["load"]);
  });

  test("sleeps until it is due", () => {
    const nextBatchAt = later(3_600_000);
    expect(loaded([], [], { nextBatchAt })).toEqual([
      { kind: "sleep", until: nextBatchAt },
      { kind: "drop" },
    ]);
  });
});

describe("stopping", () => {
  test("sends nothing more and is dropped when the request under way is committed", () => {
    loaded([entry(1), entry(2)]);
    expect(tell({ kind: "stopped" })).toEqual([]);
    expect(sent(answer("main"))).toEqual([]);
    expect(kinds(commit("main"))).toEqual(["drop"]);
  });
});

test("reads on when all tests that a load had room for are under way or done", () => {
  const tests = Array.from({ length: MAX_TESTS }, (_, n) => entry(n + 1, { isTest: true }));
  loaded([], tests);
  const effects = tests.flatMap(({ sequence }) => {
    const lane = `test:${sequence}`;
    return [...answer(lane), ...commit(lane)];
  });
  expect(kinds(effects).filter((kind) => kind === "load")).toHaveLength(1);
});

let driven: DrivenActor;
const tell: DrivenActor["tell"] = (event) => driven.tell(event);
const wake = () => driven.wake();
const answer: DrivenActor["answer"] = (lane, decision) => driven.answer(lane, decision);
const commit: DrivenActor["commit"] = (lane, decision) => driven.commit(lane, decision);

beforeEach(() => void (driven = new DrivenActor()));

/** Wakes the actor and returns the effects of its load. */
const loaded = (entries: Entry[], tests: Entry[] = [], settings: Partial<Subscription> = {}) =>
  driven.loaded({ entries, tests, settings });
