// Retention of the audit log and of sign-ins, which have separate settings.
import { afterEach, beforeEach, expect, test } from "bun:test";

import { ulid } from "ulid";

import type { RawDb } from "../../../db/client.ts";
import { ROWS_AT_MOST } from "../../../dispatcher/maintenance/jobs.ts";
import {
  CHUNK_ROWS,
  removeOldAudit,
  removeOldSignIns,
} from "../../../dispatcher/maintenance/removal-queries.ts";
import { hourly, removeAll, removeOnce, tickOnce } from "../../support/maintenance.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";

test("the audit log loses rows older than the retention time, and keeps those a day younger", async () => {
  await audit(2, DAYS);
  await audit(3, DAYS - 1);
  expect(await removeAll(removeOldAudit, db, DAYS)).toBe(2);
  expect(await countOf("audit_log")).toBe(3);
});

test("a run removes at most `ROWS_AT_MOST` rows of the audit log, and the next run the rest", async () => {
  await audit(ROWS_AT_MOST + 1, DAYS);
  const jobs = hourly({ db, auditRetentionDays: DAYS }).filter(({ name }) => name === "audit_log");
  const run = async () => {
    await db.sql`update maintenance_jobs set next_at = now() - interval '1 second', began_at = now() - interval '1 hour'`;
    await tickOnce({ db, jobs });
    const [row] = await db.sql<{ rows: number; failures: number }[]>`
      select rows, failures from maintenance_jobs where name = 'audit_log'`;
    return row;
  };
  expect(await run()).toEqual({ rows: ROWS_AT_MOST, failures: 0 });
  expect(await run()).toEqual({ rows: 1, failures: 0 });
});

test("old sign-ins are removed, except those with a token that still exists", async () => {
  const { partners } = await addTenants(db);
  const { id: userId } = partners[0].owner;
  const living = await signIn(userId, DAYS + 9);
  const [key] = await db.sql<{ kid: string }[]>`
    insert into signing_keys (kid, state, public_jwk, sealed_private_key, created_at)
    values ('k', 'next', '{}', 'v1.x.x', now()) returning kid`;
  await db.sql`
    insert into tokens (jti, kind, user_id, family_id, scope, kid, issued_at, expires_at)
    values (${ulid()}, 'refresh', ${userId}, ${living}, '', ${key?.kid ?? ""}, now(), now() + interval '1 day')`;
  for (let n = 0; n < CHUNK_ROWS + 1; n++) await signIn(userId, DAYS);
  const young = await signIn(userId, DAYS - 1);
  const before = await countOf("authentication_events");
  expect(await removeAll(removeOldSignIns, db, DAYS)).toBe(CHUNK_ROWS + 1);
  expect(await countOf("authentication_events")).toBe(before - CHUNK_ROWS - 1);
  const left = await db.sql<
    { id: string }[]
  >`select id from authentication_events where id in ${db.sql([living, young])}`;
  expect(left).toHaveLength(2);
});

test("no audit row is removed without a retention setting", async () => {
  await audit(1, 30_000);
  await removeOnce({ db });
  expect(await countOf("audit_log")).toBe(1);
  await removeOnce({ db, auditRetentionDays: DAYS });
  expect(await countOf("audit_log")).toBe(0);
});

const DAY_MS = 86_400_000;

const DAYS = 400;

let database: TestDatabase;

let db: RawDb;

beforeEach(async () => {
  database = await createDatabase();
  db = database.db;
});

afterEach(() => database.drop());

const audit = (count: number, ageDays: number) => db.sql`
  insert into audit_log (at, action, details)
  select now() - make_interval(days => ${ageDays}, secs => 1), 'AUTH_LOGIN', '{}' from generate_series(1, ${count}::int)`;

async function countOf(table: "audit_log" | "authentication_events"): Promise<number> {
  const [row] = await db.sql.unsafe<{ count: number }[]>(`select count(*) from ${table}`);
  return row?.count ?? 0;
}

async function signIn(userId: number, ageDays: number): Promise<string> {
  const at = new Date(Date.now() - ageDays * DAY_MS - 1_000);
  const id = ulid(at.getTime());
  await db.sql`
    insert into authentication_events (id, user_id, method, at) values (${id}, ${userId}, 'login', ${at})`;
  return id;
}
