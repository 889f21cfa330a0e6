// Due times that the clock of PostgreSQL wrote while it was ahead (contract 7.7).
import { expect, test } from "bun:test";

import type { RawDb } from "../../../db/client.ts";
import { bringDueTimesBack } from "../../../dispatcher/due-time-queries.ts";
import { MAIL_RETRY_DELAYS_MS } from "../../../dispatcher/mail/decide.ts";
import { fixture } from "../../support/fixture.ts";
import { allChunks } from "../../support/maintenance.ts";
import {
  insertSubscription,
  insertTenant,
  passQueue,
  record,
  reviewAction,
} from "../../support/outbox.ts";
import { createTestBox, silentLog } from "../../support/dispatch.ts";
import { createDatabase } from "../../support/postgres.ts";

const database = fixture(createDatabase);
const box = fixture(() => createTestBox());

const DELAYS_MS = [60_000, 300_000, 1_800_000];
const URL = "http://127.0.0.1:9/hook";
const HOUR_MS = 3_600_000;
const AHEAD_S = 40 * 86_400;

test.each([
  [2, 60],
  [3, 300],
  [4, 1_800],
])(
  "a retry before attempt %d is due within %d s of a clock that has returned",
  async (attempt, delayS) => {
    const id = await waiting(attempt, 3, AHEAD_S + delayS);
    expect(await run()).toBe(3);
    expect(await dueIn(id)).toEqual([delayS, delayS, delayS]);
    // Once more changes nothing.
    expect(await run()).toBe(0);
  },
);

test("a retry keeps its due time up to its delay and a tolerance of 5 s, and is brought back beyond it", async () => {
  const inTime = await waiting(3, 1, 304);
  const ahead = await waiting(3, 1, 307);
  const earlier = await waiting(4, 1, 299);
  expect(await run()).toBe(1);
  expect([await dueIn(inTime), await dueIn(ahead), await dueIn(earlier)]).toEqual([
    [304],
    [300],
    [299],
  ]);
});

test("an entry behind a retry that is brought back is looked at from the same time on", async () => {
  const { sql } = database.db;
  const id = await waiting(2, 2, AHEAD_S);
  await sql`
    update outbox o set state = 'pending', due_at = null, behind_until = w.due_at
      from (select sequence, due_at from outbox where subscription_id = ${id} order by sequence limit 1) w
     where o.subscription_id = ${id} and o.sequence > w.sequence`;
  expect(await run()).toBe(1);
  const [row] = await sql<{ same: boolean }[]>`
    select count(distinct coalesce(due_at, behind_until)) = 1 as same from outbox where subscription_id = ${id}`;
  expect(row?.same).toBe(true);
  expect(await dueIn(id)).toEqual([60, null]);
});

test("an entry without a retry, and an attempt without a delay, do not wait for ever", async () => {
  const id = await waiting(1, 1, AHEAD_S);
  const pending = await waiting(1, 2, null);
  expect(await run()).toBe(1);
  expect(await dueIn(id)).toEqual([0]);
  expect(await dueIn(pending)).toEqual([null, null]);
});

test("more entries than one chunk walks are all brought back", async () => {
  const id = await waiting(2, 12_001, AHEAD_S);
  expect(await run()).toBe(12_001);
  expect((await dueIn(id)).filter((s) => s === null || s > 60)).toEqual([]);
});

test("a batch returns to its grid within one interval", async () => {
  const { sql } = database.db;
  const nextAt = new Date(Date.now() + AHEAD_S * 1_000 + HOUR_MS / 2);
  const { partnerId } = await insertTenant(database.db);
  const batch = { intervalHours: 2, nextAt };
  const { subscriptionId: id } = await insertSubscription(
    { db: database.db, box },
    { partnerId, url: URL, batch },
  );
  expect(await run()).toBe(1);
  const [row] = await sql<
    { at: Date }[]
  >`select next_batch_at as at from webhook_subscriptions where id = ${id}`;
  const at = row?.at.getTime() ?? 0;
  expect((nextAt.getTime() - at) % (2 * HOUR_MS)).toBe(0);
  expect(at - Date.now()).toBeWithin(0, 2 * HOUR_MS);
  expect(await run()).toBe(0);
});

test.each([
  ["mails", 1, 30 * 60],
  ["mails", 6, (MAIL_RETRY_DELAYS_MS[4] ?? 0) / 1_000],
  ["alerts", 1, 1_800],
  ["audit_webhooks", 1, 300],
  ["sign_in_locks", 1, 900],
] as const)(
  "%s of attempt %d are due within %d s of a clock that has returned",
  async (table, attempt, longestS) => {
    for (const [aheadS, isMoved] of [
      [longestS + 2, false],
      [longestS + 7, true],
      [AHEAD_S, true],
    ] as const) {
      const at = await other(database.db, table, { attempt, aheadS });
      expect(await run()).toBe(isMoved ? 1 : 0);
      expect(await at()).toBe(isMoved ? longestS : aheadS);
    }
  },
);

const config = {
  retryDelaysMs: DELAYS_MS,
  batchHourMs: HOUR_MS,
  lockScheduleS: [60, 900],
  auditPauseMs: 300_000,
};
const run = () =>
  allChunks((reached) => bringDueTimesBack({ db: database.db, log: silentLog, config }, reached));

/** Makes a subscription whose entries wait for this attempt, due in so many seconds; pending without. */
async function waiting(attempt: number, entries: number, dueInS: number | null): Promise<string> {
  const tenant = await insertTenant(database.db);
  const { partnerId } = tenant;
  const { subscriptionId } = await insertSubscription(
    { db: database.db, box },
    { partnerId, url: URL },
  );
  const actions = Array.from({ length: entries }, () => reviewAction(tenant));
  for (let i = 0; i < entries; i += 500) await record(database.db, actions.slice(i, i + 500));
  await passQueue(database.db, subscriptionId);
  if (dueInS !== null)
    await database.db.sql`
      update outbox set state = 'waiting', attempt = ${attempt}, due_at = now() + make_interval(secs => ${dueInS})
       where subscription_id = ${subscriptionId}`;
  return subscriptionId;
}

/** Returns the seconds left until each due time. Stored instants are rounded to a millisecond, which may be ahead. */
async function dueIn(id: string): Promise<(number | null)[]> {
  const rows = await database.db.sql<{ s: number | null }[]>`
    select ceil(extract(epoch from due_at - now()) - 0.001)::int as s from outbox where subscription_id = ${id} order by sequence`;
  return rows.map(({ s }) => s);
}

async function incident(): Promise<string> {
  const { partnerId } = await insertTenant(database.db);
  const { subscriptionId } = await insertSubscription(
    { db: database.db, box },
    { partnerId, url: URL },
  );
  await database.db.sql`
    insert into incidents (id, subscription_id, partner_id, opened_at, failures, is_told)
    values (${subscriptionId}, ${subscriptionId}, ${partnerId}, now(), 1, false)`;
  return subscriptionId;
}

/** Inserts a row of another table with a due time, and returns how many seconds are left until it. */
async function other(
  { sql }: RawDb,
  table: "mails" | "alerts" | "audit_webhooks" | "sign_in_locks",
  { attempt, aheadS }: { readonly attempt: number; readonly aheadS: number },
) {
  await sql`delete from ${sql(table)}`;
  const dueAt = sql`now() + make_interval(secs => ${aheadS})`;
  const inserts = {
    mails: sql`insert into mails (id, kind, sealed_message, attempt, due_at, created_at)
               values (gen_random_uuid()::text, 'otp', 'x', ${attempt}, ${dueAt}, now())`,
    alerts: sql`insert into alerts (id, incident_id, subscription_id, partner_id, kind, raised_at, cause, mail_state, webhook_state, webhook_due_at)
                values ('a', ${await incident()}, 's', 1, 'failures_5', now(), '{}', 'none', 'queued', ${dueAt})`,
    audit_webhooks: sql`insert into audit_webhooks (id, url, sealed_secret, version, after_id, failures, failed_at, last_error, next_at, created_at, updated_at)
                        values ('platform', 'https://a.example', 'x', 1, 0, 1, now(), 'http_status', ${dueAt}, now(), now())`,
    sign_in_locks: sql`insert into sign_in_locks (email_digest, failures, locks, last_failure_at, locked_until)
                       values ('d', 0, 1, now(), ${dueAt})`,
  };
  await inserts[table];
  const columns = {
    mails: "due_at",
    alerts: "webhook_due_at",
    audit_webhooks: "next_at",
    sign_in_locks: "locked_until",
  };
  return async () => {
    const [row] = await sql<{ s: number }[]>`
      select ceil(extract(epoch from ${sql(columns[table])} - now()) - 0.001)::int as s from ${sql(table)}`;
    return row?.s;
  };
}
