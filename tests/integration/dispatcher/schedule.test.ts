import { afterEach, expect, test } from "bun:test";

import { addMs } from "../../../src/lib/clock.ts";
import type { Wake } from "../../../src/outbox/schedule.ts";
import { createTestSchedule } from "../../support/dispatch.ts";
import { until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const stores = fixture(createTestSchedule);

test("a wake is due at once, also for a dispatcher with a clock an hour behind, and taken once", async () => {
  const { schedule } = stores;
  await schedule.wake([WAKE]);
  const behind = addMs(new Date(), -HOUR_MS);
  const taken = await schedule.takeDue(WAKE.shard, behind, 10);
  expect(taken).toEqual({ due: [WAKE.subscriptionId], nextAt: undefined });
  expect((await schedule.takeDue(WAKE.shard, behind, 10)).due).toEqual([]);
});

test("the wakes of one call are heard in their order, and each is stored in its shard", async () => {
  const { schedule } = stores;
  const heard: Wake[] = [];
  await schedule.onWake((wake) => void heard.push(wake));
  const wakes = [7, 8, 7].map((shard, n) => ({
    shard,
    subscriptionId: `01JYZ000000000000000000${n}AA`,
  }));
  await schedule.wake(wakes);
  await until("the wakes", () => heard.length >= wakes.length);
  expect(heard).toEqual(wakes);
  const due = async (shard: number) => (await schedule.takeDue(shard, new Date(), 10)).due;
  expect([await due(7), await due(8)]).toEqual([
    [wakes[0]?.subscriptionId ?? "", wakes[2]?.subscriptionId ?? ""],
    [wakes[1]?.subscriptionId ?? ""],
  ]);
});

test("a planned wake keeps its time, and never delays an earlier wake", async () => {
  const { schedule } = stores;
  const now = new Date();
  const at = addMs(now, HOUR_MS);
  await schedule.plan([{ ...WAKE, at }]);
  expect(await schedule.takeDue(WAKE.shard, now, 10)).toEqual({ due: [], nextAt: at });
  await schedule.wake([WAKE]);
  await schedule.plan([{ ...WAKE, at }]);
  expect((await schedule.takeDue(WAKE.shard, now, 10)).due).toEqual([WAKE.subscriptionId]);
});

test("a wake is published only under its own prefix", async () => {
  const other = await createTestSchedule();
  const heard: Wake[] = [];
  await stores.schedule.onWake((wake) => void heard.push(wake));
  // Redis delivers in the order of the commands, so the first wake would arrive before the second.
  await other.schedule.wake([{ ...WAKE, subscriptionId: "another" }]);
  await stores.schedule.wake([WAKE]);
  await until("the wake", () => heard.length > 0);
  expect(heard).toEqual([WAKE]);
  await other.flush();
  other.close();
});

test("`clear` removes the handled wakes and no others of their shard", async () => {
  const { schedule } = stores;
  const kept = { ...WAKE, subscriptionId: "01JYZ0000000000000000000BB" };
  await schedule.wake([WAKE, kept]);
  await schedule.clear([WAKE]);
  expect((await schedule.takeDue(WAKE.shard, new Date(), 10)).due).toEqual([kept.subscriptionId]);
});

const HOUR_MS = 3_600_000;

const WAKE: Wake = { subscriptionId: "01JYZ0000000000000000000AA", shard: 7 };

afterEach(() => stores.flush());
