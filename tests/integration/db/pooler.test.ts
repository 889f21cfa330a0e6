import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { connect } from "../../../db/client.ts";
import { isPoolerFound } from "../../../db/errors.ts";
import { LIMITS } from "../../../db/limits.ts";
import { migrate, schemaError } from "../../../db/migrate.ts";
import { sessionFault } from "../../../db/session-settings.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { PASSWORD } from "../../support/api.ts";
import { ApiProcess } from "../../support/processes/api-process.ts";
import { createTestSchedule } from "../../support/dispatch.ts";
import { runCommand } from "../../support/processes/command.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { addProvider, connectStore, created } from "../../support/factory.ts";
import { SHADOWS } from "../../../scripts/demo/stores/shadows.ts";
import { insertSubscription } from "../../support/outbox.ts";
import { startPgBouncer, type PgBouncer } from "../../support/processes/pgbouncer.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { addTenants } from "../../support/tenants.ts";
import { lacks } from "../../support/needs.ts";

const isThere = !lacks("pgbouncer");

test.skipIf(!isThere)(
  "a process behind a pooler that is not announced exits with advice, in both modes",
  async () => {
    const session = await startPgBouncer(database.url, { mode: "session" });
    for (const one of [pooler, session]) {
      const [status, said] = await ApiProcess.fail({
        ...env,
        DATABASE_URL: one.in(database.url),
      });
      expect(status).toBe(78);
      expect(said).toContain("prepare=false");
    }
    await session.stop();
  },
);

test.skipIf(!isThere)(
  "a pool detects the pooler at every connection, not only at the start",
  async () => {
    const db = connect(pooler.in(database.url), { max: 2, name: "x" });
    for (let i = 0; i < 3; i++)
      expect(isPoolerFound(await db.sql`select 1`.catch((error: unknown) => error))).toBe(true);
    await db.close();
  },
);

test.skipIf(!isThere)(
  "behind an announced pooler a transaction has its limits and leaves none behind",
  async () => {
    const url = `${pooler.in(database.url)}?prepare=false`;
    const db = connect(url, { max: 8, name: "x", limits: LIMITS.writerPool });
    const limit = async (sql: typeof db.sql) => {
      const [row] = await sql<{ limit: string }[]>`select current_setting('lock_timeout') as limit`;
      return row?.limit;
    };
    const inside = Array.from({ length: 20 }, () => db.transaction((tx) => limit(tx.sql)));
    expect(new Set(await Promise.all(inside))).toEqual(new Set(["2s"]));
    expect(new Set(await Promise.all(inside.map(() => limit(db.sql))))).toEqual(new Set(["0"]));
    await db.close();
  },
);

test.skipIf(!isThere)("behind an announced pooler concurrent migrations succeed", async () => {
  const url = `${pooler.in(database.url)}?prepare=false`;
  await Promise.all(Array.from({ length: 3 }, () => migrate(url)));
});

test.skipIf(!isThere)(
  "behind an announced pooler a migration goes on in another session if its own is ended",
  async () => {
    const migrating = await database.db.transaction(async ({ sql }) => {
      await sql`select pg_advisory_xact_lock(hashtext('reviewrelay:migrate'))`;
      // The rejection is handled below.
      const result = migrate(`${pooler.in(database.url)}?prepare=false`).catch(String);
      await until("it waits and is ended", async () => {
        const ended = await sql`
          select pg_terminate_backend(pid) from pg_locks
           where locktype = 'advisory' and not granted
             and database = (select oid from pg_database where datname = current_database())`;
        return ended.length > 0;
      });
      return { result };
    });
    expect(await migrating.result).toBe(0);
  },
);

test.skipIf(!isThere)(
  "behind an announced pooler all accepted events are delivered in order",
  async () => {
    const { db } = database;
    const receiver = await Receiver.start();
    const tenants = await addTenants(db);
    const [partner] = tenants.partners;
    const provider = await addProvider(db, box);
    const site = await connectStore(db, partner.accounts[0], { provider });
    await insertSubscription({ db, box }, { partnerId: partner.id, url: receiver.url });
    const DATABASE_URL = `${pooler.in(database.url)}?prepare=false`;
    const api = await ApiProcess.start({ ...env, DATABASE_URL });
    const dispatcher = new DispatcherProcess({
      ...env,
      DATABASE_URL,
      DISPATCHER_CONNECTIONS: "1",
    });
    dispatcher.start();
    const answers = await Promise.all(
      Array.from({ length: EVENTS }, (_, i) => api.report(provider, [created(site, `r-${i}`)])),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: EVENTS }, () => 200));
    expect((await api.login(partner.owner.email, PASSWORD)).status).toBe(200);
    await until("all is delivered", () => receiver.eventIds.length >= EVENTS);
    const rows = await db.sql<{ event_id: string }[]>`
    select event_id from review_history where partner_id = ${partner.id} order by id`;
    expect(receiver.eventIds).toEqual(rows.map((row) => row.event_id));
    await dispatcher.stop();
    api.kill();
    await receiver.stop();
  },
);

test.skipIf(!isThere)(
  "sessions of the pooler get the settings of single statements from migrate, also those that were open before",
  async () => {
    const other = await createDatabase("sessions");
    const name = new URL(other.url).pathname.slice(1);
    await other.db.sql.unsafe(SHADOWS);
    for (const one of [
      "bytea_output = 'escape'",
      "datestyle = 'German'",
      "default_transaction_isolation = 'serializable'",
      "search_path = 'shadows', 'pg_catalog', 'public'",
      "synchronous_commit = off",
    ])
      await other.db.sql.unsafe(`alter database "${name}" set ${one}`);
    const url = `${pooler.in(other.url)}?prepare=false`;
    const db = connect(url, { max: 4, name: "x" });
    const faults = () =>
      Promise.all(
        Array.from({ length: 16 }, async () => (await sessionFault(db)) ?? (await schemaError(db))),
      );
    expect(await faults()).not.toContain(undefined);
    await migrate(url);
    expect(new Set(await faults())).toEqual(new Set([undefined]));
    const [row] = await db.sql`
      select current_setting('synchronous_commit') as mode, current_setting('search_path') as path, '\\x00ff'::bytea as bytes`;
    expect(row).toEqual({ mode: "on", path: "public, pg_temp", bytes: Buffer.from([0, 255]) });
    await db.close();
    await other.drop();
  },
);

test.skipIf(!isThere)(
  "migrate, the doctor and each process name a pooler that gives each statement another session",
  async () => {
    const statement = await startPgBouncer(database.url, { mode: "statement" });
    const url = `${statement.in(database.url)}?prepare=false`;
    const failed = await migrate(url).catch(String);
    expect(failed).toContain("pool_mode = transaction");
    await expectNamed(url, "pool_mode = transaction");
    await statement.stop();
  },
);

test.skipIf(!isThere)(
  "the doctor and each process name a search path that the pooler sets itself",
  async () => {
    const other = await createDatabase("sessions");
    await other.db.sql.unsafe(SHADOWS);
    const setting = await startPgBouncer(other.url, {
      mode: "transaction",
      connectQuery: "set search_path = shadows, pg_catalog, public",
    });
    const url = `${setting.in(other.url)}?prepare=false`;
    await migrate(url);
    await expectNamed(url, "The search path of sessions is shadows, pg_catalog, public");
    await setting.stop();
    await other.drop();
  },
);

async function expectNamed(url: string, why: string): Promise<void> {
  const given = { ...env, DATABASE_URL: url };
  const doctor = await runCommand(["src/operate/main.ts", "doctor"], {
    ...given,
    SERVER_ROOT: "http://localhost",
  });
  expect([doctor.status, doctor.said]).toEqual([1, expect.stringContaining(why)]);
  expect(await ApiProcess.fail(given)).toEqual([78, expect.stringContaining(why)]);
}

const KEY = randomBytes(32);

const box = createSecretBox({ current: KEY });

const EVENTS = 100;

let database: TestDatabase;

/** A pooler in transaction mode. */
let pooler: PgBouncer;

let schedule: Awaited<ReturnType<typeof createTestSchedule>>;

let env: Record<string, string>;

beforeAll(async () => {
  if (!isThere) return;
  database = await createDatabase("sessions");
  pooler = await startPgBouncer(database.url, { mode: "transaction" });
  schedule = await createTestSchedule();
  env = {
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: schedule.prefix,
    MASTER_KEY: KEY.toString("base64"),
  };
});

afterAll(async () => {
  if (!isThere) return;
  schedule.close();
  await pooler.stop();
  await database.drop();
});
