import { describe, expect, setSystemTime, test } from "bun:test";

import { serverTime } from "../../../db/server.ts";
import { addMs } from "../../../src/lib/clock.ts";
import { createProcessMetrics } from "../../../src/lib/metrics.ts";
import { PostgresClock } from "../../../src/lib/postgres-clock.ts";
import { startApi } from "../../support/api.ts";
import { wrongClock } from "../../support/clock.ts";
import {
  createTestBox,
  createTestSchedule,
  silentLog,
  startDispatcher,
} from "../../support/dispatch.ts";
import { insertSubscription, insertTenant, record, reviewAction } from "../../support/outbox.ts";
import { attemptsByPartition, partitionOf } from "../../support/partitions.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

describe("a machine whose clock is wrong", () => {
  test.each([10 * DAY_MS, -10 * DAY_MS])(
    "by %d ms writes its attempts under today, with Postgres' times",
    async (aheadMs) => {
      const { db } = database;
      await db.sql`delete from delivery_attempts`;
      const tenant = await insertTenant(db);
      const redis = await createTestSchedule();
      const receiver = await Receiver.start(() => 500);
      const { schedule } = redis;
      const { subscriptionId } = await insertSubscription(
        { db, box },
        { partnerId: tenant.partnerId, url: receiver.url },
      );
      const clock = await openClock(aheadMs);
      const dispatcher = startDispatcher({ db, box, schedule, clock, retryDelaysMs: [HOUR_MS] });
      try {
        await schedule.wake(await record(db, [reviewAction(tenant)]));
        await until(
          "the attempt is recorded",
          async () => Object.keys(await attemptsByPartition(db)).length > 0,
        );
        expect(await attemptsByPartition(db)).toEqual({ [partitionOf(new Date())]: 1 });
        const [written] = await db.sql<{ started: boolean; due: boolean }[]>`
          select a.started_at between now() - interval '10 minutes' and now() + interval '10 minutes' as started,
                 o.due_at between now() + interval '50 minutes' and now() + interval '70 minutes' as due
            from delivery_attempts a join outbox o on o.subscription_id = a.subscription_id
           where a.subscription_id = ${subscriptionId}`;
        expect(written).toEqual({ started: true, due: true });
      } finally {
        await dispatcher.stop();
        await receiver.stop();
        redis.close();
      }
    },
  );

  test("by a day, ahead or behind, signs users in and accepts their tokens", async () => {
    const tenants = await addTenants(database.db);
    for (const aheadMs of [DAY_MS, -DAY_MS])
      try {
        // The library that signs tokens reads the system's clock.
        setSystemTime(addMs(new Date(), aheadMs));
        const clock = await openClock(0);
        expect(Math.round(clock.skewMs / HOUR_MS)).toBe(aheadMs / HOUR_MS);
        const api = await startApi({ db: database.db, box, clock });
        const token = await api.login(tenants.superAdmin.email);
        expect((await api.call("GET", "/verify-token", { token })).status).toBe(200);
        await api.stop();
      } finally {
        setSystemTime();
      }
  });

  test("is reported by /readyz, which stays 200, and by the metrics", async () => {
    const clock = await openClock(60_000);
    const api = await startApi({ db: database.db, box, clock, clockSkewMs: () => clock.skewMs });
    const answer = await api.call("GET", "/readyz", { root: true });
    expect(answer.status).toBe(200);
    const skewMs = Number(answer.body["clock_skew_ms"]);
    expect(Math.round(skewMs / 10_000)).toBe(6);
    const metrics = createProcessMetrics({ clock, checks: {}, clockSkewMs: () => clock.skewMs });
    expect(await metrics.metrics()).toMatch(/^reviewrelay_clock_skew_seconds (59|60)(\.\d+)?$/mu);
    expect(clock.agrees).toBe(false);
    await api.stop();
  });
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** All processes of a database share one master key. */
const box = createTestBox();

/** Opens the clock of a process on a machine whose clock is ahead by this time. */
const openClock = (aheadMs: number) =>
  PostgresClock.open({
    machine: wrongClock(aheadMs),
    log: silentLog,
    ask: () => serverTime(database.db),
  });
