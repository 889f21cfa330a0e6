import { expect, test } from "bun:test";

import { addMs, systemClock, type Clock } from "../../../src/lib/clock.ts";
import { deliveries } from "../../support/deliveries.ts";
import { until } from "../../support/network/receiver.ts";

const HOUR_MS = 3_600_000;

const { database, dispatcher, receiver, subscribe, emit } = deliveries();

test.each([HOUR_MS, -HOUR_MS])(
  "a dispatcher with a clock that is wrong by %d ms retries when PostgreSQL's clock says that it is due",
  async (skewMs) => {
    const target = await receiver((_, count) => (count === 0 ? 500 : 200));
    const one = await subscribe(target.url);
    const clock: Clock = { ...systemClock, now: () => addMs(systemClock.now(), skewMs) };
    dispatcher({ retryDelaysMs: [DELAY_MS, DELAY_MS, DELAY_MS], clock });
    await emit(one);
    await until("both attempts", () => target.received.length === 2);
    const attempts = () => database.db.sql<
      { outcome: string; planned: boolean | null; late: boolean | null; present: boolean }[]
    >`
      select outcome, next_attempt_at >= started_at + ${DELAY_MS} * interval '1 millisecond' as planned,
             started_at >= lag(next_attempt_at) over (order by id) as late,
             started_at between now() - interval '1 minute' and now() as present
        from delivery_attempts where subscription_id = ${one.id} order by id`;
    await until("both records", async () => (await attempts()).length === 2);
    expect([...(await attempts())]).toEqual([
      { outcome: "retry", planned: true, late: null, present: true },
      { outcome: "delivered", planned: null, late: true, present: true },
    ]);
  },
);

const DELAY_MS = 300;
