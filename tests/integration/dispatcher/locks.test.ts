import { expect, test } from "bun:test";

import { deliveries, type Subscribed } from "../../support/deliveries.ts";
import { holding } from "../../support/holding.ts";
import { until } from "../../support/network/receiver.ts";

const { database, dispatcher, receiver, subscribe, emit, attemptsOf } = deliveries();

test("a locked row of one subscription does not delay the commits of others", async () => {
  const { url } = await receiver();
  // A failure count above 0 makes a success update the row of the subscription.
  const all = await Promise.all(
    Array.from({ length: OTHERS + 1 }, () => subscribe(url, { failures: 1 })),
  );
  const [one, ...others] = all;
  if (one === undefined) throw new Error("There is a first one.");
  const release = await holding(
    database.connect(),
    ({ sql }) => sql`select from webhook_subscriptions where id = ${one.id} for update`,
  );
  dispatcher({ db: database.connect() });
  const events: string[] = [];
  for (let n = 0; n < EVENTS; n++) {
    events.push(...(await emit(one)));
    for (const other of others) await emit(other);
  }
  for (const other of others)
    await until("the others delivered", async () => (await delivered(other)).length === EVENTS);
  expect(await delivered(one)).toEqual([]);
  await release();
  await until("the locked one delivered", async () => (await delivered(one)).length === EVENTS);
  expect(await delivered(one)).toEqual(events);
});

test("an internal error in a delivery is no failed attempt: the entry is sent later", async () => {
  const { url } = await receiver();
  const one = await subscribe(url);
  // No receiver can cause this error.
  let bugs = 1;
  dispatcher({
    wrap: (deliver) => async (request, signal) => {
      if (bugs-- > 0) throw new TypeError("undefined is not an object");
      return deliver(request, signal);
    },
  });
  const events = await emit(one, EVENTS);
  await until("all delivered", async () => (await delivered(one)).length === EVENTS);
  const attempts = await attemptsOf(one.id);
  expect(attempts.map((row) => [row.event_id, row.attempt])).toEqual(events.map((id) => [id, 1]));
});

const OTHERS = 8;

const EVENTS = 5;

const delivered = async ({ id }: Subscribed) =>
  (await attemptsOf(id)).flatMap((row) => (row.outcome === "delivered" ? [row.event_id] : []));
