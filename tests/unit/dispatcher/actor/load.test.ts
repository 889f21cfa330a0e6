import { beforeEach, describe, expect, test } from "bun:test";

import {
  decideLoad,
  type LoadPlan,
  loadRequest,
  type LoadState,
} from "../../../../dispatcher/actor/load.ts";
import { ENTRY_BYTES, MAX_QUEUED } from "../../../../dispatcher/actor/state.ts";
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

describe("the next load of an actor", () => {
  test.each(CASES)("follows the table: %o", (flags) => {
    const fits = TABLE.filter(({ when }) =>
      FLAGS.every((flag) => when[flag] === any || when[flag] === flags[flag]),
    );
    expect(fits).toHaveLength(1);
    const [first] = fits;
    const state = stateOf(flags);
    if (first !== undefined) expect(decideLoad(state)).toEqual(planOf(first, state));
  });

  const woken: LoadState = {
    repeats: false,
    recent: false,
    stale: false,
    wanted: true,
    more: false,
    waits: false,
    queued: 0,
    bytes: 0,
    isCrowded: false,
    capacity: MAX_QUEUED,
    freeReviews: 0,
  };

  test("has room until half of its queue is filled", () => {
    const of = (queued: number) => decideLoad({ ...woken, queued }).limit;
    expect([of(MAX_QUEUED / 2), of(MAX_QUEUED / 2 + 1)]).toEqual([MAX_QUEUED / 2, 0]);
  });

  test("holds no more than its share of the memory", () => {
    const of = (queued: number) => decideLoad({ ...woken, capacity: 8, queued }).limit;
    expect([of(0), of(4), of(5), of(60)]).toEqual([8, 4, 0, 0]);
  });

  test("has room in bytes until half of its share of them is queued", () => {
    const of = (bytes: number) => decideLoad({ ...woken, bytes }).limit;
    const half = (MAX_QUEUED * ENTRY_BYTES) / 2;
    expect([of(half), of(half + 1)]).toEqual([MAX_QUEUED, 0]);
  });

  test.each(["repeats", "isCrowded"] as const)("brings no entries while it %s", (flag) => {
    const full = { ...woken, freeReviews: 8, [flag]: true };
    expect(decideLoad(full)).toEqual({ kind: "load", more: true, limit: 0 });
    expect(decideLoad({ ...full, recent: true }).kind).toBe("recheck");
    expect(decideLoad({ ...full, wanted: false, more: true }).kind).toBe("none");
  });

  test("has room for each review that could be sent and has nothing in memory", () => {
    expect(decideLoad({ ...woken, queued: MAX_QUEUED - 1, freeReviews: 3 }).limit).toBe(3);
    expect(decideLoad({ ...woken, queued: MAX_QUEUED - 9, freeReviews: 3 }).limit).toBe(9);
  });
});

const byReview = { ordering: "review" } as const;

let driven: DrivenActor;
beforeEach(() => {
  driven = new DrivenActor();
});

describe("the first load", () => {
  test("asks for four entries, because the head often waits", () => {
    expect(load(driven.wake())).toMatchObject({ after: 0, limit: 4, exceptReviews: [] });
  });

  test("of a subscription that is not active drops the actor", () => {
    expect(driven.show(load(driven.wake()))).toEqual([{ kind: "drop" }]);
  });
});

describe("a load", () => {
  test("that finds the subscription inactive empties the queue, and entries under way end", () => {
    driven.loaded({ entries: [entry(1), entry(2)] });
    expect(driven.show(load(driven.wake()))).toEqual([]);
    expect(driven.answer("main")).toEqual([]);
    expect(driven.commit("main")).toEqual([{ kind: "drop" }]);
  });

  test("that began behind the cursor of a single lane is not used for lanes by review", () => {
    driven.loaded({ entries: [entry(1)] });
    const request = load(driven.wake());
    driven.end("main");
    const effects = driven.show(request, { entries: [entry(3)], settings: byReview });
    expect(sent(effects)).toEqual([]);
    expect(load(effects)).toMatchObject({ after: 0, exceptReviews: [] });
  });

  test("of only the settings does not claim that there are more entries", () => {
    driven.actor.capacity = 4;
    driven.loaded({ entries: [1, 2, 3, 4].map((n) => entry(n)) });
    driven.show(load(driven.answer("main")), { entries: [entry(5)] });
    driven.now = later(1_000);
    const request = load(driven.answer("main"));
    expect(request.limit).toBe(0);
    expect(kinds(driven.show(request, {}))).toEqual(["send"]);
  });

  test("that was to bring entries but found no room for them is followed by another", () => {
    const request = load(driven.wake());
    const effects = driven.show({ ...request, limit: 0, maxBytes: 0 }, {});
    expect(load(effects)).toMatchObject({ limit: 64 });
  });

  test("of only the settings brings tests while what is under way must not be read again", () => {
    driven.loaded({ entries: [entry(1)] });
    driven.now = later(1_000);
    driven.show(load(driven.wake()), { settings: { erasures: 1 } });
    driven.now = later(2_000);
    const request = load(driven.wake());
    expect(request.limit).toBe(0);
    const effects = driven.show(request, {
      settings: { erasures: 1 },
      tests: [entry(9, { isTest: true })],
    });
    expect(sent(effects)).toEqual([9]);
    expect(load(driven.end("main"))).toMatchObject({ after: 0, limit: 64 });
  });

  test("of only the settings leaves out the reviews in memory", () => {
    driven.loaded({ entries: [entry(1)], settings: { ...byReview, settledLimit: 0 } });
    expect(loadRequest(driven.actor, 0)).toEqual({
      id: "S",
      shard: 1,
      ordering: "review",
      isNumbered: true,
      generation: 0,
      after: 0,
      limit: 0,
      maxBytes: 0,
      exceptReviews: [1],
    });
  });

  test("has room for each review that has nothing to send, as do those that wait", () => {
    const long = Array.from({ length: 64 }, (_, n) => entry(n + 1));
    const waits = entry(70, { reviewId: 2, attempt: 2, dueAt: later(60_000) });
    const tests = [entry(71, { isTest: true })];
    const effects = driven.loaded({ entries: [...long, waits], tests, settings: byReview });
    expect(load(effects)).toMatchObject({ limit: 7, exceptReviews: [1, 2] });
  });

  test.each(["subscription", "review"] as const)(
    "does not follow when everything is recorded, although the settings are old: ordered by %s",
    (ordering) => {
      driven.loaded({ entries: [entry(1)], settings: { ordering } });
      const lane = ordering === "review" ? "review:1" : "main";
      driven.now = later(5_000);
      expect(driven.answer(lane)).toEqual([]);
      expect(driven.commit(lane)).toEqual([{ kind: "drop" }]);
    },
  );

  test("does not follow for a single lane that was busy, because loads read on behind it", () => {
    driven.loaded({ entries: [entry(1)] });
    driven.show(load(driven.wake()), {});
    driven.answer("main");
    expect(driven.commit("main")).toEqual([{ kind: "drop" }]);
  });
});

describe("requests at once", () => {
  const many = Array.from({ length: 10 }, (_, n) => n + 1);

  test("are eight by review, and one more when one of them is answered", () => {
    const entries = many.map((n) => entry(n, { reviewId: n }));
    expect(sent(driven.loaded({ entries, settings: byReview }))).toEqual(many.slice(0, 8));
    expect(sent(driven.answer("review:1"))).toEqual([9]);
  });

  test("are four of test events, and one more when one of them is answered", () => {
    const tests = many.map((n) => entry(n, { isTest: true }));
    expect(sent(driven.loaded({ tests }))).toEqual(many.slice(0, 4));
    expect(sent(driven.answer("test:1"))).toEqual([5]);
  });
});

describe("a batch slot", () => {
  test("keeps the settings that its own entries are sent with after a dispatch", () => {
    const effects = driven.loaded({
      entries: [entry(1), entry(2)],
      settings: { nextBatchAt: start },
    });
    expect(kinds(effects)).toEqual(["batch", "send"]);
    driven.tell({ kind: "batched" });
    expect(sends(driven.answer("main"))).toMatchObject([
      { subscription: { webhookUrl: "https://receiver.example/hook", nextBatchAt: null } },
    ]);
  });

  test("is not dispatched by an actor that was stopped", () => {
    driven.loaded({ entries: [entry(1)], settings: { nextBatchAt: later(100) } });
    driven.tell({ kind: "stopped" });
    driven.now = later(100);
    expect(driven.answer("main")).toEqual([]);
  });
});

test.each([
  { kind: "unsent", lane: "review:9", isEnded: false },
  { kind: "postponed", lane: "review:9", until: later(100) },
  { kind: "answered", lane: "review:9", decision: { kind: "delivered" } },
  { kind: "committed", lane: "review:9", decision: { kind: "delivered" }, active: true },
] as const)("no lane is sent from by an event of a lane that is gone: $kind", (event) => {
  driven.loaded({ entries: [entry(1), entry(2)] });
  expect(sent(driven.tell(event))).toEqual([]);
});

const FLAGS = ["stale", "wanted", "more", "room", "waits", "recent"] as const;

/** Every combination of the flags. */
const CASES = Array.from({ length: 2 ** FLAGS.length }, (_, bits) =>
  Object.fromEntries(FLAGS.map((flag, at) => [flag, (bits & (1 << at)) !== 0])),
) as Record<(typeof FLAGS)[number], boolean>[];

type Flag = boolean | undefined;

/** One row of the table above `decideLoad`; an undefined flag matches both values. */
interface Line {
  readonly when: {
    readonly stale: Flag;
    readonly wanted: Flag;
    readonly more: Flag;
    readonly room: Flag;
    readonly waits: Flag;
    readonly recent: Flag;
  };
  readonly plan: "none" | "recheck" | "settings" | "fill";
  readonly more: boolean | "as before";
}

const any = undefined;

const [Y, N] = [true, false];

function line(
  [stale, wanted, more, room, waits, recent]: readonly Flag[],
  plan: Line["plan"],
  after: Line["more"],
): Line {
  return { when: { stale, wanted, more, room, waits, recent }, plan, more: after };
}

const TABLE: readonly Line[] = [
  line([Y, any, any, any, Y], "settings", N),
  line([Y, any, any, Y, N], "fill", "as before"),
  line([Y, N, any, N, N], "settings", "as before"),
  line([Y, Y, any, N, N], "settings", Y),
  line([N, Y, any, any, Y], "settings", N),
  line([N, N, any, any, Y], "none", N),
  line([N, Y, any, Y, N], "fill", "as before"),
  line([N, N, Y, Y, N], "fill", Y),
  line([N, N, N, Y, N], "none", N),
  line([N, N, any, N, N], "none", "as before"),
  line([N, Y, any, N, N, Y], "recheck", "as before"),
  line([N, Y, any, N, N, N], "settings", Y),
];

const QUEUED = 10;

function stateOf({ room, ...flags }: (typeof CASES)[number]): LoadState {
  return {
    ...flags,
    repeats: false,
    queued: room ? QUEUED : MAX_QUEUED,
    bytes: 0,
    isCrowded: false,
    capacity: MAX_QUEUED,
    freeReviews: 0,
  };
}

function planOf({ plan, more }: Line, state: LoadState): LoadPlan {
  const after = more === "as before" ? state.more : more;
  const limit = plan === "fill" ? MAX_QUEUED - QUEUED : 0;
  return { kind: plan === "none" || plan === "recheck" ? plan : "load", more: after, limit };
}
