import { afterEach, expect, test } from "bun:test";

import { systemClock } from "../../../src/lib/clock.ts";
import { detectIncidents } from "../../support/alerts.ts";
import {
  createTestBox,
  createTestSchedule,
  silentLog,
  startDispatcher,
  type RunningDispatcher,
} from "../../support/dispatch.ts";
import {
  insertSubscription,
  insertTenant,
  record,
  reviewAction,
  type Tenant,
} from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const stores = fixture(createTestSchedule);
const receiver = fixture(() =>
  Receiver.start(async () => {
    await Bun.sleep(ANSWER_MS);
    return answered;
  }),
);

test("20 consecutive failures disable a subscription exactly once, while its shard moves between two dispatchers", async () => {
  const all = await Promise.all(Array.from({ length: SUBSCRIPTIONS }, () => subscribed(0)));
  const first = dispatcher();
  await Promise.all(all.map(({ tenant }) => emit(tenant, 22)));
  // The second dispatcher first takes half of the shards, and the others when the first one stops.
  dispatcher();
  await until("some failures", () => receiver.received.length > SUBSCRIPTIONS * 5);
  await first.stop();
  const ids = all.map(({ id }) => id);
  const disabled = async () =>
    (
      await database.db
        .sql`select from webhook_subscriptions where id = any(${ids}::text[]) and state = 'disabled'`
    ).length;
  await until("all disabled", async () => (await disabled()) === SUBSCRIPTIONS);
  for (const id of ids)
    expect(await stateOf(id)).toMatchObject({ state: "disabled", failures: 20, recorded: 20 });
  await until("all reported", () => reported.length >= SUBSCRIPTIONS);
  expect(reported.toSorted()).toEqual(ids.toSorted());
  await detectIncidents(
    { db: database.db, clock: systemClock, log: silentLog, box, config },
    false,
  );
  const mails = await database.db.sql`select from mails where kind = 'webhook_alert'`;
  // Each partner has one owner, so there is one mail per subscription.
  expect(mails).toHaveLength(SUBSCRIPTIONS);
});

test("a restart between the 19th and the 20th failure does not change when a subscription is disabled", async () => {
  const { tenant, id } = await subscribed(17);
  const before = dispatcher();
  await emit(tenant, 2);
  await until("19 failures", async () => (await stateOf(id))?.failures === 19);
  expect(await stateOf(id)).toMatchObject({ state: "active", failures: 19, recorded: 2 });
  await before.stop();
  dispatcher();
  await emit(tenant, 2);
  await until("disabled", async () => (await stateOf(id))?.state === "disabled");
  expect(await stateOf(id)).toMatchObject({ state: "disabled", failures: 20, recorded: 3 });
  await until("reported", () => reported.length > 0);
  expect(reported).toEqual([id]);
});

for (const status of [410, 500])
  test(`${status} of many reviews at a time disables a subscription with exactly 20 events given up`, async () => {
    answered = status;
    for (const failures of [0, 11, 19]) {
      const { tenant, id } = await subscribed(failures, "review");
      const one = dispatcher();
      await emitReviews(tenant, 60);
      await until("disabled", async () => (await stateOf(id))?.state === "disabled");
      // Deliveries that are under way end, and are recorded before the dispatcher stops.
      await one.stop();
      expect(await stateOf(id)).toEqual({
        state: "disabled",
        failures: 20,
        recorded: 20 - failures,
        delivered: 0,
      });
    }
  });

test("19 failures of many reviews at a time leave a subscription active, and a success ends the run", async () => {
  answered = 410;
  const { tenant, id } = await subscribed(0, "review");
  dispatcher();
  await emitReviews(tenant, 19);
  await until("19 failures", async () => (await stateOf(id))?.failures === 19);
  answered = 200;
  await emitReviews(tenant, 30);
  await until("delivered", async () => (await stateOf(id))?.delivered === 30);
  expect(await stateOf(id)).toMatchObject({ state: "active", failures: 0, recorded: 19 });
});

/** The status of every response of the receiver. */
let answered = 410;

/** The response time of the failing receiver, long enough that shards change hands during attempts. */
const ANSWER_MS = 40;

const SUBSCRIPTIONS = 32;

const REVIEWS = 60;

const box = createTestBox();

const config = { serverRoot: "https://reviews.example" };

/** The subscriptions that the logs of all dispatchers report as disabled. */
let reported: unknown[] = [];

const running: RunningDispatcher[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.stop()));
  reported = [];
  answered = 410;
});

function dispatcher(): RunningDispatcher {
  const log = {
    ...silentLog,
    warn(event: string, fields: Readonly<Record<string, unknown>> = {}) {
      if (event === "subscription.disabled") reported.push(fields["subscription_id"]);
    },
  };
  const one = startDispatcher({ db: database.connect(), box, schedule: stores.schedule, log });
  running.push(one);
  return one;
}

/** Adds a subscription with `failures` consecutive failures, for a partner with one owner. */
async function subscribed(
  failures: number,
  ordering: "subscription" | "review" = "subscription",
): Promise<{ tenant: Tenant; id: string }> {
  const tenant = await insertTenant(database.db, REVIEWS);
  await database.db.sql`
    insert into users (company_id, email, name, role, is_active, created_at, updated_at)
    values (${tenant.partnerId}, ${`${tenant.partnerId}@partner.example`}, 'Owner', 'partner_owner', true, now(), now())`;
  const { subscriptionId } = await insertSubscription(
    { db: database.db, box },
    { partnerId: tenant.partnerId, url: receiver.url, failures, ordering },
  );
  return { tenant, id: subscriptionId };
}

/** Records one event of each of the first `count` reviews. */
async function emitReviews(tenant: Tenant, count: number): Promise<void> {
  const reviews = tenant.reviewIds.slice(0, count);
  const actions = reviews.map((reviewId) => reviewAction(tenant, { reviewId }));
  await stores.schedule.wake(await record(database.db, actions));
}

async function emit(tenant: Tenant, count: number): Promise<void> {
  const actions = Array.from({ length: count }, () => reviewAction(tenant));
  await stores.schedule.wake(await record(database.db, actions));
}

async function stateOf(id: string) {
  const [row] = await database.db.sql<
    { state: string; failures: number; recorded: number; delivered: number }[]
  >`
    select state, consecutive_failure_count as failures,
           (select count(*)::int from delivery_attempts a where a.subscription_id = w.id and outcome = 'failed') as recorded,
           (select count(*)::int from delivery_attempts a where a.subscription_id = w.id and outcome = 'delivered') as delivered
      from webhook_subscriptions w where id = ${id}`;
  return row;
}
