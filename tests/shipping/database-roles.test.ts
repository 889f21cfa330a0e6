// Runs the statements of docs/operations/production.md for two database users, and the service with these users.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { connect, type RawDb } from "../../db/client.ts";
import { settingsOfRole, unlimited } from "../../db/session-settings.ts";
import { checkRights } from "../../src/operate/doctor/database.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import { createSecretBox } from "../../src/lib/secrets.ts";
import { PASSWORD } from "../support/api.ts";
import {
  addProvider,
  connectStore,
  created,
  reviewIdOf,
  type TestProvider,
} from "../support/factory.ts";
import { fixture } from "../support/fixture.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { runCommand } from "../support/processes/command.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { addTenants, type Tenants } from "../support/tenants.ts";
import { readDump, signIn, SINCE_0_1_0 } from "./demo.ts";

const empty = fixture(createUsers);
const older = fixture(createUsers);
const used = fixture(createUsers);

describe("an empty database with two users", () => {
  test("is not set up by the service's user: the message names the setting and the owner", async () => {
    for (const args of [["migrate"], SETUP]) {
      const { status, said } = await operate(args, empty.serviceEnv);
      expect(said).toContain(`the user that owns the tables, ${empty.names.reviewrelay_owner} (`);
      expect([args, status, said]).toEqual([args, 78, expect.not.stringMatching(STACK)]);
    }
  });

  test("is migrated and set up in one go with the address of the owner, from a file", async () => {
    const file = join(folder, "owner");
    writeFileSync(file, empty.env.MAINTENANCE_DATABASE_URL);
    const { status, said } = await operate(SETUP, {
      ...empty.serviceEnv,
      MAINTENANCE_DATABASE_URL_FILE: file,
    });
    expect([status, said]).toEqual([0, expect.stringContaining('"made": true')]);
    await empty.run(empty.grants);
  });

  test("is left alone by migrate and setup, as either user, where nothing is missing", async () => {
    const { DATABASE_URL, MAINTENANCE_DATABASE_URL } = empty.env;
    for (const url of [DATABASE_URL, MAINTENANCE_DATABASE_URL]) {
      const readOnly = { ...empty.serviceEnv, DATABASE_URL: url + READ_ONLY };
      expect(await operate(["migrate"], readOnly)).toEqual({
        status: 0,
        said: "The database has the current schema.\n",
      });
      const { status, said } = await operate(["setup", "--json"], readOnly);
      expect([status, said]).toEqual([0, expect.stringContaining('"migrations_applied": 0')]);
    }
  });

  test("gets the session settings of the service's user from the owner's migrate, once, if a pooler is before it", async () => {
    for (const parameters of ["?prepare=false", `${READ_ONLY}&prepare=false`]) {
      const DATABASE_URL = empty.env.DATABASE_URL + parameters;
      expect(await operate(["migrate"], { ...empty.env, DATABASE_URL })).toMatchObject({
        status: 0,
      });
    }
    const [role] = await empty.owner.sql<{ settings: string[] }[]>`
      select setconfig as settings from pg_db_role_setting
       where setrole = ${empty.names.reviewrelay}::regrole
         and setdatabase = (select oid from pg_database where datname = current_database())`;
    const known = await empty.owner.sql<{ name: string }[]>`select name from pg_settings`;
    const names = new Set(known.map(({ name }) => name));
    const own = Object.entries(settingsOfRole()).filter(([name]) => names.has(name));
    expect(role?.settings).toEqual([
      ...own.map((pair) => pair.join("=")),
      "search_path=public, pg_temp",
      ...Object.entries(unlimited()).map((pair) => pair.join("=")),
    ]);
  });

  test("is served by every command of the operator", async () => {
    const lines = fileOf({ id: 700, external_id: "p-1" });
    const calls = [
      ["migrate"],
      ["setup"],
      ["doctor"],
      ["keys"],
      ["keys", "rotate", "--force"],
      ["keys", "rotate-master"],
      ["import", lines],
      ["export", join(folder, "export.ndjson")],
      ["erase", "reviewer", "sam@example.com"],
    ];
    const { said } = await operate(["--help"], {});
    const commands = [...said.matchAll(/^  ([a-z]+) /gm)].map(([, name]) => name);
    expect(calls.map(([name]) => name)).toEqual(
      expect.arrayContaining(
        commands.filter((name) => !["api", "dispatcher", "all", "health"].includes(String(name))),
      ),
    );
    for (const args of calls)
      expect([args, await operate(args, empty.env)]).toEqual([
        args,
        { status: 0, said: expect.any(String) },
      ]);
  });

  test("is refused to a command that needs the owner: the message names the setting", async () => {
    const lines = fileOf({ id: 800, external_id: "p-2" });
    const { status, said } = await operate(["import", lines], empty.serviceEnv);
    expect(said).toContain(
      "permission denied for sequence companies_id_seq: set MAINTENANCE_DATABASE_URL to the user that owns the tables",
    );
    expect([status, said]).toEqual([78, expect.not.stringMatching(STACK)]);
  });
});

const SETUP =
  "setup --company Acme --admin-email ada@acme.example --admin-name Ada --plan Standard=reviews --review-site yelp=Yelp --json".split(
    " ",
  );

/** Parameters of an address whose sessions may not write. */
const READ_ONLY = "?default_transaction_read_only=on&target_session_attrs=read-only";

const STACK = /^\s+at /m;

test("two database users serve sign-in, actions, deliveries, retention and erasure, and the service cannot change the audit log", async () => {
  const { owner, service, names } = used;
  const [partner] = tenants.partners;
  const [account] = partner.accounts;
  const [user, member, root] = await Promise.all(
    [partner.owner, account.user, tenants.superAdmin].map(async ({ email }) => {
      const { status, body } = await api.login(email, PASSWORD);
      expect([email, status]).toEqual([email, 200]);
      return String(body["token"]);
    }),
  );
  const webhook = { label: "Hook", webhook_url: receiver.url, delivery_kind: "immediate" };
  expect((await post("/partner/webhooks", webhook, user)).status).toBe(201);
  expect((await api.report(provider, [created(siteId, "first")])).status).toBe(200);
  const reviewId = await reviewIdOf(owner, "first");
  const response = { body: "Thank you." };
  expect((await post(`/account/reviews/${reviewId}/response`, response, member)).status).toBe(200);
  await until("both deliveries", () => receiver.received.length >= 2);
  const history = await api.call("GET", `${api.root}${BASE_PATH}/partner/review-history`, {
    headers: { Authorization: `Bearer ${user}` },
  });
  expect(history.body["data"]).toHaveLength(2);
  const exported = await fetch(`${api.root}${BASE_PATH}/partner/audit-log/export`, {
    headers: { Authorization: `Bearer ${user}` },
  });
  expect([exported.status, await exported.text()]).toEqual([
    200,
    expect.stringContaining('"AUTH_LOGIN"'),
  ]);

  await service.sql`
    insert into audit_log (at, action, details) values (now() - interval '40 days', 'AUTH_LOGOUT', '{}')`;
  const jobs = ["audit_log", "lost_sessions", "partitions", "attempts", "mails"];
  await owner.sql`
    update maintenance_jobs set began_at = now() - interval '1 hour', next_at = now() where name = any(${jobs})`;
  await until("retention", async () => (await auditRows(`action = 'AUTH_LOGOUT'`)) === 0);
  const running = () => owner.sql`
    select from maintenance_jobs where name = any(${jobs}) and succeeded_at is null`;
  await until("the jobs of the owner", async () => (await running()).length === 0);
  expect(await owner.sql`select from maintenance_jobs where failures > 0`).toHaveLength(0);
  const named = `actor_id = ${account.user.id} and ip is not null`;
  expect(await auditRows(named)).toBeGreaterThan(0);
  const deactivated = await post(`/admin/users/${account.user.id}/deactivate`, {}, root);
  expect(deactivated.status).toBe(200);
  expect((await post("/admin/erasures", { user_id: account.user.id }, root)).status).toBe(202);
  await until("the erasure", async () => (await auditRows(named)) === 0);

  for (const statement of [
    "update audit_log set ip = null",
    "delete from audit_log",
    "truncate audit_log",
  ])
    await expect(service.sql.unsafe(statement).then(() => statement)).rejects.toThrow(
      "permission denied for table audit_log",
    );
  expect(await checkRights(owner, service)).toMatchObject({ kind: "ok" });
  await owner.sql.unsafe(`grant delete on audit_log to ${names.reviewrelay}`);
  expect(await checkRights(owner, service)).toMatchObject({ kind: "advice" });
  await owner.sql.unsafe(`revoke delete on audit_log from ${names.reviewrelay}`);
  expect(dispatcher.log).not.toContain("permission denied");
  expect(api.said).not.toContain("permission denied");
}, 120_000);

describe("a database of 0.1.0 with two users", () => {
  const { header, sql } = readDump("0.1.0.sql.gz");
  beforeAll(async () => {
    await older.run(sql);
    await older.run(older.grants);
  });

  test("is not migrated by the service's user: the message names the setting and the owner", async () => {
    const { status, said } = await operate(["migrate"], older.serviceEnv);
    expect(said).toContain(`The user ${older.names.reviewrelay} may not migrate the database`);
    expect(said).toContain(`the user that owns the tables, ${older.names.reviewrelay_owner} (`);
    expect([status, said]).toEqual([78, expect.not.stringMatching(STACK)]);
  });

  test("is migrated with both, and the service needs no other grants", async () => {
    expect(await operate(["migrate"], older.env)).toEqual({
      status: 0,
      said: `The database has the current schema, ${SINCE_0_1_0} applied.\n`,
    });
    const rows = await older.owner.sql<{ name: string; lacks: string }[]>`
      select relname as name, string_agg(privilege, ', ' order by privilege) as lacks
        from pg_class, unnest(array['select', 'insert', 'update', 'delete']) as privilege
       where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')
         and not has_table_privilege(${older.names.reviewrelay}, oid, privilege)
       group by relname order by relname`;
    expect(rows.map(({ name, lacks }) => [name, lacks])).toEqual([
      ["audit_log", "delete, update"],
      ["review_history", "delete"],
    ]);
    const sequences = await older.owner.sql<{ name: string; isUsable: boolean }[]>`
      select relname as name, has_sequence_privilege(${older.names.reviewrelay}, oid, 'usage') as "isUsable"
        from pg_class where relnamespace = 'public'::regnamespace and relkind = 'S'`;
    expect(sequences).toContainEqual({ name: "own_ids", isUsable: true });
    expect(sequences.filter(({ isUsable }) => !isUsable)).toEqual([]);
    const head = await ApiProcess.start({ ...older.serviceEnv, MASTER_KEY: header.masterKey });
    const call = await signIn(head, header);
    expect(await call("GET", "/partner/webhooks")).toMatchObject({ data: [{}, {}] });
    head.kill();
  });
});

const KEY = randomBytes(32);

interface Users {
  /** The names of the document, and those of this test: users belong to the whole server. */
  readonly names: { reviewrelay_owner: string; reviewrelay: string; database: string };
  /** The statements of the document for the owner. */
  readonly grants: string;
  /** The settings of an API, and those of dispatchers and commands. */
  readonly serviceEnv: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<"DATABASE_URL" | "MAINTENANCE_DATABASE_URL", string>>;
  readonly owner: RawDb;
  readonly service: RawDb;
  /** Runs statements as the owner, in a session of their own. */
  run(statements: string): Promise<void>;
  drop(): Promise<void>;
}

/** Creates an empty database with two users by the statements of the document. */
async function createUsers(): Promise<Users> {
  const suffix = randomBytes(6).toString("hex");
  const names = {
    reviewrelay_owner: `owner_${suffix}`,
    reviewrelay: `service_${suffix}`,
    // The test command drops every database whose name begins with that of its template.
    database: `${process.env["TEST_TEMPLATE"] ?? ""}_${suffix}`,
  };
  const adminUrl = process.env["TEST_DATABASE_URL"] ?? "";
  const admin = connect(adminUrl, { max: 1, name: "test" });
  const [create = "", grants = ""] = documented(names);
  for (const statement of create.split(";\n")) await admin.sql.unsafe(statement);
  const urlOf = (username: string, password: string) =>
    Object.assign(new URL(adminUrl), { username, password, pathname: `/${names.database}` }).href;
  const ownerUrl = urlOf(names.reviewrelay_owner, "change-me");
  const serviceUrl = urlOf(names.reviewrelay, "change-me-too");
  const owner = connect(ownerUrl, { max: 2, name: "test" });
  const service = connect(serviceUrl, { max: 1, name: "test" });
  const serviceEnv = {
    DATABASE_URL: serviceUrl,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: `${names.database}:`,
    MASTER_KEY: KEY.toString("base64"),
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
  };
  return {
    names,
    grants,
    owner,
    service,
    serviceEnv,
    env: { ...serviceEnv, MAINTENANCE_DATABASE_URL: ownerUrl },
    async run(statements) {
      const db = connect(ownerUrl, { max: 1, name: "test" });
      await db.sql.unsafe(statements);
      await db.close();
    },
    async drop() {
      await Promise.all([owner.close(), service.close()]);
      await admin.sql.unsafe(`drop database ${names.database} with (force)`);
      await admin.sql.unsafe(`drop role ${names.reviewrelay_owner}, ${names.reviewrelay}`);
      await admin.close();
    },
  };
}

const folder = mkdtempSync(join(tmpdir(), "roles-"));
let tenants: Tenants;
let provider: TestProvider;
let siteId: number;
let receiver: Receiver;
let api: ApiProcess;
let dispatcher: DispatcherProcess;

beforeAll(async () => {
  expect(await operate(["migrate"], used.env)).toMatchObject({ status: 0 });
  await used.run(used.grants);
  tenants = await addTenants(used.owner);
  provider = await addProvider(used.owner, createSecretBox({ current: KEY }));
  siteId = await connectStore(used.owner, tenants.partners[0].accounts[0], { provider });
  receiver = await Receiver.start();
  api = await ApiProcess.start(used.serviceEnv);
  dispatcher = new DispatcherProcess({ ...used.env, AUDIT_RETENTION_DAYS: "30" });
  dispatcher.start();
}, 120_000);

afterAll(async () => {
  api.kill();
  await dispatcher.stop();
  await receiver.stop();
  rmSync(folder, { recursive: true });
});

/** Writes a file for an import of one partner. */
function fileOf(partner: { readonly id: number; readonly external_id: string }): string {
  const path = join(folder, `${partner.external_id}.ndjson`);
  writeFileSync(path, JSON.stringify({ kind: "partner", name: "Acme", ...partner }));
  return path;
}

const operate = (args: readonly string[], settings: Readonly<Record<string, string>>) =>
  runCommand(["src/operate/main.ts", ...args], settings);

/** Reads the blocks of the document that name this file, with the names of this test. */
function documented(names: Users["names"]): string[] {
  const path = join(import.meta.dir, "../../docs/operations/production.md");
  const blocks = readFileSync(path, "utf8").matchAll(
    /^```sql run \S+roles\.test\.ts\n(.*?)^```/gms,
  );
  return [...blocks].map(([, statements = ""]) =>
    statements
      .replace(/(?<=database )reviewrelay\b/, `"${names.database}"`)
      .replaceAll(/\breviewrelay(?:_owner)?\b/g, (name) =>
        name === "reviewrelay" ? names.reviewrelay : names.reviewrelay_owner,
      ),
  );
}

function post(path: string, body: object, token = "") {
  return api.call("POST", `${api.root}${BASE_PATH}${path}`, {
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function auditRows(where: string): Promise<number> {
  const [row] = await used.owner.sql.unsafe(
    `select count(*)::int as n from audit_log where ${where}`,
  );
  return Number(row?.["n"]);
}
