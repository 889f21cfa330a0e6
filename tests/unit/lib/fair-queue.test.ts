import { describe, expect, test } from "bun:test";

import { FairQueue } from "../../../src/lib/fair-queue.ts";

/** Tasks that end when told to; `order` has the parties in the order in which their tasks began. */
function stage(limits: { running: number; waiting: number; share?: number }) {
  const { share = limits.running } = limits;
  const queue = new FairQueue({ ...limits, share, refusal: () => new Error("full") });
  const order: string[] = [];
  const refused: string[] = [];
  const ends: (() => void)[] = [];
  const settle = async () => {
    for (let i = 0; i < 10; i++) await Promise.resolve();
  };
  return {
    queue,
    order,
    refused,
    async bring(party: string, count = 1) {
      for (let i = 0; i < count; i++)
        queue
          .take(party, () => {
            order.push(party);
            return new Promise<void>((resolve) => ends.push(resolve));
          })
          .catch(() => refused.push(party));
      await settle();
    },
    async endOne() {
      ends.shift()?.();
      await settle();
    },
  };
}

describe("a fair queue", () => {
  test.each([1, 2, 3])(
    "let a party that has 250 tasks, %i of them running, delay another by one task alone",
    async (running) => {
      const { bring, endOne, order } = stage({ running, waiting: 256 });
      await bring("crowd", 250);
      for (let newcomer = 0; newcomer < 5; newcomer++) {
        await bring(`one-${newcomer}`);
        await endOne();
        expect(order.at(-1)).toBe(`one-${newcomer}`);
        await endOne();
      }
    },
  );

  test("go round among those that wait, whoever has how many", async () => {
    const { bring, endOne, order } = stage({ running: 1, waiting: 256 });
    await bring("a", 4);
    await bring("b", 2);
    await bring("c", 3);
    for (let i = 0; i < 8; i++) await endOne();
    expect(order.join("")).toBe("abcabcaca");
  });

  test("leave no place free while a party alone has tasks", async () => {
    const { bring, endOne, queue } = stage({ running: 3, waiting: 256 });
    await bring("a", 6);
    expect(queue.load).toEqual({ running: 3, waiting: 3 });
    await endOne();
    expect(queue.load).toEqual({ running: 3, waiting: 2 });
    for (let i = 0; i < 5; i++) await endOne();
    expect(queue.load).toEqual({ running: 0, waiting: 0 });
  });

  test("have a newcomer begin at once beside a party that has its share, and that party no more than it", async () => {
    const { bring, endOne, order, queue } = stage({ running: 3, waiting: 256, share: 2 });
    await bring("crowd", 5);
    expect(queue.load).toEqual({ running: 2, waiting: 3 });
    await bring("one");
    expect(order).toEqual(["crowd", "crowd", "one"]);
    await bring("other");
    expect(queue.load).toEqual({ running: 3, waiting: 4 });
    await endOne();
    expect(order.at(-1)).toBe("other");
    for (let i = 0; i < 2; i++) await endOne();
    expect(order.slice(4)).toEqual(["crowd", "crowd"]);
    expect(queue.load).toEqual({ running: 3, waiting: 1 });
    await endOne();
    expect(queue.load).toEqual({ running: 2, waiting: 1 });
    for (let i = 0; i < 3; i++) await endOne();
    expect(queue.load).toEqual({ running: 0, waiting: 0 });
  });

  test("take the room of a newcomer from whoever has most waiting, and refuse that one's own next", async () => {
    const { bring, refused, queue } = stage({ running: 1, waiting: 4 });
    await bring("crowd", 5);
    await bring("crowd");
    expect(refused).toEqual(["crowd"]);
    await bring("other");
    expect(refused).toEqual(["crowd", "crowd"]);
    expect(queue.load).toEqual({ running: 1, waiting: 4 });
    await bring("other");
    expect(refused).toHaveLength(3);
    await bring("other");
    expect(refused).toEqual(["crowd", "crowd", "crowd", "other"]);
  });

  test("refuse a newcomer where everybody has one waiting", async () => {
    const { bring, refused } = stage({ running: 1, waiting: 2 });
    await bring("a");
    await bring("b");
    await bring("c");
    await bring("d");
    expect(refused).toEqual(["d"]);
  });

  test("go on after a task that fails", async () => {
    const { queue } = stage({ running: 1, waiting: 1 });
    const failing = queue.take("a", () => Promise.reject(new Error("broken")));
    const next = queue.take("b", () => Promise.resolve("done"));
    expect(await failing.catch((error: unknown) => String(error))).toBe("Error: broken");
    expect(await next).toBe("done");
    expect(queue.load).toEqual({ running: 0, waiting: 0 });
  });
});
