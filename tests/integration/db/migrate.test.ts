import { afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";

import { connect } from "../../../db/client.ts";
import { isLockTimeout } from "../../../db/errors.ts";
import {
  migrate,
  ownMigrations,
  schemaError,
  SchemaError,
  schemaState,
  withPatience,
} from "../../../db/migrate.ts";
import { checkRights } from "../../../src/operate/doctor/database.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(() => createDatabase("roles"));

test("a schema change that waits for a reader lets writers run meanwhile, and succeeds after it", async () => {
  let change: Promise<unknown> | undefined;
  await whileRead(async () => {
    change = alter("patient");
    // Each insert queues behind the change, and runs although the reader stays.
    for (let i = 0; i < 2; i++) {
      await until("the change waits", isWaiting);
      await database.db.sql`insert into changed default values`;
    }
  });
  await change;
  const [row] = await database.db.sql<{ n: number }[]>`
    select count(*) as n from changed where patient is null`;
  expect(row?.n).toBe(2);
});

test("a schema change whose lock is never free fails at last and changes nothing", async () => {
  await whileRead(async () => {
    const error: unknown = await alter("impatient", 1).catch((reason: unknown) => reason);
    expect(isLockTimeout(error)).toBe(true);
  });
  const columns = await database.db.sql`
    select from information_schema.columns where column_name = 'impatient'`;
  expect(columns).toHaveLength(0);
});

test("makes all tables in the schema of its user, beside tables of the same names in public", async () => {
  const { sql } = database.db;
  const name = `beside_${crypto.randomUUID().slice(0, 8)}`;
  const url = Object.assign(new URL(database.url), { username: name, password: name });
  await sql.unsafe(`
    create role ${name} login password '${name}';
    create schema ${name} authorization ${name};
    alter role ${name} in database "${url.pathname.slice(1)}" set search_path = ${name}`);
  await migrate(url.href);
  await migrate(url.href);
  const own = connect(url.href, { max: 1, name: "test" });
  expect([await schemaError(own), (await checkRights(own, own)).kind]).toEqual([undefined, "ok"]);
  await own.close();
  const tables = await sql<{ schema: string; n: number }[]>`
    select schemaname as schema, count(*)::int as n from pg_tables
     where schemaname in ('public', ${name}) and tablename not in ('changed', '__drizzle_migrations')
       and tablename !~ '_[0-9]{8}$' group by 1`;
  expect(tables.map(({ n }) => n)).toEqual([expect.any(Number), tables[0]?.n ?? 0]);
  const foreign = await sql`
    select conname from pg_constraint c join pg_class t on t.oid = c.confrelid
     where c.connamespace <> t.relnamespace`;
  expect(foreign).toHaveLength(0);
  await sql.unsafe(`drop owned by ${name} cascade; drop role ${name}`);
});

describe("the migrations 0017 and 0018", () => {
  const [earlier, last] = ownMigrations().filter(({ name }) => /^001[78]_/.test(name));
  const columns = { pending_test_event_id: "webhook_subscriptions", began_at: "incidents" };
  let lacking: TestDatabase;
  beforeEach(async () => {
    lacking = await createDatabase();
  });
  afterEach(() => lacking.drop());

  /** Undoes one of them. */
  const undo = async (column: keyof typeof columns, migration: typeof last) => {
    await lacking.db.sql.unsafe(`alter table ${columns[column]} drop column ${column}`);
    await forget(migration);
  };
  const forget = (migration: typeof last) =>
    lacking.db
      .sql`delete from drizzle.__drizzle_migrations where created_at = ${migration?.at ?? 0}`;
  const columnsThere = async () => {
    const rows = await lacking.db.sql<{ name: keyof typeof columns }[]>`
      select column_name as name from information_schema.columns
       where (table_name, column_name) in (('incidents', 'began_at'), ('webhook_subscriptions', 'pending_test_event_id'))`;
    return rows.map(({ name }) => name).toSorted();
  };

  test("are applied one by one, also the earlier one where the database has the later one", async () => {
    await undo("pending_test_event_id", earlier);
    expect(await schemaError(lacking.db)).toContain("lacks 1 migration of this version");
    const applied = await Promise.all([1, 2, 3].map(() => migrate(lacking.url)));
    expect(applied.toSorted()).toEqual([0, 0, 1]);
    expect(await columnsThere()).toEqual(["began_at", "pending_test_event_id"]);
    expect(await schemaState(lacking.db)).toEqual({ kind: "current" });
  });

  test("are both undone if the second one fails", async () => {
    await undo("pending_test_event_id", earlier);
    await forget(last);
    const error: unknown = await migrate(lacking.url).catch((reason: unknown) => reason);
    expect(String(error)).toContain('column "began_at" of relation "incidents" already exists');
    expect(await columnsThere()).toEqual(["began_at"]);
    expect(await schemaState(lacking.db)).toMatchObject({
      kind: "behind",
      missing: [earlier, last],
    });
  });

  test("are not applied to a database with a migration that this version does not know", async () => {
    const unknown = { at: (earlier?.at ?? 0) + 1, hash: "d00d".repeat(16) };
    await undo("began_at", last);
    await lacking.db.sql`
      insert into drizzle.__drizzle_migrations (hash, created_at) values (${unknown.hash}, ${unknown.at})`;
    const error: unknown = await migrate(lacking.url).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SchemaError);
    expect(String(error)).toContain(`${new Date(unknown.at).toISOString()}, SHA-256 d00dd00dd00d…`);
    expect(String(error)).toContain(`lacks 1 migration of this version (${last?.name})`);
    expect(await columnsThere()).toEqual(["pending_test_event_id"]);
    expect(await schemaError(lacking.db)).toContain("Install a version that has them all");
  });
});

beforeAll(async () => {
  await database.db.sql`create table changed (id int generated always as identity)`;
});

/** Reads the table in a transaction that stays open, as a dump does. */
async function whileRead(work: () => Promise<void>): Promise<void> {
  await database.connect().transaction(async (tx) => {
    await tx.sql`select from changed`;
    await work();
  });
}

const isWaiting = async () => {
  const rows = await database.db.sql`
    select from pg_stat_activity
     where query like 'alter table changed%' and wait_event_type = 'Lock'
       and datname = current_database()`;
  return rows.length > 0;
};

const alter = (name: string, patienceMs?: number) =>
  withPatience(
    database.connect(),
    (tx) => tx.sql.unsafe(`alter table changed add column ${name} int`),
    patienceMs,
  );
