// The ids of records that the product creates itself, beside those of a platform that moves in (contract 10.9).
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { FIRST_OWN_ID, ownId } from "../../../db/own-ids.ts";
import { plans } from "../../../db/schema/companies.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";
import { runCommand } from "../../support/processes/command.ts";

test("setup takes ids from 2,147,000,000 on, and none of the sequences of the tables", async () => {
  const { status } = await run("setup", ...SETUP);
  expect(status).toBe(0);
  expect(await ids()).toEqual([
    { table: "companies", id: FIRST_OWN_ID },
    { table: "users", id: FIRST_OWN_ID + 1 },
    { table: "plans", id: FIRST_OWN_ID + 2 },
    { table: "review_sites", id: FIRST_OWN_ID + 3 },
  ]);
  expect(await lastDrawn()).toEqual({
    companies: null,
    users: null,
    plans: null,
    review_sites: null,
  });
});

test("a platform whose ids begin with 1 in every table is imported with all of them", async () => {
  const { status, said } = await importLines(
    { kind: "plan", id: 1, name: "Growth" },
    { kind: "partner", id: 1, external_id: "p1", name: "Northwind", primary_color: "#aa3300" },
    { kind: "account", id: 2, external_id: "a2", name: "Alder", partner_id: 1, plan_id: 1 },
    { kind: "store", id: 1, external_id: "s1", account_id: 2, name: "East" },
    { kind: "review_site", id: 1, slug: "yelp", name: "Yelp" },
    { kind: "connection", id: 1, external_id: "c1", store_id: 1, review_site: "yelp" },
    {
      kind: "user",
      id: 1,
      external_id: "u1",
      email: "a@p.example",
      name: "A",
      role: "super_admin",
    },
  );
  expect([status, said]).toEqual([0, expect.not.stringContaining("faulty:")]);
  // An account without a colour of its own has that of its partner.
  const [account] = await database.db.sql`select primary_color from companies where id = 2`;
  expect(account).toEqual({ primary_color: "#aa3300" });
  expect((await ids()).filter(({ id }) => id < FIRST_OWN_ID)).toEqual([
    { table: "companies", id: 1 },
    { table: "companies", id: 2 },
    { table: "users", id: 1 },
    { table: "plans", id: 1 },
    { table: "review_sites", id: 1 },
  ]);
});

test("setup without an address still means the administrator that it made, not an imported one", async () => {
  const { said } = await run("setup", "--new-link", "--json");
  expect(fieldsOf(JSON.parse(said))["admin"]).toMatchObject({
    email: "ada@acme.example",
    made: false,
  });
});

test("an id of that range is kept if it is free, and no sequence of a table moves there", async () => {
  const before = await lastDrawn();
  const top = { kind: "partner", external_id: "top", name: "Top" };
  expect((await importLines({ ...top, id: 2_147_483_647 })).status).toBe(0);
  const below = { kind: "partner", external_id: "below", name: "Below" };
  expect((await importLines({ ...below, id: FIRST_OWN_ID - 2 })).status).toBe(0);
  expect(await lastDrawn()).toEqual({ ...before, companies: FIRST_OWN_ID - 2 });
  const { status, said } = await importLines({ ...top, external_id: "other", id: FIRST_OWN_ID });
  expect(status).toBe(1);
  expect(said).toContain(
    `partner ${FIRST_OWN_ID}: id is that of the platform ${FIRST_OWN_ID} "Acme": platforms and partners share their ids; omit id`,
  );
});

test("a record of our own takes the next id that an import left free", async () => {
  const drawn = await database.db.transaction((tx) => ownId(tx, plans));
  const taken = [1, 2].map((more) => ({ kind: "plan", id: drawn + more, name: `Taken ${more}` }));
  expect((await importLines(...taken)).status).toBe(0);
  expect(await database.db.transaction((tx) => ownId(tx, plans))).toBe(drawn + 3);
});

test("two at the same time draw different ids", async () => {
  const draw = () => database.db.transaction((tx) => ownId(tx, plans));
  const drawn = await Promise.all(Array.from({ length: 8 }, draw));
  expect(new Set(drawn).size).toBe(8);
});

test("an export goes into an installation that was set up without plans and review sites alone", async () => {
  const old = await createDatabase();
  const [fresh, full] = [await createDatabase(), await createDatabase()];
  // As the setup of an earlier version made them.
  await old.db.sql`insert into plans (name, features) values ('Standard', '{}')`;
  await old.db.sql`insert into companies (type, name, primary_color, created_at)
    values ('platform', 'Acme', '#000000', now())`;
  const file = join(folder, "export.ndjson");
  expect((await runAt(old.url, "export", file)).status).toBe(0);
  expect((await runAt(full.url, "setup", ...SETUP)).status).toBe(0);
  const refused = await runAt(full.url, "import", file);
  expect([refused.status, refused.said]).toEqual([
    1,
    expect.stringContaining('plan 1: name is that of the plan 2147000002 "Standard"'),
  ]);
  expect((await runAt(fresh.url, "setup", ...COMPANY)).status).toBe(0);
  expect((await runAt(fresh.url, "import", file)).status).toBe(0);
  // The whole setup leaves afterwards what is there.
  expect((await runAt(fresh.url, "setup", ...SETUP)).status).toBe(0);
  const rows = await fresh.db.sql`select id, name from plans`;
  expect([...rows]).toEqual([{ id: 1, name: "Standard" }]);
  await Promise.all([old, fresh, full].map((one) => one.drop()));
});

const COMPANY = ["--company=Acme", "--admin-email=ada@acme.example"];
const SETUP = [...COMPANY, "--plan=Standard", "--review-site=google=Google"];
const TABLES = ["companies", "users", "plans", "review_sites"];

const folder = mkdtempSync(join(tmpdir(), "own-ids-"));
afterAll(() => rmSync(folder, { recursive: true }));
const database = fixture(createDatabase);

const run = (command: string, ...args: readonly string[]) => runAt(database.url, command, ...args);

const runAt = (url: string, command: string, ...args: readonly string[]) =>
  runCommand(["src/operate/main.ts", command, ...args], {
    DATABASE_URL: url,
    REDIS_URL: "redis://unused.invalid",
    SERVER_ROOT: "https://reviews.example",
    MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
  });

async function importLines(...lines: readonly object[]) {
  const file = join(folder, `${crypto.randomUUID()}.ndjson`);
  await Bun.write(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return run("import", file);
}

async function ids(): Promise<{ table: string; id: number }[]> {
  const { sql } = database.db;
  const read = async (table: string) => {
    const rows = await sql<{ id: number }[]>`select id from ${sql(table)} order by id`;
    return rows.map(({ id }) => ({ table, id }));
  };
  return (await Promise.all(TABLES.map(read))).flat();
}

/** Reads the last id that each table's own sequence has drawn. */
async function lastDrawn(): Promise<Record<string, number | null>> {
  const rows = await database.db.sql<{ table: string; last: number | null }[]>`
    select t as "table", pg_sequence_last_value(pg_get_serial_sequence(t, 'id')::regclass)::int as last
      from unnest(${TABLES}::text[]) as t`;
  return Object.fromEntries(rows.map(({ table, last }) => [table, last]));
}
