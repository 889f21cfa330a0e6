import { afterEach, describe, expect, test } from "bun:test";

import type { AttemptRecord } from "../../../../dispatcher/store/attempt-queries.ts";
import { Committer } from "../../../../dispatcher/store/committer.ts";
import { createFakeClock } from "../../../support/clock.ts";

const committers: Committer[] = [];
// A committer retries quarantined records without an end, and here without a pause.
afterEach(() => committers.splice(0).forEach((committer) => committer.clear()));

describe("records", () => {
  test("wait 8 ms for others while they are few", async () => {
    const { commit, tried, advance, end } = slowly();
    commit("A0");
    await advance(7.9);
    commit("B0");
    expect(tried).toEqual([]);
    await advance(0.1);
    expect(tried).toEqual(["A0 B0"]);
    commit("A1");
    await end();
    await advance(8);
    expect(tried).toEqual(["A0 B0", "A1"]);
  });

  test("wait for nothing if they are 16, and for one more if they are 15", async () => {
    const { clock, commit, tried, end } = slowly();
    commit(...named(15));
    await turns(1);
    expect([tried.length, clock.sleepers]).toEqual([0, 1]);
    commit("A16");
    await turns(1);
    expect(tried).toEqual([named(16).join(" ")]);
    expect(clock.sleepers).toBe(0);
    commit(...named(16, 17));
    await end();
    expect(tried).toEqual([named(16).join(" "), named(16, 17).join(" ")]);
  });

  test("wait only until they are 8 behind a group with 8 of a subscription", async () => {
    const { commit, tried, advance, end } = slowly();
    commit(...named(8));
    await advance(8);
    commit(...named(7, 9));
    await end();
    expect(tried).toHaveLength(1);
    commit("B0");
    await advance(0);
    expect(tried.at(-1)).toBe([...named(7, 9), "B0"].join(" "));
    commit(...named(8, 16));
    await end();
    expect(tried).toHaveLength(2);
    await advance(8);
    expect(tried).toHaveLength(3);
  });

  test("wait until they are 16 behind a group with 7 of a subscription", async () => {
    const { commit, tried, advance, end } = slowly();
    commit(...named(7), "B0");
    await advance(8);
    commit(...named(8, 8));
    await end();
    expect(tried).toHaveLength(1);
    await advance(8);
    expect(tried).toHaveLength(2);
  });
});

async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await Bun.sleep(0);
}

test("a shard is held while a record of one of its subscriptions is quarantined", async () => {
  const { committer, errors } = committing(() => {
    throw failure("XX001");
  });
  expect(committer.hasQuarantined(7)).toBe(false);
  committer.commit("D", record("A1", 7), () => {});
  await turns(3);
  expect([6, 7].map((shard) => committer.hasQuarantined(shard))).toEqual([false, true]);
  await turns(60);
  expect(new Set(errors)).toEqual(new Set(["attempt.stuck"]));
  committer.clear();
  expect(committer.hasQuarantined(7)).toBe(false);
});

test("quarantined records are forgotten with the lease", async () => {
  let isDead = false;
  const { committer, commit, done } = committing((ids) => {
    if (isDead) return FENCED;
    if (ids.includes("B1")) throw failure("55P03");
    return FINE;
  });
  commit("B1");
  await turns(5);
  expect(committer.quarantined).toBe(1);
  isDead = true;
  commit("C1");
  await turns(20);
  expect([committer.quarantined, done]).toEqual([0, []]);
});

describe("no send begins", () => {
  test("while 2,048 records wait for their commit, and 2,047 are not too many", () => {
    const { committer, commit } = slowly();
    commit(...named(2_047));
    expect(committer.keepsUp).toBe(true);
    commit("A2048");
    expect(committer.keepsUp).toBe(false);
  });

  test("while 16,384 records are quarantined, and 16,383 are not too many", async () => {
    const { committer, commit } = committing(() => {
      throw failure("55P03");
    });
    commit("B0");
    await turns(5);
    commit(...Array.from({ length: 16_382 }, (_, i) => `B${i + 1}`));
    await turns(50);
    expect([committer.backlog, committer.keepsUp]).toEqual([0, true]);
    commit("B16383");
    await turns(5);
    expect([committer.backlog, committer.keepsUp]).toEqual([0, false]);
  });
});

const FENCED = { fenced: true, inactive: [], disabled: [] };

const FINE = { fenced: false, inactive: [], disabled: [] };

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}

const record = (id: string, shard = 0): AttemptRecord =>
  // The committer reads no other field.
  ({ shard, subscriptionId: id.slice(0, 1), id }) as unknown as AttemptRecord;

/**
 * Makes a committer on a store that calls `answer` for each commit, which fails if `answer` throws. `done` has the
 * committed records in order, and `errors` the logged errors.
 */
function committing(answer: (ids: readonly string[]) => typeof FINE) {
  const clock = createFakeClock();
  const done: string[] = [];
  const errors: string[] = [];
  const committer = new Committer(
    {
      store: {
        commit: async (_id, records) => {
          return answer(records.map(({ id }) => id));
        },
      },
      clock: {
        ...clock,
        monotonicMs: () => clock.monotonicMs(),
        async sleep(ms) {
          await Bun.sleep(0);
          clock.advance(ms);
        },
      },
      log: { debug() {}, info() {}, warn() {}, error: (event) => void errors.push(event) },
    },
    ({ kind }) => void (kind === "lease_lost" && committer.clear()),
  );
  committers.push(committer);
  const commit = (...ids: string[]) => {
    for (const id of ids) committer.commit("D", record(id), () => void done.push(id));
  };
  return { committer, commit, done, errors };
}

/** Makes a committer whose commits last until `answer`, with a clock that is moved by hand. */
function slowly() {
  const clock = createFakeClock();
  const tried: string[] = [];
  let answer = () => {};
  const committer = new Committer(
    {
      store: {
        commit: (_id, records) => {
          tried.push(records.map(({ id }) => id).join(" "));
          return new Promise((resolve) => (answer = () => resolve(FINE)));
        },
      },
      clock,
      log: { debug() {}, info() {}, warn() {}, error() {} },
    },
    () => {},
  );
  const commit = (...ids: string[]) => {
    for (const id of ids) committer.commit("D", record(id), () => {});
  };
  const advance = async (ms: number) => {
    clock.advance(ms);
    await turns(1);
  };
  const end = async () => {
    answer();
    await turns(1);
  };
  return { clock, committer, commit, tried, advance, end };
}

const named = (count: number, from = 1) => Array.from({ length: count }, (_, i) => `A${from + i}`);
