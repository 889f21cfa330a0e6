// The processes and commands on a database whose defaults are those of another program.
import { afterAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { connect, type RawDb } from "../../../db/client.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { PASSWORD } from "../../support/api.ts";
import { createTestSchedule } from "../../support/dispatch.ts";
import { addProvider, connectStore, created } from "../../support/factory.ts";
import { hostileSettings } from "../../../scripts/demo/stores/foreign-settings.ts";
import { SHADOWS } from "../../../scripts/demo/stores/shadows.ts";
import { fixture } from "../../support/fixture.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { insertSubscription } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { ApiProcess } from "../../support/processes/api-process.ts";
import { runCommand } from "../../support/processes/command.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { addTenants } from "../../support/tenants.ts";

const KEY = randomBytes(32);
const box = createSecretBox({ current: KEY });
const template = fixture(() => createDatabase("defaults"));
const receiver = fixture(() => Receiver.start());
const schedule = fixture(createTestSchedule);
const made: string[] = [];

afterAll(async () => {
  for (const name of made) await template.db.sql.unsafe(`drop database ${name} with (force)`);
});

const FORMATS = [
  ["datestyle", "'German'"],
  ["bytea_output", "'escape'"],
] as const;

describe("a new database", () => {
  test("with foreign formats is migrated, serves sign-ins and delivers, with the bytes of its attempts", async () => {
    const { db, url } = await makeDatabase();
    await alter(db, url, FORMATS);
    await expectServed(url);
    await db.close();
  });

  test("with a hostile value of every setting at once, set after it was migrated, too", async () => {
    const { db, url } = await makeDatabase();
    expect((await operate("migrate", url)).status).toBe(0);
    await db.sql.unsafe(SHADOWS);
    const known = await db.sql<{ name: string }[]>`select name from pg_settings`;
    await alter(
      db,
      url,
      hostileSettings(new Set(known.map((row) => row.name))).map(([name, value]) => [
        name,
        name === "search_path" ? value : `'${value}'`,
      ]),
    );
    await expectServed(url);
    const [row] = await db.sql<{ n: number }[]>`
      select count(*)::int as n from pg_tables where tablename = 'webhook_subscriptions'`;
    expect(row?.n).toBe(1);
    await db.close();
  });
});

describe("migrate, the doctor and each process name a ground that cannot work", () => {
  test("a database in LATIN1 or SQL_ASCII", async () => {
    for (const encoding of ["LATIN1", "SQL_ASCII"]) {
      const { db, url } = await makeDatabase(
        `encoding '${encoding}' locale 'C' template template0`,
      );
      await db.close();
      await expectRefused(url, `The encoding of the database is ${encoding}`);
    }
  });

  test("a role for which triggers do not fire", async () => {
    const { db, url } = await makeDatabase();
    await alter(db, url, [["session_replication_role", "replica"]]);
    await db.close();
    await expectRefused(url, "session_replication_role is replica");
  });

  test("a search path without a schema", async () => {
    const { db, url } = await makeDatabase();
    await alter(db, url, [["search_path", "absent"]]);
    await db.close();
    await expectRefused(url, "No schema of the search path (absent)");
  });

  test("a database that is read-only by default", async () => {
    const { db, url } = await makeDatabase();
    await alter(db, url, [["default_transaction_read_only", "on"]]);
    await db.close();
    const { status, said } = await operate("doctor", url);
    expect([status, said]).toEqual([
      1,
      expect.stringContaining("No host of DATABASE_URL is read-write"),
    ]);
  });

  test("a schema with tables of another program", async () => {
    const { db, url } = await makeDatabase();
    await db.sql.unsafe("create table users (id integer)");
    await db.close();
    const { status, said } = await operate("migrate", url);
    expect([status, said]).toEqual([
      78,
      expect.stringContaining("Another program has tables of these names in the schema public"),
    ]);
  });
});

async function expectRefused(url: string, why: string): Promise<void> {
  const migrated = await operate("migrate", url);
  expect([migrated.status, migrated.said]).toEqual([78, expect.stringContaining(why)]);
  const doctor = await operate("doctor", url);
  expect([doctor.status, doctor.said]).toEqual([1, expect.stringContaining(why)]);
  const [status, said] = await ApiProcess.fail(envOf(url));
  expect([status, said]).toEqual([78, expect.stringContaining(why)]);
}

/** Migrates the database, signs in, and delivers an event, whose recorded bytes are read again. */
async function expectServed(url: string): Promise<void> {
  const migrated = await operate("migrate", url);
  expect([migrated.said, migrated.status]).toEqual([expect.stringContaining("current schema"), 0]);
  const db = connect(url, { max: 2, name: "test" });
  const tenants = await addTenants(db);
  const [partner] = tenants.partners;
  const provider = await addProvider(db, box);
  const site = await connectStore(db, partner.accounts[0], { provider });
  const { subscriptionId } = await insertSubscription(
    { db, box },
    { partnerId: partner.id, url: receiver.url },
  );
  const api = await ApiProcess.start(envOf(url));
  const dispatcher = new DispatcherProcess(envOf(url));
  dispatcher.start();
  const login = await api.login(partner.owner.email, PASSWORD);
  expect(login.status).toBe(200);
  const before = receiver.received.length;
  expect((await api.report(provider, [created(site, "r-1")])).status).toBe(200);
  await until("the event is delivered", () => receiver.received.length > before);
  const list = `${api.root}${BASE_PATH}/partner/webhooks/${subscriptionId}/deliveries`;
  const headers = { Authorization: `Bearer ${String(login.body["token"])}` };
  const shown = async () => (await api.call("GET", list, { headers })).body["data"] as unknown[];
  await until("the attempt is recorded", async () => (await shown()).length === 1);
  expect(await shown()).toMatchObject([{ request_body: receiver.received[before]?.body }]);
  await dispatcher.stop();
  api.kill();
  await db.close();
}

const envOf = (url: string) => ({
  DATABASE_URL: url,
  REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
  REDIS_PREFIX: schedule.prefix,
  MASTER_KEY: KEY.toString("base64"),
});

const operate = (command: string, url: string) =>
  runCommand(["src/operate/main.ts", command], { ...envOf(url), SERVER_ROOT: "http://localhost" });

async function makeDatabase(options = ""): Promise<{ db: RawDb; url: string }> {
  const name = `${new URL(template.url).pathname.slice(1)}_${randomBytes(3).toString("hex")}`;
  await template.db.sql.unsafe(`create database ${name} ${options}`);
  made.push(name);
  const url = new URL(template.url);
  url.pathname = `/${name}`;
  return { db: connect(url.href, { max: 1, name: "test" }), url: url.href };
}

async function alter(
  { sql }: RawDb,
  url: string,
  settings: readonly (readonly [string, string])[],
): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  for (const [setting, value] of settings)
    for (const one of [`database ${name}`, `role current_user in database ${name}`])
      await sql.unsafe(`alter ${one} set ${setting} = ${value}`);
}
