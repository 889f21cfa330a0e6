import { describe, expect, test } from "bun:test";

import { Heads, RecentHeads } from "../../../../dispatcher/store/heads.ts";
import { createFakeClock } from "../../../support/clock.ts";

const whole = (shard: number) => ({ shard, fromId: "", after: 0, untilId: "~" });

describe("a sweep", () => {
  test("walks a shard as a whole while no head is known", () => {
    expect(new Heads().stretches([3, 5])).toEqual([whole(3), whole(5)]);
  });

  test("walks up to each subscription whose head is known, and on from there", () => {
    const heads = new Heads();
    heads.saw({ id: "B", shard: 3 }, 5_000);
    heads.saw({ id: "A", shard: 3 }, 700);
    heads.saw({ id: "C", shard: 4 }, 900);
    expect(heads.stretches([3])).toEqual([
      { shard: 3, fromId: "", after: 0, untilId: "A" },
      { shard: 3, fromId: "A", after: 700, untilId: "B" },
      { shard: 3, fromId: "B", after: 5_000, untilId: "~" },
    ]);
  });

  test("is not told of a head that has next to nothing before it", () => {
    const heads = new Heads();
    heads.saw({ id: "A", shard: 3 }, 19);
    expect(heads.stretches([3])).toEqual([whole(3)]);
    heads.saw({ id: "A", shard: 3 }, 20);
    expect(heads.stretches([3])).toHaveLength(2);
  });
});

test("a head never goes back", () => {
  const heads = new Heads();
  heads.saw({ id: "A", shard: 3 }, 900);
  heads.saw({ id: "A", shard: 3 }, 700);
  expect(heads.settledOf("A")).toBe(900);
});

test("of many subscriptions the ones that were seen last are remembered, and swept from their heads", () => {
  const heads = new Heads();
  for (let n = 0; n <= 10_000; n++) heads.saw({ id: `S${n}`, shard: 3 }, 1_000);
  expect([heads.settledOf("S0"), heads.settledOf("S1")]).toEqual([0, 1_000]);
  expect(heads.stretches([3])).toHaveLength(10_001);
});

describe("heads are forgotten", () => {
  const see = (heads: Heads) => {
    heads.saw({ id: "A", shard: 3 }, 900);
    return Promise.resolve();
  };
  const look = (heads: Heads) => Promise.resolve(heads.settledOf("A"));

  test("when a statement fails: the server may hold again what was settled", async () => {
    const recent = new RecentHeads(createFakeClock());
    await recent.use(see);
    expect(await recent.use(look)).toBe(900);
    const failing = recent.use(() => Promise.reject(new Error("gone")));
    expect(failing).rejects.toThrow("gone");
    await failing.catch(() => {});
    expect(await recent.use(look)).toBe(0);
  });

  test("after five minutes", async () => {
    const clock = createFakeClock();
    const recent = new RecentHeads(clock);
    await recent.use(see);
    clock.advance(300_000);
    expect(await recent.use(look)).toBe(900);
    clock.advance(1);
    expect(await recent.use(look)).toBe(0);
  });
});
