import { afterAll, beforeAll, expect, test } from "bun:test";

import { dropExpiredPartitions, ensurePartitions, ulidFloor } from "../../db/partitions.ts";
import { EXPIRE_GROUP, maintain } from "../../dispatcher/upkeep/maintenance.ts";
import { createFakeClock } from "../support/clock.ts";
import { createTestBox, silentLog } from "../support/dispatch.ts";
import { insertSubscription, insertTenant, record, reviewAction } from "../support/outbox.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";

const DAY_MS = 86_400_000;
const box = createTestBox();
let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

async function partitions(): Promise<string[]> {
  const rows = await database.db.sql<{ name: string }[]>`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = 'delivery_attempts'::regclass order by 1`;
  return rows.map((row) => row.name);
}

test("drops the partitions of days that ended before the retention time, and no other", async () => {
  const first = new Date("2020-01-01T12:00:00Z");
  await ensurePartitions(database.db, first);
  const now = new Date("2020-01-04T00:00:00.000Z");
  const dropped = await dropExpiredPartitions(database.db, now, 2);
  expect(dropped.toSorted()).toEqual(["delivery_attempts_20200101", "settled_entries_20200101"]);
  expect(await partitions()).toContain("delivery_attempts_20200102");
});

test("leaves a partition that somebody uses for the next time, instead of stopping the writers behind it", async () => {
  await ensurePartitions(database.db, new Date("2021-01-01T12:00:00Z"));
  const now = new Date("2021-01-03T00:00:00.000Z");
  const used = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const reader = database.db.transaction(async (tx) => {
    await tx.sql`select count(*) from delivery_attempts_20210101`;
    used.resolve();
    await release.promise;
  });
  await used.promise;
  expect(await dropExpiredPartitions(database.db, now, 1)).not.toContain(
    "delivery_attempts_20210101",
  );
  release.resolve();
  await reader;
  expect(await dropExpiredPartitions(database.db, now, 1)).toContain("delivery_attempts_20210101");
});

test("removes old rows that a jumped clock left in the default partition", async () => {
  const insert = (at: Date) => database.db.sql`
    insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
      duration_ms, outcome, request_headers, request_body, response_truncated)
    values (${ulidFloor(at)}, 'S', 1, 'E', 'review_received', 1, 1, ${at}, 1, 'delivered', '{}', '{}', false)`;
  const now = new Date("2019-06-01T00:00:00Z");
  await insert(new Date(now.getTime() - 30 * DAY_MS - 1));
  await insert(new Date(now.getTime() - 30 * DAY_MS));
  await dropExpiredPartitions(database.db, now, 30);
  const rows = await database.db.sql`select from delivery_attempts where subscription_id = 'S'`;
  expect(rows).toHaveLength(1);
});

test("settles what a disabled subscription holds for longer than the retention time, and keeps the rest", async () => {
  const tenant = await insertTenant(database.db);
  const options = { partnerId: tenant.partnerId, url: "http://127.0.0.1:1/" };
  const { subscriptionId } = await insertSubscription({ db: database.db, box }, options);
  await record(
    database.db,
    Array.from({ length: EXPIRE_GROUP + 1 }, () => reviewAction(tenant)),
  );
  const old = new Date(Date.now() - 31 * DAY_MS);
  await database.db
    .sql`update outbox set recorded_at = ${old} where subscription_id = ${subscriptionId}`;
  await record(database.db, [reviewAction(tenant)]);
  const round = () =>
    maintain({ db: database.db, clock: createFakeClock(), log: silentLog, retentionDays: 30 });
  await round();
  const count = async () =>
    (await database.db.sql`select from outbox where subscription_id = ${subscriptionId}`).length;
  expect(await count()).toBe(EXPIRE_GROUP + 2);
  await database.db.sql`
    update webhook_subscriptions set state = 'disabled', disabled_at = now(), disabled_reason = 'consecutive_failures'
     where id = ${subscriptionId}`;
  await round();
  expect(await count()).toBe(1);
  const settled = await database.db.sql`
    select distinct reason from settled_entries where subscription_id = ${subscriptionId}`;
  expect([...settled]).toEqual([{ reason: "expired" }]);
});
