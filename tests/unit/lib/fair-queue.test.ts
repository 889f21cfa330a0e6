import { describe, expect, test } from "bun:test";

import { FairQueue, type Trust } from "../../../src/lib/fair-queue.ts";

describe("a fair queue", () => {
  test.each([1, 2, 3])(
    "lets a party with 250 tasks, %i of them running, delay another by one task only",
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

  test("takes turns between the waiting parties, whatever number of tasks each has", async () => {
    const { bring, endOne, order } = stage({ running: 1, waiting: 256 });
    await bring("a", 4);
    await bring("b", 2);
    await bring("c", 3);
    for (let i = 0; i < 8; i++) await endOne();
    expect(order.join("")).toBe("abcabcaca");
  });

  test("uses every slot while only one party has tasks", async () => {
    const { bring, endOne, queue } = stage({ running: 3, waiting: 256 });
    await bring("a", 6);
    expect(queue.load).toEqual({ running: 3, waiting: 3 });
    await endOne();
    expect(queue.load).toEqual({ running: 3, waiting: 2 });
    for (let i = 0; i < 5; i++) await endOne();
    expect(queue.load).toEqual({ running: 0, waiting: 0 });
  });

  test("starts a newcomer at once beside a party that has its share, and never exceeds that share", async () => {
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

  test("rejects the newest task of the party with the most waiting for a newcomer, then that party's next one", async () => {
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

  test("continues after a task that fails", async () => {
    const { queue } = stage({ running: 1, waiting: 1 });
    const failing = queue.take(["a"], () => Promise.reject(new Error("broken")));
    const next = queue.take(["b"], () => Promise.resolve("done"));
    expect(await failing.catch((error: unknown) => String(error))).toBe("Error: broken");
    expect(await next).toBe("done");
    expect(queue.load).toEqual({ running: 0, waiting: 0 });
  });

  test("rejects a newcomer only if every slot is taken by another network", async () => {
    const { bring, refused, queue } = stage({ running: 1, waiting: 256 });
    await bring("running");
    for (let i = 0; i < 255; i++) await bring(`other-${i}`);
    await bring("other-0");
    await bring("newcomer");
    expect(refused).toEqual(["other-0"]);
    await bring("late newcomer");
    expect(refused).toEqual(["other-0", "late newcomer"]);
    expect(queue.load).toEqual({ running: 1, waiting: 256 });
  });
});

describe("a fair queue of networks within networks", () => {
  test("counts 256 networks inside one as that one, for turns and for the waiting room", async () => {
    const { bring, endOne, order, refused } = stage({ running: 1, waiting: 256 });
    for (let i = 0; i < 330; i++) await bring(`site/line/lan-${i % 256}`);
    expect(refused).toHaveLength(330 - 257);
    for (let newcomer = 0; newcomer < 5; newcomer++) {
      await bring(`one-${newcomer}`);
      await endOne();
      expect(order.at(-1)).toBe(`one-${newcomer}`);
      await endOne();
    }
    expect(refused.filter((party) => !party.startsWith("site/"))).toEqual([]);
  });

  test.each([
    ["another line of the site", "site/other/lan"],
    ["another network of the line", "site/line/other"],
  ])("takes turns inside the outer network too: %s waits for one task", async (_, neighbour) => {
    const { bring, endOne, order } = stage({ running: 1, waiting: 256 });
    await bring("site/line/lan", 100);
    await bring(neighbour);
    await endOne();
    expect(order.at(-1)).toBe(neighbour);
  });

  test("takes turns between sites first, then between their lines, then between the networks of a line", async () => {
    const { bring, endOne, order } = stage({ running: 1, waiting: 256 });
    await bring("first");
    for (const party of ["a/1/x", "a/1/y", "a/2/x", "b/1/x", "c"]) await bring(party, 2);
    for (let i = 0; i < 10; i++) await endOne();
    const turns = [
      "a/1/x",
      "b/1/x",
      "c",
      "a/2/x",
      "b/1/x",
      "c",
      "a/1/y",
      "a/2/x",
      "a/1/x",
      "a/1/y",
    ];
    expect(order.slice(1)).toEqual(turns);
  });

  test("makes room in the busiest line of the newcomer's site if no other site has more waiting", async () => {
    const { bring, refused, queue } = stage({ running: 1, waiting: 4 });
    await bring("first");
    await bring("a/1/x");
    await bring("a/1/y");
    await bring("b", 2);
    await bring("a/2/x");
    expect(refused).toEqual(["a/1/y"]);
    // Now every line has as many waiting tasks as the newcomer's would have with one more.
    await bring("a/2/y");
    expect(refused).toEqual(["a/1/y", "a/2/y"]);
    expect(queue.load).toEqual({ running: 1, waiting: 4 });
  });

  test("applies the share of running tasks to the outermost network", async () => {
    const { bring, order, queue } = stage({ running: 3, waiting: 256, share: 2 });
    for (const lan of ["x", "y", "z"]) await bring(`site/line/${lan}`);
    expect(queue.load).toEqual({ running: 2, waiting: 1 });
    await bring("other/line/lan");
    expect(order).toEqual(["site/line/x", "site/line/y", "other/line/lan"]);
  });

  test("has its full capacity again after rejections and finished tasks", async () => {
    const { bring, endOne, order, refused, queue } = stage({ running: 1, waiting: 2 });
    for (let round = 1; round <= 3; round++) {
      await bring("a/1/x");
      await bring("a/1/y");
      await bring("a/2/x");
      await bring("b");
      expect(refused).toHaveLength(round);
      for (let i = 0; i < 3; i++) await endOne();
      expect(queue.load).toEqual({ running: 0, waiting: 0 });
    }
    expect(order).toHaveLength(9);
  });
});

describe("suspects in a fair queue", () => {
  test("leave a slot to everybody else, whatever their networks", async () => {
    const { bring, order, queue } = stage({ running: 2, waiting: 512, share: 1 });
    for (let i = 0; i < 330; i++) await bring(`suspect-${i}`, 1, "suspect");
    expect(queue.load).toEqual({ running: 1, waiting: 329 });
    await bring("newcomer");
    expect(order).toEqual(["suspect-0", "newcomer"]);
  });

  test("come after all others", async () => {
    const { bring, endOne, order } = stage({ running: 1, waiting: 512 });
    for (let i = 0; i < 3; i++) await bring(`suspect-${i}`, 1, "suspect");
    for (let i = 0; i < 2; i++) await bring(`newcomer-${i}`);
    await bring("person", 1, "trusted");
    for (let i = 0; i < 5; i++) await endOne();
    expect(order).toEqual([
      "suspect-0",
      "newcomer-0",
      "person",
      "newcomer-1",
      "suspect-1",
      "suspect-2",
    ]);
  });

  test("take no second slot beside a network that has its share, and get their share when it ends", async () => {
    const { bring, endOne, order, queue } = stage({ running: 2, waiting: 512, share: 1 });
    await bring("line", 2);
    await bring("suspect", 2, "suspect");
    expect(order).toEqual(["line"]);
    await bring("person", 1, "trusted");
    expect(order).toEqual(["line", "person"]);
    for (let i = 0; i < 3; i++) await endOne();
    expect(order).toEqual(["line", "person", "line", "suspect"]);
    await endOne();
    expect(order.at(-1)).toBe("suspect");
    await endOne();
    expect(queue.load).toEqual({ running: 0, waiting: 0 });
  });
});

describe("for two seconds after a trusted client, a fair queue", () => {
  test("keeps a slot for the next one, whatever the networks of strangers", async () => {
    const { bring, endOne, order, queue, clock } = stage({ running: 2, waiting: 512, share: 1 });
    for (let i = 0; i < 330; i++) await bring(`stranger-${i}`);
    await bring("person-0", 1, "trusted");
    for (let i = 0; i < 2; i++) await endOne();
    expect(order.slice(2)).toEqual(["person-0", "stranger-2"]);
    await endOne();
    expect(queue.load).toEqual({ running: 1, waiting: 327 });
    clock.now = 1_999;
    await bring("person-1", 1, "trusted");
    expect(order.at(-1)).toBe("person-1");
  });

  test.each([
    [1_999, 1],
    [2_000, 2],
  ])("and no longer: at %i ms, %i run", async (now, running) => {
    const { bring, endOne, queue, clock } = stage({ running: 2, waiting: 512, share: 1 });
    await bring("person", 1, "trusted");
    for (let i = 0; i < 4; i++) await bring(`stranger-${i}`);
    await endOne();
    expect(queue.load).toEqual({ running: 1, waiting: 3 });
    clock.now = now;
    await endOne();
    expect(queue.load.running).toBe(running);
  });
});

describe("trusted clients in a fair queue", () => {
  test.each([1, 2])(
    "are delayed by one of 330 tasks of strangers, whatever their networks (%i running)",
    async (running) => {
      const { bring, endOne, order } = stage({ running, waiting: 512 });
      for (let i = 0; i < 330; i++) await bring(`stranger-${i}`);
      for (let person = 0; person < 5; person++) {
        await bring(`person-${person}`, 1, "trusted");
        await endOne();
        expect(order.at(-1)).toBe(`person-${person}`);
        await endOne();
      }
    },
  );

  test("take turns with strangers, so that neither waits for all of the others", async () => {
    const { bring, endOne, order } = stage({ running: 1, waiting: 512 });
    await bring("first");
    for (let i = 0; i < 3; i++) await bring(`person-${i}`, 1, "trusted");
    for (let i = 0; i < 3; i++) await bring(`stranger-${i}`);
    for (let i = 0; i < 6; i++) await endOne();
    expect(order.slice(1)).toEqual([0, 1, 2].flatMap((i) => [`person-${i}`, `stranger-${i}`]));
  });

  test("are passed over while their network has its share", async () => {
    const { bring, endOne, order, clock } = stage({ running: 3, waiting: 512, share: 1 });
    await bring("stranger-1");
    await bring("line", 2, "trusted");
    clock.now = 2_000;
    await bring("stranger-2");
    await bring("stranger-3");
    expect(order).toEqual(["stranger-1", "line", "stranger-2"]);
    await endOne();
    expect(order.at(-1)).toBe("stranger-3");
    await endOne();
    expect(order.at(-1)).toBe("line");
  });

  test("take a place of a stranger in a full waiting room", async () => {
    const { bring, refused } = stage({ running: 1, waiting: 4 });
    for (let i = 0; i < 5; i++) await bring(`stranger-${i}`);
    await bring("person", 1, "trusted");
    expect(refused).toEqual(["stranger-4"]);
  });
});

/**
 * Tasks that end when the test ends them. A party is a path such as `site/line/lan`; `order` lists the parties in the
 * order in which their tasks started.
 */
function stage(limits: { running: number; waiting: number; share?: number }) {
  const { share = limits.running } = limits;
  const clock = { now: 0 };
  const rejection = () => new Error("full");
  const queue = new FairQueue({ ...limits, share, rejection }, () => clock.now);
  const order: string[] = [];
  const refused: string[] = [];
  const ends: (() => void)[] = [];
  const settle = async () => {
    for (let i = 0; i < 10; i++) await Promise.resolve();
  };
  return {
    queue,
    clock,
    order,
    refused,
    async bring(party: string, count = 1, trust: Trust = "unknown") {
      const task = () => {
        order.push(party);
        return new Promise<void>((resolve) => ends.push(resolve));
      };
      for (let i = 0; i < count; i++)
        queue.take(party.split("/"), task, trust).catch(() => refused.push(party));
      await settle();
    },
    async endOne() {
      ends.shift()?.();
      await settle();
    },
  };
}
