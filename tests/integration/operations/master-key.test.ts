import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { verify } from "@octokit/webhooks-methods";
import { getTableName } from "drizzle-orm";
import { ulid } from "ulid";

import { reportOf, rotateMaster } from "../../../src/operate/keys.ts";
import { createSecretBox, type SecretBox } from "../../../src/lib/secrets.ts";
import { queueMails } from "../../../src/outbox/mail.ts";
import {
  boundBy,
  associatedDataOf,
  masterKeyError,
  SEALED_COLUMNS,
  type SealedColumn,
} from "../../../src/master-key.ts";
import { clientSecretContext } from "../../../src/sso/actions/deps.ts";
import { startApi } from "../../support/api.ts";
import { createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import { withApp } from "../../support/factors.ts";
import { addProvider } from "../../support/factory.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { addUser } from "../../support/tenants.ts";
import { textColumnNames } from "../../support/texts.ts";
import { startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const stores = fixture(createTestSchedule);
const world = fixture(() => startWebhooks({ box, schedule: stores.schedule }));

describe("the list of sealed columns", () => {
  test("names every sealed column of the schema, and no other", async () => {
    const rows = await world.database.db.sql<{ table: string; column: string }[]>`
      select table_name as table, column_name as column from information_schema.columns
       where table_schema = 'public' and column_name like '%sealed%'`;
    expect(rows.map(nameOf).toSorted()).toEqual(SEALED_COLUMNS.map(nameOfSealed).toSorted());
  });

  test("uses the associated data of the code that seals", async () => {
    await fillColumns();
    const values = await sealedValues();
    for (const value of values) expect(value.open(box)).not.toBe("");
    const covered = new Set(values.map(({ name }) => name));
    expect(SEALED_COLUMNS.map(nameOfSealed).filter((name) => !covered.has(name))).toEqual([]);
  });

  test("names every column that holds a sealed value, whatever the column is called", async () => {
    await fillColumns();
    const { sql } = world.database.db;
    const holding: string[] = [];
    for (const name of await textColumnNames(world.database.db)) {
      const [table = "", column = ""] = name.split(".");
      const [row] = await sql`
        select from ${sql(table)} where ${sql(column)}::text ~ '^v1[.][0-9a-f]{8}[.]' limit 1`;
      if (row !== undefined) holding.push(name);
    }
    expect(holding.toSorted()).toEqual(SEALED_COLUMNS.map(nameOfSealed).toSorted());
  });

  test("binds every value to its row: it does not open in another row", async () => {
    for (const column of SEALED_COLUMNS) {
      const associatedData = associatedDataOf(column, filled(column, 1));
      const sealed = both.seal("secret", associatedData);
      const other = associatedDataOf(column, filled(column, 2));
      expect(() => both.open(sealed, other)).toThrow();
    }
  });
});

describe("rotate-master", () => {
  test("re-encrypts everything under load, and every delivery verifies", async () => {
    await fillColumns();
    const receiver = await Receiver.start();
    const headers = { "X-Api-Key": "k" };
    const { id, secret } = await world.subscribe({ webhook_url: receiver.url, headers });
    const { db } = world.database;
    running = both;
    const dispatcher = startDispatcher({ db, box: both, schedule: stores.schedule });
    try {
      let emitted = 0;
      const load = (async () => {
        for (let i = 0; i < 30; i++) emitted += (await world.emit(1)).length;
      })();
      await Promise.all([load, rotateMaster(db, both), rotateMaster(db, both)]);
      await until("all deliveries", () => receiver.received.length >= emitted);
      for (const { body, headers: sent } of receiver.received) {
        expect(await verify(secret, body, sent["x-svc-signature"] ?? "")).toBe(true);
        expect(sent["x-api-key"]).toBe("k");
      }
      expect((await world.ask("POST", `/${id}/secret`)).body["secret"]).toBe(secret);
    } finally {
      await dispatcher.stop();
      await receiver.stop();
    }
    const report = reportOf(await rotateMaster(db, both));
    expect(report.done).toBe(true);
    expect(report.lines.join("\n")).toContain("Remove MASTER_KEY_PREVIOUS as soon as");
    const alone = createSecretBox({ current: newKey });
    for (const value of await sealedValues()) expect(value.open(alone)).not.toBe("");
    expect(await masterKeyError(db, alone)).toBeUndefined();
    // Everything still works without the old key, including the key ring.
    running = alone;
    const api = await startApi({ db, box: alone, clock: world.clock });
    const shown = await api.call("GET", "/account/api-token", { token: world.tokens.owner });
    expect(shown.status).toBe(200);
    await world.emit(1);
  });

  test("reports values that it cannot open, keeps them, and asks to keep the old key", async () => {
    const { db } = world.database;
    const next = randomBytes(32);
    running = createSecretBox({ current: next, previous: newKey });
    const strange = createSecretBox({ current: randomBytes(32) }).seal("s", "provider:strange");
    await db.sql`insert into review_sites (slug, name, sealed_secret) values ('strange', 'S', ${strange})`;
    const { lines, done } = reportOf(await rotateMaster(db, box));
    expect(done).toBe(false);
    expect(lines.join("\n")).toContain("1 NOT OPENED: strange");
    expect(lines.join("\n")).toContain("Keep MASTER_KEY_PREVIOUS");
    const [row] = await db.sql<{ sealed: string }[]>`
      select sealed_secret as sealed from review_sites where slug = 'strange'`;
    expect(row?.sealed).toBe(strange);
    expect(await masterKeyError(db, box)).toContain("review_sites.sealed_secret");
    await db.sql`delete from review_sites where slug = 'strange'`;
    expect(await masterKeyError(db, createSecretBox({ current: next }))).toBeUndefined();
  });

  test("processes more rows than one batch", async () => {
    const database = await createDatabase();
    const first = createSecretBox({ current: oldKey });
    for (let i = 0; i < 401; i++) await addProvider(database.db, first, `many-${i}`);
    const results = await rotateMaster(database.db, both);
    expect(results.find(({ table }) => table === "review_sites")?.resealed).toBe(401);
    await database.drop();
  });
});

test("no secret is in the database in plain text, nor in any log", async () => {
  const headers = { "X-Api-Key": "hush-hush-1", Authorization: "Bearer hush-hush-2" };
  const { id, secret } = await world.subscribe({ headers });
  const { body } = await world.ask("POST", `/${id}/rotate-secret`, {
    body: { grace_period_hours: 1 },
  });
  await world.ask("POST", `/${id}/secret`);
  const { db } = world.database;
  const receiver = await Receiver.start();
  await world.ask("POST", `/${id}`, { body: { webhook_url: receiver.url, headers } });
  const lines: string[] = [];
  const note = (event: string, fields?: object) =>
    void lines.push(JSON.stringify({ event, fields }));
  const log = { debug: note, info: note, warn: note, error: note };
  const dispatcher = startDispatcher({ db, box, schedule: stores.schedule, log });
  await world.emit(2);
  await until("delivered", () => receiver.received.length === 2);
  expect(receiver.received[1]?.headers).toMatchObject({ "x-api-key": headers["X-Api-Key"] });
  await dispatcher.stop();
  await receiver.stop();
  const tables = await db.sql<{ name: string }[]>`
    select tablename as name from pg_tables where schemaname = 'public'`;
  const secrets = [
    secret,
    String(body["secret"]),
    ...Object.values(headers),
    world.provider.secret,
    Buffer.from(secret, "hex").toString("base64"),
    oldKey.toString("base64"),
    oldKey.toString("hex"),
  ];
  for (const { name } of tables) {
    const [row] = await db.sql<{ dump: string | null }[]>`
      select string_agg(t::text, chr(10)) as dump from ${db.sql(name)} t`;
    for (const one of secrets) expect(row?.dump ?? "").not.toContain(one);
  }
  const logs = [...world.api.lines, ...lines].join("\n");
  expect(lines.length).toBeGreaterThan(0);
  for (const one of secrets) expect(logs).not.toContain(one);
});

const oldKey = randomBytes(32);

/** The keys of the running API, which a rolling restart changes. */
let running = createSecretBox({ current: oldKey });

const box: SecretBox = {
  get keyIds() {
    return running.keyIds;
  },
  seal: (text, associatedData) => running.seal(text, associatedData),
  open: (sealed, associatedData) => running.open(sealed, associatedData),
  isCurrent: (sealed) => running.isCurrent(sealed),
  isKnown: (sealed) => running.isKnown(sealed),
};

const newKey = randomBytes(32);

const both = createSecretBox({ current: newKey, previous: oldKey });

const nameOf = ({ table, column }: { table: string; column: string }) => `${table}.${column}`;

const nameOfSealed = ({ sealed }: SealedColumn) =>
  nameOf({ table: getTableName(sealed.table), column: sealed.name });

const filled = (column: SealedColumn, value: number) =>
  Object.fromEntries(boundBy(column).map(({ name }) => [name, value]));

/** Fills every sealed column through the real code. */
async function fillColumns(): Promise<void> {
  const { id } = await world.subscribe({ headers: { "X-Api-Key": "k" } });
  await world.ask("POST", `/${id}/rotate-secret`, { body: { grace_period_hours: 1 } });
  await world.api.call("POST", "/account/api-token", { token: world.tokens.owner });
  await world.api.call("PATCH", "/partner/alerts", {
    token: world.tokens.owner,
    body: { webhook_url: "https://alerts.example/hook" },
  });
  await world.api.call("POST", "/admin/erasures", {
    token: world.tokens.root,
    body: { reviewer_email: "ada@mail.test" },
  });
  await world.api.call("PUT", "/admin/audit-webhook", {
    token: world.tokens.root,
    body: { url: "https://siem.example/audit" },
  });
  const provider = await world.api.call("POST", "/admin/providers", {
    token: world.tokens.root,
    body: { slug: ulid().toLowerCase(), name: "Rotated" },
  });
  const secretPath = `/admin/providers/${String(provider.body["id"])}/secret`;
  await world.api.call("POST", secretPath, { token: world.tokens.root });
  const email = `${ulid().toLowerCase()}@p1.test`;
  const companyId = world.tenants.partners[0].id;
  const holder = await addUser(world.database.db, { companyId, role: "partner_admin", email });
  const { token, factorId } = await withApp(world, holder);
  await world.api.call("DELETE", `/account/second-factors/${factorId}`, { token });
  await world.api.call("POST", "/account/second-factors/totp", { token });
  await withApp(
    world,
    await addUser(world.database.db, { companyId, role: "partner_admin", email: `2-${email}` }),
  );
  await world.api.call("POST", "/admin/plans", {
    token: world.tokens.root,
    body: { name: ulid() },
    headers: { "idempotency-key": ulid() },
  });
  const connection = { id: ulid(), companyId: world.tenants.partners[0].id };
  const sealed = box.seal("client secret", clientSecretContext(connection));
  await world.database.db.sql`
    insert into sso_connections (id, company_id, issuer, client_id, sealed_client_secret, password_login, is_active,
                                 created_at, updated_at)
    values (${connection.id}, ${connection.companyId}, 'https://idp.example', 'c', ${sealed}, true, true, now(), now())`;
  const mail = { kind: "otp", to: "a@example.com", subject: "S", text: "T" } as const;
  await world.database.db.transaction((tx) => queueMails(tx, { box }, [mail], world.clock.now()));
}

async function sealedValues() {
  const { sql } = world.database.db;
  const found: { name: string; sealed: string; open: (by: SecretBox) => string }[] = [];
  for (const column of SEALED_COLUMNS) {
    const rows = await sql<Record<string, unknown>[]>`
      select * from ${sql(getTableName(column.sealed.table))} where ${sql(column.sealed.name)} is not null`;
    for (const row of rows) {
      const sealed = String(row[column.sealed.name]);
      const open = (by: SecretBox) => by.open(sealed, associatedDataOf(column, row));
      found.push({ name: nameOfSealed(column), sealed, open });
    }
  }
  return found;
}
