import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";

import type { RawDb } from "../../../db/client.ts";
import {
  createTestBox,
  createTestSchedule,
  silentLog,
  startDispatcher,
  type RunningDispatcher,
} from "../../support/dispatch.ts";
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
  const release = await locked(
    (sql) => sql`select from webhook_subscriptions where id = ${one.id} for update`,
  );
  const events = await emit(targets);
  await until("the others delivered", () => allDelivered(others));
  expect(await delivered(one.id)).toEqual([]);
  await release();
  await until("the locked one delivered", () => allDelivered([one]));
  expect(await delivered(one.id)).toEqual(events);
});

test("a record that PostgreSQL rejects stops only its subscription, which then continues without a gap", async () => {
  const targets = await Promise.all(Array.from({ length: OTHERS + 1 }, subscribed));
  const [one, ...others] = targets;
  if (one === undefined) throw new Error("There is a first one.");
  const { sql } = database.db;
  await sql.unsafe(`
    alter table delivery_attempts add constraint refused
      check (subscription_id <> '${one.id}' or sequence <> 3) not valid`);
  const events = await emit(targets);
  await until("the others delivered", () => allDelivered(others));
  await until("an error in the log", () => stuck.length > 0);
  expect(new Set(stuck)).toEqual(new Set([one.id]));
  await until("the records before it", async () => (await delivered(one.id)).length === 2);
  await sql.unsafe("alter table delivery_attempts drop constraint refused");
  await until("the rest delivered", () => allDelivered([one]));
  expect(await delivered(one.id)).toEqual(events);
  const posts = receiver.received.filter(({ path }) => path.endsWith(`/${one.tenant.partnerId}`));
  expect(posts).toHaveLength(EVENTS);
});

test("an internal error in a delivery is no failed attempt: the entry is sent later", async () => {
  const one = await subscribed();
  bugs = 2;
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

let stuck: unknown[] = [];

/** The number of next deliveries that throw an internal error, which no receiver can cause. */
let bugs = 0;

const cleanUps: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  const log = {
    ...silentLog,
    error(event: string, fields: Readonly<Record<string, unknown>> = {}) {
      if (event === "attempt.stuck") stuck.push(fields["subscription_id"]);
    },
  };
  dispatcher = startDispatcher({
    db: database.connect(),
    box,
    schedule: stores.schedule,
    log,
    wrap: (deliver) => async (request, signal) => {
      if (bugs-- > 0) throw new TypeError("undefined is not an object");
      return deliver(request, signal);
    },
  });
});

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  stuck = [];
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

/** Holds the locks of a statement until the returned function is called. */
async function locked(lock: (sql: RawDb["sql"]) => PromiseLike<unknown>) {
  const other = database.connect();
  const [release, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holding = other.transaction(async ({ sql }) => {
    await lock(sql);
    held.resolve();
    await release.promise;
  });
  await held.promise;
  return async () => {
    release.resolve();
    await holding;
  };
}
