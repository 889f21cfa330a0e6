import { expect, test } from "bun:test";

import { LIMITS } from "../../../dispatcher/delivery/limits.ts";
import { createTestBox, createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import { fixture } from "../../support/fixture.ts";
import { until } from "../../support/network/receiver.ts";
import { insertSubscription, insertTenant, record, reviewAction } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";

const database = fixture(createDatabase);
const stores = fixture(createTestSchedule);

const SUBSCRIPTIONS = 6;
const EVENTS = 10;
/** The size of the text of an event. Compressed it is small, so the size of its column tells nothing. */
const LARGE = 40_000;
const LIMIT = 400_000;
/** The number of events that fill a third of the limit, which requests to receivers that are not known may take. */
const SENT = 4;

test("large events of receivers that hang fill only their share of the memory, and all are delivered in order later", async () => {
  const { db } = database;
  const { schedule } = stores;
  const box = createTestBox();
  const sent = new Map<number, string[]>();
  const answers = Promise.withResolvers<void>();
  let begun = 0;
  let most = 0;
  const dispatcher = startDispatcher({
    db,
    box,
    schedule,
    limits: { ...LIMITS, bytes: LIMIT },
    wrap: () => async (request) => {
      const partnerId = Number(new URL(request.url).pathname.slice(1));
      const ids = sent.get(partnerId) ?? [];
      sent.set(partnerId, [...ids, request.headers["X-SVC-Delivery"] ?? ""]);
      most = Math.max(most, dispatcher.workload.bytes);
      begun += 1;
      await answers.promise;
      const answer = { statusCode: 200, responseHeaders: {}, responseExcerpt: "" };
      return {
        kind: "accepted",
        ...answer,
        responseTruncated: false,
        durationMs: 1,
        resent: false,
      };
    },
  });
  const watch = setInterval(() => (most = Math.max(most, dispatcher.workload.bytes)), 1);
  try {
    const expected = new Map<number, string[]>();
    for (let n = 0; n < SUBSCRIPTIONS; n++) {
      const tenant = await insertTenant(db);
      const { partnerId } = tenant;
      await insertSubscription(
        { db, box },
        {
          partnerId,
          url: `http://127.0.0.1/${partnerId}`,
          ordering: n % 2 === 0 ? "review" : "subscription",
        },
      );
      const actions = Array.from({ length: EVENTS }, () =>
        reviewAction(tenant, { metadata: { body: "x".repeat(LARGE) } }),
      );
      expected.set(
        partnerId,
        actions.map(({ eventId }) => eventId),
      );
      await schedule.wake(await record(db, actions));
    }
    await until("a third is sent", () => begun === SENT);
    // What follows is read ahead now, as far as there is room.
    await Bun.sleep(300);
    answers.resolve();
    await until("all is delivered", () => begun === SUBSCRIPTIONS * EVENTS);
    await until("the memory is free", () => dispatcher.workload.bytes === 0);
    expect(most).toBeGreaterThan(LIMIT / 3);
    expect(most).toBeLessThanOrEqual((LIMIT * 3) / 4);
    expect(sent).toEqual(expected);
  } finally {
    clearInterval(watch);
    answers.resolve();
    await dispatcher.stop();
  }
});
