import { expect, test } from "bun:test";

import type { Db, Tx } from "../../../db/client.ts";
import { systemClock, type Clock } from "../../../src/lib/clock.ts";
import { Problem } from "../../../src/lib/problem.ts";
import { createWriterPool, type WriterPool } from "../../../src/outbox/writer-pool.ts";
import { createFakeClock } from "../../support/clock.ts";

const WAIT_MS = 50;

/** Transactions that are under way until they are told to end. */
function createHeld(
  options: { connections: number; share: number; waitMs?: number },
  clock: Clock = systemClock,
) {
  const under: { partners: readonly number[]; end: PromiseWithResolvers<void> }[] = [];
  // Of the pool only this is used, and what it runs is the test's.
  const db = { transaction: (work: (tx: Tx) => Promise<unknown>) => work({} as Tx) } as Db;
  const writerPool: WriterPool = createWriterPool(db, clock, { waitMs: WAIT_MS, ...options });
  const begin = (...partners: readonly number[]) => {
    const one = { partners, end: Promise.withResolvers<void>() };
    const done = writerPool.transaction(partners, async () => {
      under.push(one);
      await one.end.promise;
    });
    return { done: done.catch((error: unknown) => error), end: one.end };
  };
  return { begin, writerPool, under: () => under.map(({ partners }) => partners) };
}

const LOCKED = Object.assign(new Error("canceling statement due to lock timeout"), {
  code: "55P03",
});

test("a partner has its share at once and no more, and the others have the rest", async () => {
  const { begin, under } = createHeld({ connections: 4, share: 2, waitMs: 60_000 });
  const first = begin(1);
  for (const partner of [1, 1, 1, 2, 3, 4]) begin(partner);
  await Bun.sleep(0);
  expect(under()).toEqual([[1], [1], [2], [3]]);
  first.end.resolve();
  await first.done;
  await Bun.sleep(0);
  expect(under()).toEqual([[1], [1], [2], [3], [1]]);
});

test("whoever finds no room in time is refused, and takes none later", async () => {
  const { begin, under } = createHeld({ connections: 2, share: 1 });
  const first = begin(1);
  const refused = await begin(1).done;
  expect(refused).toBeInstanceOf(Problem);
  expect(refused).toMatchObject({ code: "unavailable", headers: { "Retry-After": "2" } });
  first.end.resolve();
  await first.done;
  expect(under()).toEqual([[1]]);
});

test("whoever is for several partners waits for all of them and holds none meanwhile", async () => {
  const { begin, under } = createHeld({ connections: 4, share: 1, waitMs: 60_000 });
  const first = begin(1);
  begin(1, 2);
  begin(2);
  await Bun.sleep(0);
  expect(under()).toEqual([[1], [2]]);
  first.end.resolve();
});

test("after a lock that was not had in time a partner goes one at a time, until one comes through", async () => {
  const { begin, under } = createHeld({ connections: 6, share: 2, waitMs: 60_000 });
  const locked = begin(1);
  locked.end.reject(LOCKED);
  expect(await locked.done).toBe(LOCKED);
  const probe = begin(1);
  begin(1);
  await Bun.sleep(0);
  expect(under()).toEqual([[1], [1]]);
  expect(await begin(1, 2).done).toMatchObject({ code: "unavailable" });
  probe.end.resolve();
  await probe.done;
  begin(1);
  begin(1, 2);
  await Bun.sleep(0);
  expect(under()).toEqual([[1], [1], [1], [1]]);
});

test("another failure than a lock leaves a partner its share", async () => {
  const { begin, under } = createHeld({ connections: 6, share: 2, waitMs: 60_000 });
  const failed = begin(1);
  failed.end.reject(new Error("duplicate key"));
  await failed.done;
  begin(1);
  begin(1);
  await Bun.sleep(0);
  expect(under()).toEqual([[1], [1], [1]]);
});

test("a lock that was not had in time counts for as long as one waits, if nobody comes through", async () => {
  const clock = createFakeClock();
  const { begin, writerPool } = createHeld({ connections: 6, share: 2 }, clock);
  const locked = begin(1);
  locked.end.reject(LOCKED);
  await locked.done;
  clock.advance(WAIT_MS - 1);
  expect([writerPool.isBlocked([2, 1]), writerPool.isBlocked([2])]).toEqual([true, false]);
  clock.advance(1);
  expect(writerPool.isBlocked([1])).toBe(false);
});

test("whoever waited has one room, though two end at once", async () => {
  const { begin, under } = createHeld({ connections: 2, share: 2, waitMs: 60_000 });
  const [first, second] = [begin(1), begin(1)];
  begin(1);
  await Bun.sleep(0);
  first.end.resolve();
  second.end.resolve();
  await Promise.all([first.done, second.done]);
  begin(2);
  await Bun.sleep(0);
  expect(under()).toEqual([[1], [1], [1], [2]]);
});
