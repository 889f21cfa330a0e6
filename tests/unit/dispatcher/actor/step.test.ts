import { beforeEach, describe, expect, test } from "bun:test";

import { step } from "../../../../dispatcher/actor/step.ts";
import type {
  ActorEvent,
  Effect,
  Entry,
  LoadRequest,
  Subscription,
} from "../../../../dispatcher/actor/event.ts";
import { MAX_UNRECORDED, SEND_AHEAD } from "../../../../dispatcher/actor/lane.ts";
import { Actor, MAX_QUEUED, MAX_TESTS } from "../../../../dispatcher/actor/state.ts";
import type { Decision } from "../../../../dispatcher/actor/decide.ts";
import { entry, kinds, later, load, sent, start, subscription } from "../../../support/actor.ts";

describe("one lane", () => {
  test("sends one entry at a time, the next one after the answer and before its commit", () => {
    expect(sent(loaded([entry(1), entry(2)]))).toEqual([1]);
    expect(sent(tell({ kind: "woken" }))).toEqual([]);
    expect(sent(tell({ kind: "answered", lane: "main", decision: delivered }))).toEqual([2]);
  });

  test(`has ${MAX_UNRECORDED} attempts of all its reviews without a record, and not one more`, () => {
    const byReview = (from: number, count: number) =>
      Array.from({ length: count }, (_, i) => entry(from + i, { reviewId: from + i }));
    let asked: LoadRequest | undefined;
    let count = 0;
    // Each review has one event. Every POST is answered at once, and no commit succeeds.
    let effects = loaded(byReview(1, 64), [], { ordering: "review" });
    for (;;) {
      asked = effects.find((effect) => effect.kind === "load")?.request ?? asked;
      const lanes = effects.flatMap((effect) => (effect.kind === "send" ? [effect.lane] : []));
      count += lanes.length;
      if (lanes.length > 0)
        effects = lanes.flatMap((lane) => tell({ kind: "answered", lane, decision: delivered }));
      else if (asked !== undefined) {
        const entries = byReview(asked.exceptReviews.length + 1, asked.limit);
        const found = {
          subscription: { ...subscription, ordering: "review" as const },
          entries,
          tests: [],
          lastSequence: 0,
        };
        effects = tell({ kind: "loaded", loaded: { request: asked, found } });
        asked = undefined;
      } else break;
    }
    expect(count).toBe(MAX_UNRECORDED);
    expect(
      sent(tell({ kind: "committed", lane: "review:1", decision: delivered, active: true })),
    ).toHaveLength(1);
  });

  test("sends no more reviews than may fail before the 20th failure, and all again after a success", () => {
    const entries = Array.from({ length: 12 }, (_, i) => entry(i + 1, { reviewId: i + 1 }));
    const settings = { ordering: "review", consecutiveFailureCount: 17 } as const;
    const failed = { kind: "failed" } as const;
    expect(sent(loaded(entries, [], settings))).toEqual([1, 2, 3]);
    expect(sent(tell({ kind: "answered", lane: "review:1", decision: failed }))).toEqual([]);
    expect(sent(tell({ kind: "answered", lane: "review:2", decision: failed }))).toEqual([]);
    for (const lane of ["review:1", "review:2"])
      expect(sent(tell({ kind: "committed", lane, decision: failed, active: true }))).toEqual([]);
    expect(sent(tell({ kind: "answered", lane: "review:3", decision: delivered }))).toHaveLength(8);
  });

  test("sends one review at a time after 19 failures", () => {
    const entries = Array.from({ length: 3 }, (_, i) => entry(i + 1, { reviewId: i + 1 }));
    const settings = { ordering: "review", consecutiveFailureCount: 19 } as const;
    expect(sent(loaded(entries, [], settings))).toEqual([1]);
    const retry = { kind: "retry", delayMs: 60_000 } as const;
    expect(sent(tell({ kind: "answered", lane: "review:1", decision: retry }))).toEqual([2]);
    expect(
      sent(tell({ kind: "answered", lane: "review:2", decision: { kind: "failed" } })),
    ).toEqual([]);
  });

  test(`sends ahead of ${SEND_AHEAD} commits and not of one more`, () => {
    let next = sent(loaded(Array.from({ length: SEND_AHEAD + 2 }, (_, i) => entry(i + 1))));
    for (let n = 1; n < SEND_AHEAD; n++) {
      expect(next).toEqual([n]);
      next = sent(tell({ kind: "answered", lane: "main", decision: delivered }));
    }
    expect(next).toEqual([SEND_AHEAD]);
    expect(sent(tell({ kind: "answered", lane: "main", decision: delivered }))).toEqual([]);
    expect(
      sent(tell({ kind: "committed", lane: "main", decision: delivered, active: true })),
    ).toEqual([SEND_AHEAD + 1]);
  });

  test("sends nothing between a failure and its commit", () => {
    loaded([entry(1), entry(2)]);
    const failed: Decision = { kind: "failed" };
    expect(sent(tell({ kind: "answered", lane: "main", decision: failed }))).toEqual([]);
    expect(sent(tell({ kind: "committed", lane: "main", decision: failed, active: true }))).toEqual(
      [2],
    );
  });

  test("waits in memory after a failure on our side, so that no sweep makes it retry sooner", () => {
    loaded([entry(1), entry(2)]);
    const until = later(2_000);
    const waiting = tell({ kind: "postponed", lane: "main", until });
    expect(waiting).toEqual([{ kind: "sleep", until }]);
    expect(actor.postponed).toBe(1);
    expect(sent(loaded([entry(1), entry(2)]))).toEqual([]);
    now = until;
    expect(sent(loaded([entry(1), entry(2)]))).toEqual([1]);
    tell({ kind: "answered", lane: "main", decision: delivered });
    expect(actor.postponed).toBe(0);
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
    tell({ kind: "answered", lane: "main", decision: retry });
    const effects = tell({ kind: "committed", lane: "main", decision: retry, active: true });
    expect(effects).toContainEqual({ kind: "sleep", until: later(60_000) });
    now = later(59_999);
    expect(load(tell({ kind: "woken" }))).toMatchObject({ limit: 0 });
    now = later(60_000);
    actor = new Actor("S", 1);
    expect(sent(loaded([entry(1, { attempt: 2, dueAt: later(60_000) }), entry(2)]))).toEqual([1]);
  });

  test("drops itself when nothing is left, and only then", () => {
    loaded([entry(1)]);
    expect(kinds(tell({ kind: "answered", lane: "main", decision: delivered }))).not.toContain(
      "drop",
    );
    expect(
      kinds(tell({ kind: "committed", lane: "main", decision: delivered, active: true })),
    ).toEqual(["drop"]);
  });

  test("forgets its queue when the subscription is no longer active", () => {
    loaded([entry(1), entry(2)]);
    const failed: Decision = { kind: "failed" };
    tell({ kind: "answered", lane: "main", decision: failed });
    expect(
      kinds(tell({ kind: "committed", lane: "main", decision: failed, active: false })),
    ).toEqual(["drop"]);
  });

  test("keeps a wake that comes while it loads", () => {
    const request = load(tell({ kind: "woken" }));
    expect(tell({ kind: "woken" })).toEqual([]);
    const effects = tell({
      kind: "loaded",
      loaded: { request, found: { subscription, entries: [], tests: [], lastSequence: 0 } },
    });
    expect(kinds(effects)).toEqual(["load"]);
  });

  test("keeps a wake that comes before the commit that ends its subscription", () => {
    loaded([entry(1)]);
    const failed: Decision = { kind: "failed" };
    tell({ kind: "answered", lane: "main", decision: failed });
    const woken = kinds(tell({ kind: "woken" }));
    const ended = kinds(tell({ kind: "committed", lane: "main", decision: failed, active: false }));
    expect([...woken, ...ended].filter((kind) => kind === "load")).toHaveLength(1);
  });

  test("reads URL and secret again before it uses them after a second", () => {
    loaded([entry(1), entry(2)]);
    now = later(1_000);
    const effects = tell({ kind: "answered", lane: "main", decision: delivered });
    expect(sent(effects)).toEqual([]);
    const request = load(effects);
    const moved = { ...subscription, webhookUrl: "https://elsewhere.example/hook" };
    const next = tell({
      kind: "loaded",
      loaded: {
        request,
        found: { subscription: moved, entries: [], tests: [], lastSequence: 0 },
      },
    });
    expect(next).toContainEqual(expect.objectContaining({ kind: "send", subscription: moved }));
  });

  test("ignores the answer to a load that began before its queue was thrown away", () => {
    loaded(Array.from({ length: MAX_QUEUED }, (_, i) => entry(i + 1)));
    for (let n = 1; n < MAX_QUEUED / 2 - 1; n++) {
      tell({ kind: "answered", lane: "main", decision: delivered });
      tell({ kind: "committed", lane: "main", decision: delivered, active: true });
    }
    const effects = tell({ kind: "answered", lane: "main", decision: delivered });
    const request = load(effects);
    expect(request.after).toBe(MAX_QUEUED);
    tell({ kind: "committed", lane: "main", decision: delivered, active: true });
    const retry: Decision = { kind: "retry", delayMs: 50 };
    tell({ kind: "answered", lane: "main", decision: retry });
    tell({ kind: "committed", lane: "main", decision: retry, active: true });
    now = later(100);
    const late = tell({
      kind: "loaded",
      loaded: {
        request,
        found: {
          subscription,
          entries: [entry(MAX_QUEUED + 1)],
          tests: [],
          lastSequence: 0,
        },
      },
    });
    expect(sent(late)).toEqual([]);
    expect(load(late).after).toBe(0);
  });
});

describe("several causes at once", () => {
  const byReview = { ordering: "review" } as const;
  const answer = (request: LoadRequest, entries: Entry[], overrides: Partial<Subscription> = {}) =>
    tell({
      kind: "loaded",
      loaded: {
        request,
        found: {
          subscription: { ...subscription, ...overrides },
          entries,
          tests: [],
          lastSequence: 0,
        },
      },
    });
  const commit = (lane: string, decision: Decision = delivered) =>
    tell({ kind: "committed", lane, decision, active: true });

  test("reads nothing in another ordering before the entries under way are committed", () => {
    loaded([entry(1), entry(2)]);
    const effects = answer(load(tell({ kind: "woken" })), [], byReview);
    expect(kinds(effects)).not.toContain("load");
    expect(tell({ kind: "answered", lane: "main", decision: delivered })).toEqual([]);
    const request = load(commit("main"));
    expect(request.after).toBe(0);
    expect(sent(answer(request, [entry(2)], byReview))).toEqual([2]);
  });

  test("does not use a load that left reviews out for another ordering", () => {
    loaded([entry(1)], [], byReview);
    const request = load(tell({ kind: "woken" }));
    tell({ kind: "answered", lane: "review:1", decision: delivered });
    commit("review:1");
    const effects = answer(request, [entry(3, { reviewId: 2 })]);
    expect(sent(effects)).toEqual([]);
    expect(load(effects)).toMatchObject({ after: 0, exceptReviews: [] });
  });

  test("does not let a lane of another ordering wait, nor leaves its review out", () => {
    loaded([entry(1), entry(2, { reviewId: 2 })], [], byReview);
    answer(load(tell({ kind: "woken" })), []);
    const retry: Decision = { kind: "retry", delayMs: 60_000 };
    tell({ kind: "answered", lane: "review:1", decision: retry });
    commit("review:1", retry);
    tell({ kind: "answered", lane: "review:2", decision: delivered });
    expect(load(commit("review:2")).exceptReviews).toEqual([]);
  });

  test("sends the head although an entry behind it waits, as after a change of the ordering", () => {
    const waiting = entry(2, { attempt: 2, dueAt: later(60_000) });
    expect(sent(loaded([entry(1), waiting, entry(3)]))).toEqual([1]);
    expect(tell({ kind: "answered", lane: "main", decision: delivered })).toEqual([
      { kind: "sleep", until: later(60_000) },
    ]);
  });

  test("plans a retry that it finds while another lane is busy", () => {
    const waiting = entry(2, { reviewId: 2, attempt: 2, dueAt: later(60_000) });
    const effects = loaded([entry(1), waiting], [], byReview);
    expect(effects).toContainEqual({ kind: "sleep", until: later(60_000) });
    expect(kinds(effects)).not.toContain("drop");
  });

  test("plans again after a wake, which took the plan away", () => {
    const waiting = entry(2, { reviewId: 2, attempt: 2, dueAt: later(60_000) });
    loaded([entry(1), waiting], [], byReview);
    expect(tell({ kind: "woken" })).toContainEqual({ kind: "sleep", until: later(60_000) });
    expect(kinds(tell({ kind: "stopped" }))).not.toContain("sleep");
  });

  test("is dropped while its head waits before more than it can hold", () => {
    const queue = Array.from({ length: MAX_QUEUED - 1 }, (_, i) => entry(i + 2));
    const effects = loaded([entry(1, { attempt: 2, dueAt: later(60_000) }), ...queue]);
    expect(kinds(effects)).toEqual(["sleep", "drop"]);
  });

  test("reads the entries of a wake that came with a full queue, once there is room", () => {
    const entries = Array.from({ length: MAX_QUEUED / 2 + 2 }, (_, i) => entry(i + 1));
    loaded(entries);
    now = later(200);
    const request = load(tell({ kind: "woken" }));
    expect(request.limit).toBe(0);
    answer(request, []);
    const effects = tell({ kind: "answered", lane: "main", decision: delivered });
    expect(load(effects)).toMatchObject({ after: entries.length, limit: MAX_QUEUED / 2 });
  });

  test("looks for test events behind a full queue 100 ms after a wake, for any number of wakes once", () => {
    loaded(Array.from({ length: MAX_QUEUED / 2 + 2 }, (_, i) => entry(i + 1)));
    now = later(99);
    expect(tell({ kind: "woken" })).toEqual([{ kind: "recheck", afterMs: 100 }]);
    expect(tell({ kind: "woken" })).toEqual([]);
    now = later(199);
    expect(load(tell({ kind: "rechecked" })).limit).toBe(0);
  });

  test("does not look for test events once more where another load has looked meanwhile", () => {
    loaded(Array.from({ length: MAX_QUEUED / 2 + 2 }, (_, i) => entry(i + 1)));
    expect(tell({ kind: "woken" })).toEqual([{ kind: "recheck", afterMs: 100 }]);
    const request = load(tell({ kind: "answered", lane: "main", decision: delivered }));
    now = later(100);
    const found = { subscription, entries: [], tests: [], lastSequence: 0 };
    tell({ kind: "loaded", loaded: { request, found } });
    expect(tell({ kind: "rechecked" })).toEqual([]);
  });

  test("is not dropped before the time to look again has passed", () => {
    loaded(Array.from({ length: MAX_QUEUED / 2 + 2 }, (_, i) => entry(i + 1)));
    tell({ kind: "woken" });
    tell({ kind: "stopped" });
    tell({ kind: "answered", lane: "main", decision: delivered });
    const committed = {
      kind: "committed",
      lane: "main",
      decision: delivered,
      active: true,
    } as const;
    expect(tell(committed)).toEqual([]);
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
    const request = load(tell({ kind: "woken" }));
    tell({ kind: "answered", lane: "test:2", decision: delivered });
    tell({ kind: "committed", lane: "test:2", decision: delivered, active: true });
    const effects = tell({
      kind: "loaded",
      loaded: {
        request,
        found: { subscription, entries: [], tests: [probe], lastSequence: 0 },
      },
    });
    expect(sent(effects)).toEqual([]);
  });

  test("is sent once, although every load shows it again", () => {
    loaded([entry(1)], [probe]);
    const request = load(tell({ kind: "woken" }));
    const again = tell({
      kind: "loaded",
      loaded: {
        request,
        found: { subscription, entries: [], tests: [probe], lastSequence: 0 },
      },
    });
    expect(sent(again)).toEqual([]);
  });
});

describe("an erasure", () => {
  test("makes the actor read again what it has queued", () => {
    expect(sent(loaded([entry(1), entry(2), entry(3)]))).toEqual([1]);
    const request = load(tell({ kind: "woken" }));
    const erased = { ...subscription, erasures: 1 };
    const found = { subscription: erased, entries: [entry(4)], tests: [], lastSequence: 4 };
    expect(sent(tell({ kind: "loaded", loaded: { request, found } }))).toEqual([]);
    expect(sent(tell({ kind: "answered", lane: "main", decision: delivered }))).toEqual([]);
    const again = load(
      tell({ kind: "committed", lane: "main", decision: delivered, active: true }),
    );
    expect(again.after).toBe(0);
    const rest = { ...found, entries: [entry(2), entry(3), entry(4)] };
    const effects = tell({ kind: "loaded", loaded: { request: again, found: rest } });
    expect(effects.find((effect) => effect.kind === "send")).toMatchObject({
      entry: { sequence: 2 },
      subscription: { erasures: 1 },
    });
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
    expect(sent(tell({ kind: "answered", lane: "main", decision: delivered }))).toEqual([]);
    const again = load(
      tell({ kind: "committed", lane: "main", decision: delivered, active: false }),
    );
    const found = {
      subscription: { ...subscription, ...pending },
      entries: [],
      tests: [test9],
      lastSequence: 9,
    };
    const effects = tell({ kind: "loaded", loaded: { request: again, found } });
    expect(sent(effects)).toEqual([9]);
  });

  test.each([true, false])("reads the subscription again when it is recorded", (active) => {
    expect(sent(loaded([], [test9], pending))).toEqual([9]);
    tell({ kind: "answered", lane: "test:9", decision: failed });
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
    const request = load(tell({ kind: "woken" }));
    expect(request.exceptReviews).toEqual([1, 2]);
    tell({
      kind: "loaded",
      loaded: {
        request,
        found: {
          subscription: { ...subscription, ...byReview },
          entries: [],
          tests: [],
          lastSequence: 0,
        },
      },
    });
    tell({ kind: "answered", lane: "review:1", decision: delivered });
    const effects = tell({
      kind: "committed",
      lane: "review:1",
      decision: delivered,
      active: true,
    });
    expect(load(effects).exceptReviews).toEqual([2]);
  });
});

describe("a batch slot", () => {
  test("is dispatched once when it is due, and then read again", () => {
    expect(kinds(loaded([], [], { nextBatchAt: start }))).toEqual(["batch"]);
    expect(kinds(tell({ kind: "woken" }))).toEqual([]);
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
    expect(sent(tell({ kind: "answered", lane: "main", decision: delivered }))).toEqual([]);
    expect(
      kinds(tell({ kind: "committed", lane: "main", decision: delivered, active: true })),
    ).toEqual(["drop"]);
  });
});

test("reads on when all tests that a load had room for are under way or done", () => {
  const tests = Array.from({ length: MAX_TESTS }, (_, n) => entry(n + 1, { isTest: true }));
  loaded([], tests);
  const effects = tests.flatMap(({ sequence }) => {
    const lane = `test:${sequence}`;
    return [
      ...tell({ kind: "answered", lane, decision: delivered }),
      ...tell({ kind: "committed", lane, decision: delivered, active: true }),
    ];
  });
  expect(kinds(effects).filter((kind) => kind === "load")).toHaveLength(1);
});

const delivered: Decision = { kind: "delivered" };
let actor: Actor;
let now: Date;
const tell = (event: ActorEvent): Effect[] => step(actor, event, now);

beforeEach(() => {
  actor = new Actor("S", 1);
  now = start;
});

/** Wakes the actor and returns the effects of its load. */
function loaded(
  entries: Entry[],
  tests: Entry[] = [],
  overrides: Partial<Subscription> = {},
): Effect[] {
  const request = load(tell({ kind: "woken" }));
  return tell({
    kind: "loaded",
    loaded: {
      request,
      found: {
        subscription: { ...subscription, ...overrides },
        entries,
        tests,
        lastSequence: 0,
      },
    },
  });
}
