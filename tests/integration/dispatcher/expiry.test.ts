import { describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import { skipQueued } from "../../../db/log.ts";
import {
  CHUNK_ROWS,
  expireHeldEntries,
  removeBatchEntries,
  removeOldMails,
  removeSkipped,
} from "../../../dispatcher/maintenance/removal-queries.ts";
import { createTestBox } from "../../support/dispatch.ts";
import { forceHistory } from "../../support/history.ts";
import { removeAll } from "../../support/maintenance.ts";
import {
  insertSubscription,
  insertTenant,
  passQueue,
  record,
  reviewAction,
  type Tenant,
} from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

describe("held entries older than the retention time", () => {
  test("are settled as expired while the subscription is disabled, and younger entries are kept", async () => {
    const id = await subscribe(CHUNK_ROWS + 1);
    expect(await removeAll(expireHeldEntries, database.db, DAYS)).toBe(0);
    await disable(id);
    expect(await removeAll(expireHeldEntries, database.db, DAYS)).toBe(CHUNK_ROWS + 1);
    expect(await count("queued_entries", id)).toBe(1);
    const settled = await database.db.sql`
      select distinct reason from skipped_entries where subscription_id = ${id}`;
    expect([...settled]).toEqual([{ reason: "expired" }]);
  });

  test("are each settled once if several processes run at the same time", async () => {
    const ids = [await subscribe(CHUNK_ROWS + 1), await subscribe(3)];
    for (const id of ids) await disable(id);
    const processes = [database.db, database.connect(), database.connect()];
    const counts = await Promise.all(processes.map((db) => removeAll(expireHeldEntries, db, DAYS)));
    const rest = await removeAll(expireHeldEntries, database.db, DAYS);
    expect([...counts, rest].reduce((sum, one) => sum + one, 0)).toBe(CHUNK_ROWS + 4);
  });

  test("are kept, without waiting for the lock, while another transaction enables the subscription", async () => {
    const id = await subscribe(3);
    await disable(id);
    await database.connect().transaction(async (tx) => {
      await tx.sql`update webhook_subscriptions set state = 'active', disabled_at = null, disabled_reason = null
                    where id = ${id}`;
      expect(await removeAll(expireHeldEntries, database.db, DAYS)).toBe(0);
    });
    expect(await removeAll(expireHeldEntries, database.db, DAYS)).toBe(0);
    expect(await count("queued_entries", id)).toBe(4);
  });

  test("are left for a later run while another transaction locks the offset", async () => {
    const id = await subscribe(3);
    await disable(id);
    await database.connect().transaction(async (tx) => {
      await tx.sql`select from outbox_offsets where subscription_id = ${id} for update`;
      expect(await removeAll(expireHeldEntries, database.db, DAYS)).toBe(0);
    });
    expect(await removeAll(expireHeldEntries, database.db, DAYS)).toBe(3);
  });

  test("are removed from the next batch", async () => {
    const batch = { intervalHours: 1, nextAt: new Date(Date.now() + 3_600_000) };
    const id = await subscribe(CHUNK_ROWS + 1, batch);
    expect(await removeAll(removeBatchEntries, database.db, DAYS)).toBe(0);
    await disable(id);
    expect(await removeAll(removeBatchEntries, database.db, DAYS)).toBe(CHUNK_ROWS + 1);
    expect(await count("batch_entries", id)).toBe(1);
  });
});

test("entries that were skipped before the retention time are removed with their ranges, and others are kept", async () => {
  const { db } = database;
  const id = await subscribe(5);
  await passQueue(db, id);
  const skipThrough = (through: number, days: number) => {
    const skip = {
      subscriptionId: id,
      through,
      reason: "skipped",
      skippedAt: daysAgo(days),
    } as const;
    return db.transaction((tx) => skipQueued(tx, skip));
  };
  const skipOne = (sequence: number, days: number) => db.sql`
    update outbox set skipped_at = ${daysAgo(days)} where subscription_id = ${id} and sequence = ${sequence}`;
  await skipThrough(1, DAYS + 1);
  await skipThrough(2, DAYS - 1);
  await skipOne(3, DAYS + 1);
  await skipOne(4, DAYS - 1);
  expect(await removeAll(removeSkipped, db, DAYS)).toBe(2);
  const left = await db.sql<{ sequence: number }[]>`
    select sequence from outbox where subscription_id = ${id} order by sequence`;
  expect(left.map(({ sequence }) => sequence)).toEqual([2, 4, 5, 6]);
  const ranges = await db.sql<{ last: number }[]>`
    select last from outbox_skips where subscription_id = ${id}`;
  expect(ranges.map(({ last }) => last)).toEqual([2]);
});

test("mails that were settled before the retention time are removed, in any number, and others are kept", async () => {
  const { sql } = database.db;
  const insert = (state: "sent" | "queued", age: string, number: number) => sql`
    insert into mails (id, kind, state, sealed_message, due_at, created_at, settled_at)
    select ${ulid()} || n, 'otp', ${state}, ${state === "queued" ? "x" : null}::text,
           case when ${state} = 'queued' then now() end, now(), case when ${state} = 'sent' then now() - ${age}::text::interval end
      from generate_series(1, ${number}::int) n`;
  await insert("sent", "31 days", 2_001);
  await insert("sent", "29 days", 1);
  await insert("queued", "31 days", 1);
  expect(await removeAll(removeOldMails, database.db, DAYS)).toBe(2_001);
  expect(await sql`select from mails`).toHaveLength(2);
});

const DAYS = 30;

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);

const box = createTestBox();

/** Adds a subscription with `old` events of 31 days ago and one new event after them. */
async function subscribe(old: number, batch?: { intervalHours: number; nextAt: Date }) {
  const { db } = database;
  const tenant = await insertTenant(db);
  const made = { partnerId: tenant.partnerId, url: "http://127.0.0.1:1/", ...(batch && { batch }) };
  const { subscriptionId } = await insertSubscription({ db, box }, made);
  await record(
    db,
    Array.from({ length: old }, () => reviewAction(tenant)),
  );
  await forceHistory(
    db,
    (sql) => sql`
    update review_history set recorded_at = now() - interval '31 days' where partner_id = ${tenant.partnerId}`,
  );
  await recordOne(tenant);
  return subscriptionId;
}

const recordOne = (tenant: Tenant) => record(database.db, [reviewAction(tenant)]);

const disable = (id: string) => database.db.sql`
  update webhook_subscriptions set state = 'disabled', disabled_at = now(), disabled_reason = 'consecutive_failures'
   where id = ${id}`;

async function count(table: "queued_entries" | "batch_entries", id: string): Promise<number> {
  const rows = await database.db.sql`
    select from ${database.db.sql(table)} where subscription_id = ${id}`;
  return rows.length;
}
