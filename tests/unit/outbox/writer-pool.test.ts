import { expect, test } from "bun:test";

import type { Db, Tx } from "../../../db/client.ts";
import { systemClock, type Clock } from "../../../src/lib/clock.ts";
import { Problem } from "../../../src/lib/problem.ts";
import { createWriterPool, type WriterPool } from "../../../src/outbox/writer-pool.ts";
import { createFakeClock } from "../../support/clock.ts";

test("a partner runs its share at once and no more, and the other partners use the rest", async () => {
  const { begin, running } = createHeld({ connections: 4, share: 2, waitMs: 60_000 });
  const first = begin(1);
  for (const partner of [1, 1, 1, 2, 3, 4]) begin(partner);
  await Bun.sleep(0);
  expect(running()).toEqual([[1], [1], [2], [3]]);
  first.end.resolve();
  await first.done;
  await Bun.sleep(0);
  expect(running()).toEqual([[1], [1], [2], [3], [1]]);
});

test("a partner whose transaction ends begins one waiting transaction and not two, although connections are free", async () => {
  const { begin, running } = createHeld({ connections: 6, share: 2, waitMs: 60_000 });
  const first = begin(1);
  for (const partner of [1, 1, 1, 1]) begin(partner);
  await Bun.sleep(0);
  expect(running()).toEqual([[1], [1]]);
  first.end.resolve();
  await first.done;
  await Bun.sleep(0);
  expect(running()).toEqual([[1], [1], [1]]);
});

test("a transaction that is not admitted in time fails with `unavailable` and never runs", async () => {
  const { begin, running } = createHeld({ connections: 2, share: 1 });
  const first = begin(1);
  const refused = await begin(1).done;
  expect(refused).toBeInstanceOf(Problem);
  expect(refused).toMatchObject({ code: "unavailable", headers: { "Retry-After": "2" } });
  first.end.resolve();
  await first.done;
  expect(running()).toEqual([[1]]);
});

test("a transaction for several partners waits for all of them and holds no room meanwhile", async () => {
  const { begin, running } = createHeld({ connections: 4, share: 1, waitMs: 60_000 });
  const first = begin(1);
  begin(1, 2);
  begin(2);
  await Bun.sleep(0);
  expect(running()).toEqual([[1], [2]]);
  first.end.resolve();
});

test("after a lock timeout a partner runs one transaction at a time, until one succeeds", async () => {
  const { begin, running } = createHeld({ connections: 6, share: 2, waitMs: 60_000 });
  const locked = begin(1);
  locked.end.reject(LOCKED);
  expect(await locked.done).toBe(LOCKED);
  const probe = begin(1);
  begin(1);
  await Bun.sleep(0);
  expect(running()).toEqual([[1], [1]]);
  expect(await begin(1, 2).done).toMatchObject({ code: "unavailable" });
  probe.end.resolve();
  await probe.done;
  begin(1);
  begin(1, 2);
  await Bun.sleep(0);
  expect(running()).toEqual([[1], [1], [1], [1]]);
});

test("a failure other than a lock timeout does not reduce a partner's share", async () => {
  const { begin, running } = createHeld({ connections: 6, share: 2, waitMs: 60_000 });
  const failed = begin(1);
  failed.end.reject(new Error("duplicate key"));
  await failed.done;
  begin(1);
  begin(1);
  await Bun.sleep(0);
  expect(running()).toEqual([[1], [1], [1]]);
});

test("a lock timeout blocks a partner for `waitMs` if no transaction succeeds before", async () => {
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

test("a waiting transaction takes one slot if two end at once", async () => {
  const { begin, running } = createHeld({ connections: 2, share: 2, waitMs: 60_000 });
  const [first, second] = [begin(1), begin(1)];
  begin(1);
  await Bun.sleep(0);
  first.end.resolve();
  second.end.resolve();
  await Promise.all([first.done, second.done]);
  begin(2);
  await Bun.sleep(0);
  expect(running()).toEqual([[1], [1], [1], [2]]);
});

const WAIT_MS = 50;

/** Transactions that run until the test ends them. */
function createHeld(
  options: { connections: number; share: number; waitMs?: number },
  clock: Clock = systemClock,
) {
  const running: { partners: readonly number[]; end: PromiseWithResolvers<void> }[] = [];
  // The writer pool uses only this method of the database, and the test's work ignores the transaction.
  const db = { transaction: (work: (tx: Tx) => Promise<unknown>) => work({} as Tx) } as Db;
  const writerPool: WriterPool = createWriterPool(db, clock, { waitMs: WAIT_MS, ...options });
  const begin = (...partners: readonly number[]) => {
    const one = { partners, end: Promise.withResolvers<void>() };
    const done = writerPool.transaction(partners, async () => {
      running.push(one);
      await one.end.promise;
    });
    return { done: done.catch((error: unknown) => error), end: one.end };
  };
  return { begin, writerPool, running: () => running.map(({ partners }) => partners) };
}

const LOCKED = Object.assign(new Error("canceling statement due to lock timeout"), {
  code: "55P03",
});
