import { expect, test } from "bun:test";

import { LIMITS } from "../../../dispatcher/delivery/limits.ts";
import { deliveries } from "../../support/deliveries.ts";
import { until } from "../../support/network/receiver.ts";
import { record, reviewAction } from "../../support/outbox.ts";

const { database, stores, ending, subscribe, ...given } = deliveries();

const SUBSCRIPTIONS = 6;
const EVENTS = 10;
/** The size of the text of an event. Compressed it is small, so the size of its column tells nothing. */
const LARGE = 40_000;
const LIMIT = 400_000;
/** The number of events that fill a third of the limit, which requests to receivers that are not known may take. */
const SENT = 4;

test("large events of receivers that hang fill only their share of the memory, and all are delivered in order later", async () => {
  const sent: string[][] = Array.from({ length: SUBSCRIPTIONS }, () => []);
  const answers = Promise.withResolvers<void>();
  let begun = 0;
  let most = 0;
  const dispatcher = given.dispatcher({
    limits: { ...LIMITS, bytes: LIMIT },
    wrap: () => async (request) => {
      const nth = Number(new URL(request.url).pathname.slice(1));
      sent[nth]?.push(request.headers["X-SVC-Delivery"] ?? "");
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
  ending({
    stop() {
      clearInterval(watch);
      answers.resolve();
    },
  });
  const expected: string[][] = [];
  for (let n = 0; n < SUBSCRIPTIONS; n++) {
    const ordering = n % 2 === 0 ? "review" : "subscription";
    const { tenant } = await subscribe(`http://127.0.0.1/${n}`, { ordering });
    const actions = Array.from({ length: EVENTS }, () =>
      reviewAction(tenant, { metadata: { body: "x".repeat(LARGE) } }),
    );
    expected.push(actions.map(({ eventId }) => eventId));
    await stores.schedule.wake(await record(database.db, actions));
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
});
