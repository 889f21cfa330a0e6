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
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";

const OTHERS = 8;
const EVENTS = 5;

const box = createTestBox();
let database: TestDatabase;
let stores: Awaited<ReturnType<typeof createTestSchedule>>;
let receiver: Receiver;
let dispatcher: RunningDispatcher;
let stuck: unknown[] = [];
/** How many of the next deliveries throw, which no receiver can make them do. */
let bugs = 0;
const cleanUps: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  database = await createDatabase();
  stores = await createTestSchedule();
  receiver = await Receiver.start();
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
  await receiver.stop();
  stores.close();
  await database.drop();
});

async function subscribed() {
  const tenant = await insertTenant(database.db);
  const url = `${receiver.url}/${tenant.partnerId}`;
  const deps = { db: database.db, box };
  const { subscriptionId, shard } = await insertSubscription(deps, {
    partnerId: tenant.partnerId,
    url,
    // A success has to write to its row.
    failures: 1,
  });
  // All in one line of commits.
  await database.db.sql`
    update webhook_subscriptions set shard = ${shard - (shard % 2)} where id = ${subscriptionId}`;
  return { tenant, id: subscriptionId };
}

type Subscribed = Awaited<ReturnType<typeof subscribed>>;

/** Records so many events of each; answers the event ids of the first. */
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

/** Holds what the statement locks until the clean-up. */
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

test("a locked row of one subscription keeps none of the others from their commits", async () => {
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

test("a record that Postgres refuses stops its subscription alone, and nothing of it is skipped", async () => {
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
  await until("what is before it", async () => (await delivered(one.id)).length === 2);
  await sql.unsafe("alter table delivery_attempts drop constraint refused");
  await until("the rest delivered", () => allDelivered([one]));
  expect(await delivered(one.id)).toEqual(events);
  const posts = receiver.received.filter(({ path }) => path.endsWith(`/${one.tenant.partnerId}`));
  expect(posts).toHaveLength(EVENTS);
});

test("a bug in the making of a request is no failure of the receiver: the entry is sent later", async () => {
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
