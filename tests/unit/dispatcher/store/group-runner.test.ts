import { describe, expect, test } from "bun:test";

import { failureOf, GroupRunner } from "../../../../dispatcher/store/group-runner.ts";
import { createFakeClock } from "../../../support/clock.ts";

describe("a group that fails for one key", () => {
  test("is halved until only that key is left, and untried halves go first", async () => {
    const { runner, tried, done } = running((items) => {
      if (items.includes("B1")) throw failure("XX001");
    });
    await runner.run(["A1", "B1", "C1", "D1"]);
    expect(tried).toEqual(["A1 B1 C1 D1", "A1 B1", "C1 D1", "A1", "B1"]);
    expect(done).toEqual(["C1", "D1", "A1"]);
    expect([runner.quarantined, runner.waiting]).toEqual([1, 1]);
    runner.clear();
  });

  test("keeps the items of a key together and in their order", async () => {
    let isRefused = true;
    const { runner, done, pass } = running((items) => {
      if (isRefused && items.some((item) => item.startsWith("B"))) throw failure("XX001");
    });
    await runner.run(["B1", "A1", "B2", "A2"]);
    await runner.run(["B3", "A3"]);
    expect(done).toEqual(["A1", "A2", "A3"]);
    isRefused = false;
    await pass(1_000);
    expect(done).toEqual(["A1", "A2", "A3", "B1", "B2", "B3"]);
    expect(runner.quarantined).toBe(0);
  });
});

describe("a quarantined key", () => {
  test("stays out of the groups of the others, and alone makes no group", async () => {
    const { runner, tried } = running((items) => {
      if (items.includes("A1")) throw failure("XX001");
    });
    await runner.run(["A1"]);
    await runner.run(["A2", "B1"]);
    await runner.run(["A3"]);
    expect(tried).toEqual(["A1", "B1"]);
    expect(runner.waiting).toBe(3);
    runner.clear();
  });

  test("that is refused is retried after 100 ms, then after twice as long, 30 s at the most, and logged", async () => {
    const { runner, triedAtMs, logged, pass } = running(() => {
      throw failure("XX001");
    });
    await runner.run(["A1"]);
    expect(logged).toEqual(["work.failed"]);
    await pass(120_000);
    expect(pausesOf(triedAtMs)).toEqual([
      0.1, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30,
    ]);
    const fields = { item: "A1", waiting: 1, error: "XX001", name: "Error", code: "XX001" };
    const stuck = logged.filter((one) => one !== "work.failed");
    expect(stuck).toHaveLength(12);
    expect(new Set(stuck)).toEqual(new Set([`work.stuck ${JSON.stringify(fields)}`]));
    runner.clear();
  });

  test("that waits for a lock is retried within a second, and is not logged as stuck", async () => {
    const { runner, triedAtMs, logged, pass } = running(() => {
      throw failure("55P03");
    });
    await runner.run(["A1"]);
    await pass(6_000);
    expect(pausesOf(triedAtMs)).toEqual([0.1, 0.1, 0.2, 0.4, 0.8, 1, 1, 1, 1]);
    expect(new Set(logged)).toEqual(new Set(["work.failed"]));
    runner.clear();
  });

  test("that can be done again runs in groups that double, so that it catches up with new items", async () => {
    let isLocked = true;
    const { runner, tried, done, pass } = running(() => {
      if (isLocked) throw failure("55P03");
    });
    const items = Array.from({ length: 9 }, (_, i) => `A${i}`);
    await runner.run(items);
    isLocked = false;
    tried.length = 0;
    await pass(500);
    expect(tried).toEqual(["A0", "A1 A2", "A3 A4 A5 A6", "A7 A8"]);
    expect([done, runner.quarantined]).toEqual([items, 0]);
  });

  test("with one item that is refused has all before it done without a pause, and keeps the rest", async () => {
    const { runner, tried, done, pass } = running((group) => {
      if (group.includes("A4")) throw failure("XX001");
    });
    await runner.run(["A0", "A1", "A2", "A3", "A4", "A5"]);
    tried.length = 0;
    await pass(100);
    expect(tried).toEqual(["A0", "A1 A2", "A3 A4 A5", "A3", "A4 A5", "A4"]);
    expect([done, runner.waiting]).toEqual([["A0", "A1", "A2", "A3"], 2]);
    runner.clear();
  });

  test("keeps the items of two groups that failed at the same time", async () => {
    let isRefused = true;
    const { runner, done, pass } = running(() => {
      if (isRefused) throw failure("XX001");
    });
    await Promise.all([runner.run(["A1"]), runner.run(["A2"])]);
    expect([runner.quarantined, runner.waiting]).toEqual([1, 2]);
    isRefused = false;
    await pass(1_000);
    expect([done, runner.quarantined]).toEqual([["A1", "A2"], 0]);
  });

  test("keeps an item that joins during a try that may take more items than there are", async () => {
    let isLocked = true;
    const { runner, done, pass } = running((items) => {
      if (isLocked) throw failure("55P03");
      // The try after the success of B1 may take two items, but only one is there.
      if (items.join(" ") === "B2") void runner.run(["B3"]);
    });
    await runner.run(["B1"]);
    await runner.run(["B2"]);
    isLocked = false;
    await pass(1_000);
    expect([done, runner.quarantined]).toEqual([["B1", "B2", "B3"], 0]);
  });
});

describe("while Postgres is out of reach", () => {
  test("a group stays whole, and is tried again after its pause", async () => {
    let isAway = true;
    const { runner, tried, done, pass } = running(() => {
      if (isAway) throw failure("ECONNREFUSED");
    });
    const ended = runner.run(["A1", "B1"]);
    await Bun.sleep(0);
    await pass(1_000);
    expect(tried).toEqual(["A1 B1", "A1 B1", "A1 B1"]);
    isAway = false;
    await pass(500);
    await ended;
    expect([done, runner.quarantined]).toEqual([["A1", "B1"], 0]);
  });

  test("a clear ends the wait, and nothing is tried again", async () => {
    const { runner, tried, pass } = running(() => {
      throw failure("ECONNREFUSED");
    });
    const ended = runner.run(["A1"]);
    await Bun.sleep(0);
    runner.clear();
    await ended;
    await pass(2_000);
    expect(tried).toEqual(["A1"]);
  });
});

test.each([
  ["55P03", "waits"],
  ["57P01", "store"],
  ["53100", "store"],
  ["25006", "store"],
  ["40P01", "store"],
  ["42703", "store"],
  ["ECONNRESET", "store"],
  ["EPIPE", "store"],
  ["CONNECTION_CLOSED", "store"],
  ["DEADLINE_EXCEEDED", "store"],
  ["57014", "refused"],
  ["58030", "refused"],
  ["22P05", "refused"],
  ["23514", "refused"],
  ["XX000", "refused"],
  ["XX001", "refused"],
] as const)("an error with the code %s is taken as: %s", (code, kind) => {
  expect(failureOf(failure(code))).toBe(kind);
  expect(failureOf(new Error("Failed query", { cause: failure(code) }))).toBe(kind);
});

test("an error of the code itself is taken as one of this group", () => {
  expect(failureOf(new TypeError("undefined is not an object"))).toBe("refused");
});

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}

/**
 * Makes a runner that calls `answer` for each group, which fails if `answer` throws. An item is a key and a number,
 * such as `A1`.
 */
function running(answer: (items: readonly string[]) => void) {
  const clock = createFakeClock();
  const tried: string[] = [];
  const triedAtMs: number[] = [];
  const done: string[] = [];
  const logged: string[] = [];
  const log = {
    debug() {},
    info() {},
    warn: (event: string) => void logged.push(event),
    error: (event: string, fields: object = {}) =>
      void logged.push(`${event} ${JSON.stringify({ ...fields, stack: undefined })}`),
  };
  const runner = new GroupRunner<string, undefined>(
    { clock, log },
    {
      keyOf: (item) => item.slice(0, 1),
      run: async (group) => {
        tried.push(group.join(" "));
        triedAtMs.push(clock.monotonicMs());
        answer(group);
        return undefined;
      },
      done: (group) => void done.push(...group),
      describe: (item) => ({ item }),
      events: { failed: "work.failed", stuck: "work.stuck" },
      retryMs: 500,
    },
  );
  /** Passes time in steps and runs due work. */
  const pass = async (ms: number) => {
    for (let n = 0; n < ms / 100; n++) {
      clock.advance(100);
      await Bun.sleep(0);
    }
  };
  return { runner, tried, triedAtMs, done, logged, pass };
}

/** Returns the pauses in seconds. */
function pausesOf(triedAtMs: readonly number[]): number[] {
  return triedAtMs.slice(1).map((atMs, i) => (atMs - (triedAtMs[i] ?? 0)) / 1_000);
}
