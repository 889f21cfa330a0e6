import { expect, test } from "bun:test";

import { addMs, systemClock, type Clock } from "../../../src/lib/clock.ts";
import { createTestBox, createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import { insertSubscription, insertTenant, record, reviewAction } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const HOUR_MS = 3_600_000;

const database = fixture(createDatabase);
const stores = fixture(createTestSchedule);
const box = fixture(() => createTestBox());

test.each([HOUR_MS, -HOUR_MS])(
  "a dispatcher with a clock that is wrong by %d ms retries when PostgreSQL's clock says that it is due",
  async (skewMs) => {
    const receiver = await Receiver.start((_, count) => (count === 0 ? 500 : 200));
    const tenant = await insertTenant(database.db);
    const { subscriptionId } = await insertSubscription(
      { db: database.db, box },
      { partnerId: tenant.partnerId, url: receiver.url },
    );
    const clock: Clock = { ...systemClock, now: () => addMs(systemClock.now(), skewMs) };
    const dispatcher = startDispatcher({
      db: database.connect(),
      box,
      schedule: stores.schedule,
      retryDelaysMs: [DELAY_MS, DELAY_MS, DELAY_MS],
      clock,
    });
    await stores.schedule.wake(await record(database.db, [reviewAction(tenant)]));
    await until("both attempts", () => receiver.received.length === 2);
    const attempts = () => database.db.sql<
      { outcome: string; planned: boolean | null; late: boolean | null; present: boolean }[]
    >`
      select outcome, next_attempt_at >= started_at + ${DELAY_MS} * interval '1 millisecond' as planned,
             started_at >= lag(next_attempt_at) over (order by id) as late,
             started_at between now() - interval '1 minute' and now() as present
        from delivery_attempts where subscription_id = ${subscriptionId} order by id`;
    await until("both records", async () => (await attempts()).length === 2);
    expect([...(await attempts())]).toEqual([
      { outcome: "retry", planned: true, late: null, present: true },
      { outcome: "delivered", planned: null, late: true, present: true },
    ]);
    await dispatcher.stop();
    await receiver.stop();
  },
);

const DELAY_MS = 1_500;
