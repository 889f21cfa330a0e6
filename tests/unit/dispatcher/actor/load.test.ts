import { describe, expect, test } from "bun:test";

import { decideLoad, type LoadPlan, type LoadState } from "../../../../dispatcher/actor/load.ts";
import { MAX_QUEUED } from "../../../../dispatcher/actor/state.ts";

type Flag = boolean | undefined;

/** One line of the table above `decideLoad`; an undefined flag stands for either. */
interface Line {
  readonly when: {
    readonly repeats: Flag;
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
  [repeats, stale, wanted, more, room, waits, recent]: readonly Flag[],
  plan: Line["plan"],
  after: Line["more"],
): Line {
  return { when: { repeats, stale, wanted, more, room, waits, recent }, plan, more: after };
}

const TABLE: readonly Line[] = [
  line([Y, any, any, any, any, any], "none", "as before"),
  line([N, Y, any, any, any, Y], "settings", N),
  line([N, Y, any, any, Y, N], "fill", "as before"),
  line([N, Y, N, any, N, N], "settings", "as before"),
  line([N, Y, Y, any, N, N], "settings", Y),
  line([N, N, Y, any, any, Y], "settings", N),
  line([N, N, N, any, any, Y], "none", N),
  line([N, N, Y, any, Y, N], "fill", "as before"),
  line([N, N, N, Y, Y, N], "fill", Y),
  line([N, N, N, N, Y, N], "none", N),
  line([N, N, N, any, N, N], "none", "as before"),
  line([N, N, Y, any, N, N, Y], "recheck", "as before"),
  line([N, N, Y, any, N, N, N], "settings", Y),
];

const QUEUED = 10;

const FLAGS = ["repeats", "stale", "wanted", "more", "room", "waits", "recent"] as const;

/** Every combination of the flags. */
const CASES = Array.from({ length: 2 ** FLAGS.length }, (_, bits) =>
  Object.fromEntries(FLAGS.map((flag, at) => [flag, (bits & (1 << at)) !== 0])),
) as Record<(typeof FLAGS)[number], boolean>[];

function stateOf({ room, ...flags }: (typeof CASES)[number]): LoadState {
  return {
    ...flags,
    queued: room ? QUEUED : MAX_QUEUED,
    capacity: MAX_QUEUED,
    freeReviews: 0,
  };
}

function planOf({ plan, more }: Line, state: LoadState): LoadPlan {
  const after = more === "as before" ? state.more : more;
  const limit = plan === "fill" ? MAX_QUEUED - QUEUED : 0;
  return { kind: plan === "none" || plan === "recheck" ? plan : "load", more: after, limit };
}

describe("what an actor loads next", () => {
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

  test("has room for each review that could be sent and has nothing in memory", () => {
    expect(decideLoad({ ...woken, queued: MAX_QUEUED - 1, freeReviews: 3 }).limit).toBe(3);
    expect(decideLoad({ ...woken, queued: MAX_QUEUED - 9, freeReviews: 3 }).limit).toBe(9);
  });
});
