import { afterAll, beforeAll, expect, test } from "bun:test";

import { createSecretBox } from "../../../src/lib/secrets.ts";
import { createTestSchedule } from "../../support/dispatch.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { insertSubscription, insertTenant, record, reviewAction } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const stores = fixture(createTestSchedule);

test("two dispatchers lose and reorder no event when one is killed and Redis is flushed under load", async () => {
  const [one, two] = dispatchers;
  one?.start();
  two?.start();
  await until("both hold shards", async () => {
    const holders = await database.db.sql`
      select dispatcher_id from shards group by 1 having dispatcher_id is not null`;
    return holders.length === 2;
  });
  const { loads, written } = await startLoad();
  await until("deliveries", () => loads.every(({ receiver }) => receiver.received.length >= 20));
  await one?.kill();
  await stores.flush();
  await written;
  await checkArrivals(loads);
});

test("a POST that a killed dispatcher had sent is repeated with the same attempt number, and recorded as possibly repeated", async () => {
  const [one, two] = dispatchers;
  await two?.stop();
  await one?.stop();
  const receiver = await Receiver.start((_, count) => (count === 0 ? "hang" : 200));
  const tenant = await insertTenant(database.db);
  const url = receiver.url;
  const made = await insertSubscription(
    { db: database.db, box },
    { partnerId: tenant.partnerId, url },
  );
  one?.start();
  const sent = reviewAction(tenant);
  const waiting = reviewAction(tenant);
  await stores.schedule.wake(await record(database.db, [sent, waiting]));
  await until("the request that hangs", () => receiver.received.length === 1);
  await one?.kill();
  one?.start();
  await until("both delivered", () => new Set(receiver.eventIds).size === 2);
  expect(receiver.eventIds).toEqual([sent.eventId, sent.eventId, waiting.eventId]);
  expect(receiver.received.map((post) => post.headers["x-svc-attempt"])).toEqual(["1", "1", "1"]);
  const attempts = async () => {
    const rows = await database.db.sql<
      { event_id: string; outcome: string; possibly_repeated: boolean }[]
    >`
      select event_id, outcome, possibly_repeated from delivery_attempts
       where subscription_id = ${made.subscriptionId} order by id`;
    return rows.map((row) => [row.event_id, row.outcome, row.possibly_repeated]);
  };
  // The second event counts as possibly repeated too: the new dispatcher cannot know how far the killed one came.
  const later = reviewAction(tenant);
  await stores.schedule.wake(await record(database.db, [later]));
  await until("the records", async () => (await attempts()).length === 3);
  expect(await attempts()).toEqual([
    [sent.eventId, "delivered", true],
    [waiting.eventId, "delivered", true],
    [later.eventId, "delivered", false],
  ]);
  await receiver.stop();
});

const SUBSCRIPTIONS = 10;

const EVENTS = 100;

const key = crypto.getRandomValues(new Uint8Array(32));

const box = createSecretBox({ current: key });

let dispatchers: DispatcherProcess[];

beforeAll(async () => {
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: stores.prefix,
    MASTER_KEY: Buffer.from(key).toString("base64"),
  };
  dispatchers = [new DispatcherProcess(env), new DispatcherProcess(env)];
});

afterAll(async () => {
  await Promise.all(dispatchers.map((one) => one.stop()));
});

interface Load {
  readonly receiver: Receiver;
  /** Event ids in commit order. */
  readonly expected: () => Promise<string[]>;
}

/** Starts subscriptions with one receiver each, and writes events for all of them over about two seconds. */
async function startLoad(): Promise<{ loads: Load[]; written: Promise<unknown> }> {
  const loads: Load[] = [];
  const writers: Promise<void>[] = [];
  for (let n = 0; n < SUBSCRIPTIONS; n++) {
    const receiver = await Receiver.start();
    const tenant = await insertTenant(database.db);
    await insertSubscription(
      { db: database.db, box },
      { partnerId: tenant.partnerId, url: receiver.url },
    );
    loads.push({
      receiver,
      expected: async () => {
        const rows = await database.db.sql<{ event_id: string }[]>`
          select event_id from review_history where partner_id = ${tenant.partnerId} order by id`;
        return rows.map((row) => row.event_id);
      },
    });
    writers.push(
      (async () => {
        for (let event = 0; event < EVENTS; event += 5) {
          const actions = Array.from({ length: 5 }, () => reviewAction(tenant));
          await stores.schedule.wake(await record(database.db, actions));
          await Bun.sleep(100);
        }
      })(),
    );
  }
  return { loads, written: Promise.all(writers) };
}

/**
 * Checks that no event is lost, that first arrivals follow the order of commits, and that the crash repeats only events
 * that were in flight or not committed.
 */
async function checkArrivals(loads: readonly Load[]): Promise<void> {
  for (const { receiver, expected } of loads) {
    await until("every event", () => new Set(receiver.eventIds).size === EVENTS);
    expect([...new Set(receiver.eventIds)]).toEqual(await expected());
    // One POST in flight, and up to 16 that were answered but not committed.
    expect(receiver.received.length - EVENTS).toBeLessThanOrEqual(17);
    await receiver.stop();
  }
  await until("an empty queue", async () => {
    const [row] = await database.db.sql<{ count: number }[]>`select count(*) from queued_entries`;
    return row?.count === 0;
  });
}
