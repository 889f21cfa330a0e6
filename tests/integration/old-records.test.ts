// Retention of the audit log and of sign-ins, which have settings of their own.
import { afterEach, beforeEach, expect, test } from "bun:test";

import { ulid } from "ulid";

import type { RawDb } from "../../db/client.ts";
import { remove } from "../../dispatcher/upkeep/maintenance.ts";
import {
  RECORDS_AT_MOST,
  RECORDS_AT_ONCE,
  removeOldAudit,
  removeOldSignIns,
} from "../../dispatcher/upkeep/records-queries.ts";
import { silentLog } from "../support/dispatch.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";
import { addTenants } from "../support/tenants.ts";

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

test("the audit log loses what is older, and not what is a day younger", async () => {
  await audit(2, DAYS);
  await audit(3, DAYS - 1);
  expect(await removeOldAudit(db, DAYS)).toBe(2);
  expect(await countOf("audit_log")).toBe(3);
});

test("a pass removes so many rows of the audit log at the most, and the next one the rest", async () => {
  await audit(RECORDS_AT_MOST + 1, DAYS);
  expect(await removeOldAudit(db, DAYS)).toBe(RECORDS_AT_MOST);
  expect(await removeOldAudit(db, DAYS)).toBe(1);
});

test("old sign-ins go, but for those from which a token still stems, wherever they stand", async () => {
  const { partners } = await addTenants(db);
  const { id: userId } = partners[0].owner;
  const living = await signIn(userId, DAYS + 9);
  const [key] = await db.sql<{ kid: string }[]>`
    insert into signing_keys (kid, state, public_jwk, sealed_private_key, created_at)
    values ('k', 'next', '{}', 'v1.x.x', now()) returning kid`;
  await db.sql`
    insert into tokens (jti, kind, user_id, family_id, scope, kid, issued_at, expires_at)
    values (${ulid()}, 'refresh', ${userId}, ${living}, '', ${key?.kid ?? ""}, now(), now() + interval '1 day')`;
  for (let n = 0; n < RECORDS_AT_ONCE + 1; n++) await signIn(userId, DAYS);
  const young = await signIn(userId, DAYS - 1);
  const before = await countOf("authentication_events");
  expect(await removeOldSignIns(db, DAYS)).toBe(RECORDS_AT_ONCE + 1);
  expect(await countOf("authentication_events")).toBe(before - RECORDS_AT_ONCE - 1);
  const left = await db.sql<
    { id: string }[]
  >`select id from authentication_events where id in ${db.sql([living, young])}`;
  expect(left).toHaveLength(2);
});

test("nothing of either goes while no setting says so", async () => {
  await audit(1, 30_000);
  await remove({ db, log: silentLog, retentionDays: 30 });
  expect(await countOf("audit_log")).toBe(1);
  await remove({ db, log: silentLog, retentionDays: 30, auditRetentionDays: DAYS });
  expect(await countOf("audit_log")).toBe(0);
});
