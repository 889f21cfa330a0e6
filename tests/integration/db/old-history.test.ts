// Retention of the history: old rows are deleted, unless something that is derived from them remains.
import { skipQueued } from "../../../db/log.ts";
import { afterEach, beforeEach, expect, test } from "bun:test";

import type { RawDb } from "../../../db/client.ts";
import { ensurePartitions } from "../../../db/partitions.ts";
import { ROWS_AT_MOST } from "../../../dispatcher/maintenance/jobs.ts";
import { CHUNK_ROWS, removeOldHistory } from "../../../dispatcher/maintenance/removal-queries.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { hourly, removeAll, removeOnce, tickOnce } from "../../support/maintenance.ts";
import {
  insertSubscription,
  insertTenant,
  record,
  reviewAction,
  type Tenant,
  forgetQueue,
  passQueue,
} from "../../support/outbox.ts";
import { insertAttempt } from "../../support/partitions.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";

test("rows older than the limit are deleted, and a row that is a day younger is kept", async () => {
  await event(DAYS);
  const young = await event(DAYS - 1);
  expect(await removeAll(removeOldHistory, db, DAYS)).toBe(1);
  expect(await left()).toEqual([young]);
});

test("nothing is deleted without the setting", async () => {
  await event(30_000);
  await removeOnce({ db, retentionDays: RETENTION_DAYS });
  expect(await left()).toHaveLength(1);
  await removeOnce({ db, retentionDays: RETENTION_DAYS, historyRetentionDays: DAYS });
  expect(await left()).toEqual([]);
});

test("history of a queued entry is kept, and deleted after the entry and its attempts are gone", async () => {
  const { subscriptionId } = await subscribe();
  const held = await event(DAYS);
  expect(await removeAll(removeOldHistory, db, DAYS)).toBe(0);
  expect(await left()).toEqual([held]);
  await passQueue(db, subscriptionId);
  expect(await removeAll(removeOldHistory, db, DAYS)).toBe(0);
  await forgetQueue(db, subscriptionId);
  expect(await removeAll(removeOldHistory, db, DAYS)).toBe(1);
});

test("history that waits for a batch is kept", async () => {
  const { subscriptionId } = await subscribe(true);
  const waiting = await event(DAYS);
  expect(await removeAll(removeOldHistory, db, DAYS)).toBe(0);
  expect(await left()).toEqual([waiting]);
  await db.sql`delete from batch_entries where subscription_id = ${subscriptionId}`;
  expect(await removeAll(removeOldHistory, db, DAYS)).toBe(1);
});

test("history of an attempt or a skip is kept as long as these, and deleted by the next pass", async () => {
  await ensurePartitions(db, new Date(), RETENTION_DAYS);
  const { subscriptionId } = await subscribe();
  const [tried, skipped] = [await event(DAYS), await event(DAYS)];
  await insertAttempt(db, new Date(Date.now() - (RETENTION_DAYS + 1) * DAY_MS));
  await db.sql`update delivery_attempts set event_id = ${tried}`;
  await db.sql`update outbox_offsets set settled_through = 1 where subscription_id = ${subscriptionId}`;
  const skip = { subscriptionId, through: 2, reason: "skipped", skippedAt: new Date() } as const;
  await db.transaction((tx) => skipQueued(tx, skip));
  const pass = () => removeOnce({ db, retentionDays: RETENTION_DAYS, historyRetentionDays: DAYS });
  await pass();
  expect(await left()).toEqual([tried, skipped]);
  await pass();
  expect(await left()).toEqual([skipped]);
  await db.sql`update outbox_skips set skipped_at = now() - interval '31 days'`;
  await pass();
  await pass();
  expect(await left()).toEqual([]);
});

test("the last change of an axis is kept, because its instant is shown", async () => {
  const change = (name: "review_pull_connected" | "review_pull_disconnected") =>
    event(DAYS, {
      event: name,
      reviewId: null,
      about: {
        site: {
          store: { id: tenant.storeId },
          review_site: {
            store_review_site_id: tenant.storeReviewSiteId,
            review_site_id: tenant.reviewSiteId,
            name: "Site",
            connection_status: name === "review_pull_connected" ? "connected" : "disconnected",
            disconnect_reason: null,
          },
          axis: "pull",
          error_code: null,
          reason: null,
        },
      },
    });
  await change("review_pull_disconnected");
  const last = await change("review_pull_connected");
  expect(await removeAll(removeOldHistory, db, DAYS)).toBe(1);
  expect(await left()).toEqual([last]);
});

test("a history that was analysed while empty is scanned once, not once per row", async () => {
  await event(DAYS);
  expect(await removeAll(removeOldHistory, db, DAYS)).toBe(1);
  // The planner keeps expecting no rows in a page, however many are inserted later.
  await db.sql.unsafe("vacuum (truncate false) review_history");
  const copies = 10_000;
  await copiesOf(await event(DAYS), copies);
  expect(await removeAll(removeOldHistory, db, DAYS)).toBe(copies + 1);
  // The counters of the connections reach the view within some seconds.
  await until("the count", async () => (await counted()).removed > copies);
  expect((await counted()).fetched).toBeLessThan(5 * copies);
});

test("rows that are kept do not block the deletion of later rows, in chunks, and a run ends", async () => {
  await subscribe();
  const held = await event(DAYS);
  const copies = ROWS_AT_MOST + CHUNK_ROWS;
  await copiesOf(held, copies);
  const jobs = hourly({ db, historyRetentionDays: DAYS }).filter(({ name }) => name === "history");
  const run = async () => {
    await db.sql`
      update maintenance_jobs
         set began_at = now() - interval '1 hour', next_at = now() + case when name = 'history' then '0' else interval '1 hour' end`;
    await tickOnce({ db, jobs });
    const [row] = await db.sql<{ rows: number }[]>`
      select rows from maintenance_jobs where name = 'history'`;
    return row?.rows;
  };
  expect(await run()).toBeLessThan(copies);
  // On a busy machine a chunk may exceed its time limit; the next run continues after the last complete chunk.
  await until("the rest is deleted", async () => {
    await run();
    return (await left()).length === 1;
  });
  expect(await left()).toEqual([held]);
});

const DAYS = 60;

const RETENTION_DAYS = 30;

const DAY_MS = 86_400_000;

const box = createSecretBox({ current: new Uint8Array(32) });

let database: TestDatabase;

let db: RawDb;

let tenant: Tenant;

beforeEach(async () => {
  database = await createDatabase();
  db = database.db;
  tenant = await insertTenant(db);
});

afterEach(() => database.drop());

async function counted(): Promise<{ removed: number; fetched: number }> {
  const [row] = await db.sql<{ removed: number; fetched: number }[]>`
    select n_tup_del::int as removed, idx_tup_fetch::int as fetched
      from pg_stat_user_tables where relname = 'review_history'`;
  if (row === undefined) throw new Error("There is no such table.");
  return row;
}

async function copiesOf(eventId: string, copies: number): Promise<void> {
  await db.sql`
    insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event,
                                actor, review, metadata, occurred_at, recorded_at)
    select 'C' || n, partner_id, account_id, store_id, review_id, store_review_site_id, event, actor, review, metadata,
           occurred_at, recorded_at
      from review_history cross join generate_series(1, ${copies}::int) n where event_id = ${eventId}`;
}

/** Creates an event of this age in days; returns its id. */
async function event(
  ageDays: number,
  of: Parameters<typeof reviewAction>[1] = {},
): Promise<string> {
  const action = reviewAction(tenant, of);
  const at = new Date(Date.now() - ageDays * DAY_MS - 1_000);
  await db.sql.unsafe("alter table review_history disable trigger review_history_fixed");
  await record(db, [action]);
  await db.sql`update review_history set recorded_at = ${at} where event_id = ${action.eventId}`;
  await db.sql.unsafe("alter table review_history enable trigger review_history_fixed");
  return action.eventId;
}

async function left(): Promise<string[]> {
  const rows = await db.sql<
    { id: string }[]
  >`select event_id as id from review_history order by id`;
  return rows.map(({ id }) => id);
}

const subscribe = (batch = false) =>
  insertSubscription(
    { db, box },
    {
      partnerId: tenant.partnerId,
      url: "https://partner.example/hook",
      ...(batch && { batch: { intervalHours: 24, nextAt: new Date(Date.now() + DAY_MS) } }),
    },
  );
