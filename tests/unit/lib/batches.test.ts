import { describe, expect, test } from "bun:test";

import { inBatches } from "../../../src/lib/batches.ts";
import { createFakeClock } from "../../support/clock.ts";

test("processes the first item alone, and items that arrive meanwhile as one batch in order", async () => {
  const { groups, ask, seen } = createLine();
  const first = ask(1);
  expect(await seen()).toEqual([[1]]);
  const others = [2, 3].map(ask);
  expect(await seen()).toEqual([[1]]);
  groups[0]?.end.resolve();
  expect(await seen()).toEqual([[1], [2, 3]]);
  groups[1]?.end.resolve();
  expect(await Promise.all([first, ...others])).toEqual(["answer 1", "answer 2", "answer 3"]);
  void ask(4);
  expect(await seen()).toEqual([[1], [2, 3], [4]]);
});

test("a batch takes items for as long as every turn of the event loop brings another", async () => {
  const { ask, seen } = createLine();
  setImmediate(() => {
    setImmediate(() => void ask(3));
    void ask(2);
  });
  void ask(1);
  expect(await seen()).toEqual([[1, 2, 3]]);
});

test("a full batch starts without waiting for another turn", async () => {
  const { groups, ask } = createLine();
  for (const size of [1, 2, 3, 4]) void ask(size);
  await turn();
  void ask(5);
  expect(groups.map(({ items }) => items)).toEqual([[1, 2, 3]]);
});

test("a batch is limited by the number of items and the sum of their sizes", async () => {
  const { groups, ask, seen } = createLine();
  for (const size of [2, 2, 2, 2]) void ask(size);
  await seen();
  groups[0]?.end.resolve();
  expect(await seen()).toEqual([[2, 2, 2], [2]]);
  for (const size of [6, 5, 40]) void ask(size);
  for (const n of [1, 2, 3, 4]) {
    groups[n]?.end.resolve();
    await seen();
  }
  expect((await seen()).slice(2)).toEqual([[6], [5], [40]]);
});

test("a item is rejected when too many wait already, or when it has waited too long", async () => {
  const { clock, groups, ask, seen } = createLine();
  const first = ask(1);
  await seen();
  const waiting = [1, 2, 3, 4, 5].map((size) => ask(size).catch((error: unknown) => error));
  expect(await ask(6).catch((error: unknown) => error)).toMatchObject(UNAVAILABLE);
  for (let s = 0; s < 4; s++) {
    clock.advance(1_000);
    await Bun.sleep(0);
  }
  for (const one of await Promise.all(waiting)) expect(one).toMatchObject(UNAVAILABLE);
  groups[0]?.end.resolve();
  expect(await first).toBe("answer 1");
  expect(await seen()).toEqual([[1]]);
});

test("an error rejects the whole batch, and the next batch is answered", async () => {
  const { groups, ask, seen } = createLine();
  const first = ask(1);
  await seen();
  const others = [2, 3].map((size) => ask(size).catch((error: unknown) => error));
  groups[0]?.end.resolve();
  await first;
  await seen();
  groups[1]?.end.reject(new Error("lost"));
  expect(await Promise.all(others)).toEqual([new Error("lost"), new Error("lost")]);
  void ask(4);
  expect(await seen()).toEqual([[1], [2, 3], [4]]);
});

describe("while a batch takes long", () => {
  test("the next one starts after `patienceMs` and not before", async () => {
    const { clock, groups, ask, seen } = createLine({ groups: 2, patienceMs: 100 });
    void ask(1);
    await seen();
    clock.advance(100);
    void ask(2);
    expect(await seen()).toEqual([[1]]);
    clock.advance(1);
    const third = ask(3);
    expect(await seen()).toEqual([[1], [2, 3]]);
    groups[1]?.end.resolve();
    expect(await third).toBe("answer 3");
  });

  test("no more than `groups` batches run at once", async () => {
    const { clock, ask, seen } = createLine({ groups: 2, patienceMs: 100 });
    for (const size of [1, 2, 3]) {
      void ask(size);
      await seen();
      clock.advance(101);
    }
    expect(await seen()).toEqual([[1], [2]]);
  });

  test("the next one starts even if no further item arrives", async () => {
    const { clock, ask, seen } = createLine({ groups: 2, patienceMs: 100 });
    void ask(1);
    await seen();
    void ask(2);
    await seen();
    clock.advance(1_000);
    expect(await seen()).toEqual([[1], [2]]);
  });
});

describe("a client that asks again after its answer", () => {
  const gathering = () => createLine(undefined, { gatherMs: 3, items: 4 });

  /** Answers one item while others wait, so that as many clients are expected to ask again. */
  async function answerFirst(line: ReturnType<typeof createLine>, others: readonly number[]) {
    const first = line.ask(1);
    await line.seen();
    for (const one of others) void line.ask(one);
    await line.seen();
    line.groups[0]?.end.resolve();
    await first;
  }

  test("is waited for until as many ask as before", async () => {
    const line = gathering();
    await answerFirst(line, [2, 2, 2]);
    expect(await line.seen()).toEqual([[1]]);
    void line.ask(3);
    expect(await line.seen()).toEqual([[1], [2, 2, 2, 3]]);
  });

  test("is waited for at most `gatherMs`", async () => {
    const line = gathering();
    await answerFirst(line, [2, 2, 2]);
    await line.seen();
    line.clock.advance(2);
    expect(await line.seen()).toEqual([[1]]);
    line.clock.advance(1);
    expect(await line.seen()).toEqual([[1], [2, 2, 2]]);
  });

  test("is not waited for after a batch of fewer than four", async () => {
    const line = gathering();
    await answerFirst(line, [2, 2]);
    expect(await line.seen()).toEqual([[1], [2, 2]]);
  });

  test("is waited for only right after the answer; a later item is answered at once", async () => {
    const line = gathering();
    const asked = [1, 2, 3, 3].map(line.ask);
    await line.seen();
    line.groups[0]?.end.resolve();
    await Promise.all(asked);
    line.clock.advance(3);
    void line.ask(4);
    expect(await line.seen()).toEqual([[1, 2, 3, 3], [4]]);
  });

  test("is not waited for if the batch is full", async () => {
    const line = gathering();
    const asked = [1, 2, 3, 3].map(line.ask);
    await line.seen();
    const others = [2, 2, 2].map(line.ask);
    line.groups[0]?.end.resolve();
    await Promise.all(asked);
    expect(await line.seen()).toEqual([[1, 2, 3, 3]]);
    void line.ask(2);
    expect(await line.seen()).toEqual([
      [1, 2, 3, 3],
      [2, 2, 2, 2],
    ]);
    line.groups[1]?.end.resolve();
    await Promise.all(others);
  });

  test("is not waited for if it is the only client", async () => {
    const line = gathering();
    for (const one of [1, 2]) {
      const asked = line.ask(one);
      await line.seen();
      line.groups[one - 1]?.end.resolve();
      await asked;
    }
    expect(await line.seen()).toEqual([[1], [2]]);
  });
});

test("a batch is limited by each of its size bounds", async () => {
  const groups: (readonly [number, number])[][] = [];
  const ask = inBatches(
    createFakeClock(),
    async (items: readonly (readonly [number, number])[]) => {
      groups.push([...items]);
      return items;
    },
    {
      ...LIMITS,
      sizes: [
        { sizeOf: ([one]) => one, atMost: 4 },
        { sizeOf: ([, other]) => other, atMost: 4 },
      ],
    },
  );
  const asked = [
    [2, 1],
    [2, 1],
    [1, 3],
    [1, 2],
  ] as const;
  await Promise.all(asked.map(ask));
  expect(groups).toEqual([[asked[0], asked[1]], [asked[2]], [asked[3]]]);
});

const LIMITS = { items: 3, waiting: 5, waitMs: 2_000 };

/** Items are numbers that serve as sizes; a batch is answered when the test says so. */
function createLine(
  beside?: { groups: number; patienceMs: number },
  more: { gatherMs?: number; items?: number } = {},
) {
  const clock = createFakeClock();
  const groups: { items: readonly number[]; end: PromiseWithResolvers<void> }[] = [];
  const ask = inBatches(
    clock,
    async (items: readonly number[]) => {
      const end = Promise.withResolvers<void>();
      groups.push({ items, end });
      await end.promise;
      return items.map((one) => `answer ${one}`);
    },
    {
      ...LIMITS,
      ...more,
      sizes: [{ sizeOf: (one) => one, atMost: 10 }],
      ...(beside && { beside }),
    },
  );
  const seen = async () => {
    for (let n = 0; n < 10; n++) await turn();
    return groups.map(({ items }) => items);
  };
  return { clock, groups, ask, seen };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const UNAVAILABLE = { code: "unavailable" };
