import { afterAll, expect, test } from "bun:test";

import type { RawDb } from "../../../db/client.ts";
import { MAX_UNRECORDED } from "../../../dispatcher/actor/lane.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { createTestSchedule, silentLog, startDispatcher } from "../../support/dispatch.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import {
  insertSubscription,
  insertTenant,
  passQueue,
  record,
  reviewAction,
} from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const stores = fixture(createTestSchedule);

test("a subscription with a locked offset has a bounded number of unrecorded attempts, and their repeats after kill -9 are recorded as possible repeats", async () => {
  const reviews = 4 * MAX_UNRECORDED;
  const one = await subscribed({ reviews });
  const other = await subscribed({ reviews: 200 });
  const events = await emit(one);
  const release = await locked(
    (sql) => sql`select from outbox_offsets where subscription_id = ${one.id} for update`,
  );
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: stores.prefix,
    MASTER_KEY: Buffer.from(key).toString("base64"),
  };
  const [first, second] = [new DispatcherProcess(env), new DispatcherProcess(env)];
  cleanUps.push(
    () => first.kill(),
    () => second.stop(),
  );
  first.start();
  const { receiver } = one;
  await until("the maximum of unrecorded POSTs", () => receiver.received.length >= MAX_UNRECORDED);
  // During these 1,000 deliveries the locked subscription could exceed the bound.
  await emit(other, 5);
  await until("the other delivered", () => isRecorded(other.id, 1_000));
  const before = await recorded(one.id);
  expect(receiver.received.length - before.length).toBe(MAX_UNRECORDED);
  await first.kill();
  await release();
  second.start();
  await until("all recorded", () => isRecorded(one.id, reviews));

  const after = await recorded(one.id);
  expect(after.map((row) => row.event_id).toSorted()).toEqual(events.toSorted());
  const posts = Map.groupBy(receiver.eventIds, (id) => id);
  const repeated = events.filter((id) => (posts.get(id)?.length ?? 0) > 1);
  expect(repeated.length).toBeGreaterThan(0);
  expect(repeated.length).toBeLessThanOrEqual(MAX_UNRECORDED);
  const marked = new Set(after.flatMap((row) => (row.possibly_repeated ? [row.event_id] : [])));
  expect(repeated.filter((id) => !marked.has(id))).toEqual([]);
  await second.stop();
});

test("a subscription with an unreadable entry stops none of 40 others, and continues in order after the repair", async () => {
  const stuck: unknown[] = [];
  const damaged = await subscribed();
  const others = await Promise.all(Array.from({ length: 40 }, () => subscribed()));
  const all = [damaged, ...others];
  const events = new Map<string, string[]>();
  for (const one of all) events.set(one.id, await emit(one, 5));
  await passQueue(database.db, damaged.id);
  // PostgreSQL cannot convert this instant to a bigint, so the load fails.
  const { sql } = database.db;
  await sql`
    update outbox set state = 'waiting', due_at = 'infinity'
     where subscription_id = ${damaged.id} and sequence = 3`;
  const dispatcher = startDispatcher({
    db: database.connect(),
    box,
    schedule: stores.schedule,
    log: {
      ...silentLog,
      error: (event, fields = {}) => void stuck.push([event, fields["subscription_id"]]),
    },
  });
  cleanUps.push(() => dispatcher.stop());
  for (const { id, receiver } of others)
    await until("a healthy one delivered", () => isRecorded(id, 5)).then(() =>
      expect(receiver.eventIds).toEqual(events.get(id) ?? []),
    );
  await until("an error in the log", () => stuck.length > 0);
  expect(new Set(stuck.map(String))).toEqual(new Set([`load.stuck,${damaged.id}`]));
  expect(damaged.receiver.received).toEqual([]);
  await sql`
    update outbox set state = 'pending', due_at = null where subscription_id = ${damaged.id} and sequence = 3`;
  await until("the repaired one delivered", () => isRecorded(damaged.id, 5));
  expect(damaged.receiver.eventIds).toEqual(events.get(damaged.id) ?? []);
  await dispatcher.stop();
});

test("shards that cannot be swept do not block the sweep of others", async () => {
  const [failing, shards] = [
    [8, 9, 10, 11],
    [0, 9, 12, 40, 63],
  ];
  let isDamaged = true;
  const stuck = new Set<unknown>();
  const dispatcher = startDispatcher({
    db: database.connect(),
    box,
    schedule: stores.schedule,
    log: {
      ...silentLog,
      error: (event, fields = {}) => void (event === "sweep.stuck" && stuck.add(fields["shard"])),
    },
    wrapStore: (store) => ({
      ...store,
      async sweep(swept, limit) {
        // Newly claimed shards are first swept with a limit. Only the complete sweeps without one fail here.
        if (limit === undefined && isDamaged && swept.some((shard) => failing.includes(shard)))
          throw Object.assign(new Error("invalid page"), { code: "XX001" });
        return store.sweep(swept, limit);
      },
    }),
  });
  cleanUps.push(() => dispatcher.stop());
  await until("a shard that cannot be swept", () => stuck.size === failing.length);
  const all = await Promise.all(shards.map((shard) => subscribed({ shard })));
  // These events are recorded without wakes, so that only the sweep finds them.
  const events = await Promise.all(all.map((one) => emit(one, 3)));
  for (const [i, { id, receiver }] of all.entries()) {
    if (shards[i] === 9) continue;
    await until(`shard ${shards[i]} delivered`, () => isRecorded(id, 3));
    expect(receiver.eventIds).toEqual(events[i] ?? []);
  }
  expect(stuck).toEqual(new Set(failing));
  expect(all[1]?.receiver.received).toEqual([]);
  isDamaged = false;
  await until("the repaired shard delivered", () => isRecorded(all[1]?.id ?? "", 3));
  await dispatcher.stop();
});

const key = crypto.getRandomValues(new Uint8Array(32));

const box = createSecretBox({ current: key });

const cleanUps: (() => Promise<unknown>)[] = [];

afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

async function receiving(): Promise<Receiver> {
  const receiver = await Receiver.start();
  cleanUps.push(() => receiver.stop());
  return receiver;
}

/** Adds a subscription with a separate receiver, ordered by review if it has several reviews. */
async function subscribed({ reviews = 1, shard }: { reviews?: number; shard?: number } = {}) {
  const receiver = await receiving();
  const tenant = await insertTenant(database.db, reviews);
  const { subscriptionId: id } = await insertSubscription(
    { db: database.db, box },
    {
      partnerId: tenant.partnerId,
      url: receiver.url,
      ordering: reviews > 1 ? "review" : "subscription",
    },
  );
  if (shard !== undefined)
    await database.db.sql`update webhook_subscriptions set shard = ${shard} where id = ${id}`;
  return { tenant, id, receiver };
}

type Subscribed = Awaited<ReturnType<typeof subscribed>>;

/** Records `times` events for each review, without a wake; answers their ids. */
async function emit({ tenant }: Pick<Subscribed, "tenant">, times = 1): Promise<string[]> {
  const actions = Array.from({ length: times }, () =>
    tenant.reviewIds.map((reviewId) => reviewAction(tenant, { reviewId })),
  ).flat();
  await record(database.db, actions);
  return actions.map((action) => action.eventId);
}

interface Recorded {
  readonly event_id: string;
  readonly possibly_repeated: boolean;
}

async function recorded(id: string): Promise<Recorded[]> {
  return database.db.sql<Recorded[]>`
    select event_id, possibly_repeated from delivery_attempts where subscription_id = ${id} order by id`;
}

async function isRecorded(id: string, count: number): Promise<boolean> {
  return (await recorded(id)).length >= count;
}

/** Holds the locks of a statement until the returned function is called. */
async function locked(lock: (sql: RawDb["sql"]) => PromiseLike<unknown>) {
  const [release, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holding = database.connect().transaction(async ({ sql }) => {
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
