// Restores the databases of earlier releases, migrates each to the schema of the head, and works on it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { connect, type RawDb } from "../../db/client.ts";
import { schemaState } from "../../db/migrate.ts";
import { ROOT } from "../../scripts/install/install.ts";
import { catalogOf } from "../support/declared-schema.ts";
import { created } from "../support/factory.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { createDatabase } from "../support/postgres.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { runCommand } from "../support/processes/command.ts";
import { checkOut, readDump, signIn, SINCE_0_1_0, succeed } from "./demo.ts";

const dumps = readdirSync(join(import.meta.dir, "releases")).filter((name) =>
  name.endsWith(".sql.gz"),
);

describe.each(dumps)("the migrated database of %s", (name) => {
  const { header, sql } = readDump(name);
  let env: Record<string, string>;

  beforeAll(async () => {
    env = { ...(await restore(sql)), MASTER_KEY: header.masterKey };
    await succeed(["src/operate/main.ts", "migrate"], env, ROOT);
  }, 120_000);

  test("has the schema of a new one", async () => {
    const fresh = await createDatabase();
    const db = connect(env["DATABASE_URL"] ?? "", { max: 1, name: "test" });
    try {
      expect(await schemaState(db)).toEqual({ kind: "current" });
      expect(await catalogOf(db, "public")).toEqual(await catalogOf(fresh.db, "public"));
      expect(await objectsOf(db)).toEqual(await objectsOf(fresh.db));
    } finally {
      await db.close();
      await fresh.drop();
    }
  });

  test("keeps sign-ins, subscriptions and attempts, and delivers what it held", async () => {
    const receiver = await Receiver.start();
    ends.push(() => receiver.stop());
    const api = await ApiProcess.start(env);
    ends.push(() => api.kill());
    const request = await signIn(api, header);
    const call = async (...args: Parameters<typeof request>) => (await request(...args)) as Shown;
    const { data } = await call("GET", "/partner/webhooks");
    expect(data.map((one) => one.label).toSorted()).toEqual(["Nightly", "Orders"]);
    const orders = data.find((one) => one.label === "Orders");
    expect(orders).toMatchObject({ is_active: false, disabled_reason: "manual" });
    const webhook = `/partner/webhooks/${orders?.id}`;
    const deliveries = await call("GET", `${webhook}/deliveries?limit=100`);
    expect(deliveries.data).toHaveLength(header.attempts);
    const delivery = await call("GET", `${webhook}/deliveries/${deliveries.data[0]?.event_id}`);
    expect(delivery.attempts[0]?.request_body).toEqual(expect.any(String));

    await call("PATCH", webhook, { webhook_url: receiver.url });
    await call("POST", `${webhook}/enable`);
    const dispatcher = new DispatcherProcess({ ...env });
    dispatcher.start();
    ends.push(() => dispatcher.stop());
    const { provider, siteId, held } = header;
    expect(await api.report(provider, [created(siteId, "new")])).toMatchObject({ status: 200 });
    await until("the deliveries", () => receiver.received.length > held.length);
    expect(receiver.eventIds.slice(0, held.length)).toEqual([...held]);
    const { secret } = await call("POST", `${webhook}/secret`);
    for (const { body, headers } of receiver.received)
      expect(headers["x-svc-signature"]).toBe(
        `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
      );
  });
});

describe("the database of a patch release of 0.1.0 with a migration of its own", () => {
  const { header, sql } = readDump("0.1.0.sql.gz");
  let env: Record<string, string>;
  let older: string;
  const migrate = (tree: string) => runCommand(["run", "migrate"], env, { tree });

  beforeAll(async () => {
    env = { ...(await restore(sql)), MASTER_KEY: header.masterKey };
    older = checkOut("0.1.0");
    await succeed(["run", "migrate"], env, patched(older));
  }, 120_000);

  test("is not migrated by a head that lacks that migration: it names it and what to install", async () => {
    const { status, said } = await migrate(ROOT);
    expect(said).toMatch(
      new RegExp(
        String.raw`^The database has 1 migration that this version does not know \(2026-11-26T19:26:40.000Z, SHA-256 [0-9a-f]{12}…\), and lacks ${SINCE_0_1_0} migrations of this version \(0015_confirmed_recipients, .*Install a version that has them all`,
        "m",
      ),
    );
    expect(status).toBe(78);
  });

  test("gets all that it lacks, before and after that migration, by a head that has it", async () => {
    const { status, said } = await migrate(patched(ROOT));
    expect(said).toContain(`The database has the current schema, ${SINCE_0_1_0} applied.`);
    expect(status).toBe(0);
  });

  test("works with a head that lacks that migration, and with 0.1.0, which call it later", async () => {
    expect((await migrate(ROOT)).said).toContain(
      "The database schema is ahead by 1 (2026-11-26T19:26:40.000Z",
    );
    expect((await migrate(older)).said).toContain(
      `The database has a later schema, by ${SINCE_0_1_0 + 1}`,
    );
    for (const tree of [ROOT, older]) {
      const api = await ApiProcess.start(env, { tree });
      const call = await signIn(api, header);
      expect(await call("GET", "/partner/webhooks")).toMatchObject({ data: [{}, {}] });
      api.kill();
    }
  });
});

/** The fields of subscriptions and deliveries that are read here; each response has some of them. */
interface Shown extends Readonly<Record<string, unknown>> {
  readonly data: readonly {
    readonly id: string;
    readonly label: string;
    readonly event_id: string;
  }[];
  readonly attempts: readonly { readonly request_body: string }[];
  readonly secret: string;
}

/** A migration between 0016 and 0017, as a patch release of 0.1.0 has it after 0014. */
const PATCH = {
  when: 1_795_721_200_000,
  tag: "0016_1_patch",
  sql: "alter table plans add column patched boolean not null default false;",
};

/** Copies a checkout, and gives the copy the migration of the patch at its place in the journal. */
function patched(tree: string): string {
  const copy = mkdtempSync(join(tmpdir(), "reviewrelay-patched-"));
  ends.push(() => rmSync(copy, { recursive: true }));
  for (const name of ["package.json", "db", "src", "scripts"])
    cpSync(join(tree, name), join(copy, name), { recursive: true });
  symlinkSync(join(tree, "node_modules"), join(copy, "node_modules"));
  const folder = join(copy, "db/migrations");
  const path = join(folder, "meta/_journal.json");
  const journal: { entries: { when: number; tag: string }[] } = JSON.parse(
    readFileSync(path, "utf8"),
  );
  const { when, tag } = PATCH;
  const entries = [...journal.entries, { when, tag }].toSorted((a, b) => a.when - b.when);
  writeFileSync(path, JSON.stringify({ ...journal, entries }));
  writeFileSync(join(folder, `${tag}.sql`), PATCH.sql);
  return copy;
}

const ends: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ends.toReversed()) await end();
});

/**
 * Reads the definitions of all indexes, triggers, functions and views, the storage parameters of all tables, and the
 * names of the maintenance jobs.
 */
async function objectsOf({ sql }: RawDb): Promise<string[]> {
  const rows = await sql<{ line: string }[]>`
    select indexdef as line from pg_indexes where schemaname = 'public' and tablename !~ '_[0-9]{8}$'
    union all select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
    union all select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
    union all select pg_get_viewdef(oid) from pg_class where relnamespace = 'public'::regnamespace and relkind = 'v'
    union all select concat_ws(' ', relname, reloptions) from pg_class
               where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname !~ '_[0-9]{8}$'
    union all select concat_ws(' ', 'job', name) from maintenance_jobs
    order by 1`;
  return rows.map(({ line }) => line);
}

/** Fills a new database; returns the settings of processes that work on it. */
async function restore(sql: string): Promise<Record<string, string>> {
  const server = process.env["TEST_DATABASE_URL"] ?? "";
  const name = `release_${crypto.randomUUID().slice(0, 8)}`;
  const administer = async (statement: string, url = server) => {
    const db = connect(url, { max: 1, name: "test" });
    await db.sql.unsafe(statement);
    await db.close();
  };
  await administer(`create database "${name}"`);
  ends.push(() => administer(`drop database "${name}" with (force)`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  await administer(sql, url.href);
  return {
    DATABASE_URL: url.href,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: `${name}:`,
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
  };
}
