import { afterAll, beforeAll, expect, test } from "bun:test";

import {
  createTestBox,
  createTestSchedule,
  startDispatcher,
  type RunningDispatcher,
} from "../../support/dispatch.ts";
import { holding } from "../../support/holding.ts";
import { insertSubscription, insertTenant, record, reviewAction } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const stores = fixture(createTestSchedule);
const receiver = fixture(() => Receiver.start());

test("a locked row of one subscription does not delay the commits of others", async () => {
  const targets = await Promise.all(Array.from({ length: OTHERS + 1 }, subscribed));
  const [one, ...others] = targets;
  if (one === undefined) throw new Error("There is a first one.");
  const release = await holding(
    database.connect(),
    ({ sql }) => sql`select from webhook_subscriptions where id = ${one.id} for update`,
  );
  const events = await emit(targets);
  await until("the others delivered", () => allDelivered(others));
  expect(await delivered(one.id)).toEqual([]);
  await release();
  await until("the locked one delivered", () => allDelivered([one]));
  expect(await delivered(one.id)).toEqual(events);
});

test("an internal error in a delivery is no failed attempt: the entry is sent later", async () => {
  const one = await subscribed();
  bugs = 1;
  const events = await emit([one]);
  await until("all delivered", () => allDelivered([one]));
  const attempts = await database.db.sql<{ event_id: string; attempt: number }[]>`
    select event_id, attempt from delivery_attempts where subscription_id = ${one.id} order by id`;
  expect(attempts.map((row) => ({ ...row }))).toEqual(
    events.map((event_id) => ({ event_id, attempt: 1 })),
  );
});

const OTHERS = 8;

const EVENTS = 5;

const box = createTestBox();

let dispatcher: RunningDispatcher;

/** The number of next deliveries that throw an internal error, which no receiver can cause. */
let bugs = 0;

beforeAll(async () => {
  dispatcher = startDispatcher({
    db: database.connect(),
    box,
    schedule: stores.schedule,
    wrap: (deliver) => async (request, signal) => {
      if (bugs-- > 0) throw new TypeError("undefined is not an object");
      return deliver(request, signal);
    },
  });
});

afterAll(async () => {
  await dispatcher.stop();
});

async function subscribed() {
  const tenant = await insertTenant(database.db);
  const url = `${receiver.url}/${tenant.partnerId}`;
  const deps = { db: database.db, box };
  const { subscriptionId } = await insertSubscription(deps, {
    partnerId: tenant.partnerId,
    url,
    // A failure count above 0 makes a success update the row of the subscription, which a test locks.
    failures: 1,
  });
  return { tenant, id: subscriptionId };
}

type Subscribed = Awaited<ReturnType<typeof subscribed>>;

/** Records `EVENTS` events for each subscription, in turn; answers the event ids of the first. */
async function emit(targets: readonly Subscribed[]): Promise<string[]> {
  const first: string[] = [];
  for (let n = 0; n < EVENTS; n++)
    for (const [i, { tenant }] of targets.entries()) {
      const action = reviewAction(tenant);
      if (i === 0) first.push(action.eventId);
      await stores.schedule.wake(await record(database.db, [action]));
    }
  return first;
}

async function delivered(id: string): Promise<string[]> {
  const rows = await database.db.sql<{ event_id: string }[]>`
    select event_id from delivery_attempts where subscription_id = ${id} and outcome = 'delivered' order by id`;
  return rows.map((row) => row.event_id);
}

async function allDelivered(targets: readonly Subscribed[]): Promise<boolean> {
  const counts = await Promise.all(targets.map(async ({ id }) => (await delivered(id)).length));
  return counts.every((count) => count === EVENTS);
}
