// The audit webhook over a real database, a real HTTP client and real receivers (contract 3.12).
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";

import { createDeliver } from "../../../dispatcher/delivery/deliver.ts";
import { HttpClient } from "../../../dispatcher/http/client.ts";
import { removeOldAudit } from "../../../dispatcher/maintenance/removal-queries.ts";
import { connect } from "../../../db/client.ts";
import { AuditForwarder } from "../../../src/audit/webhook.ts";
import { recordAudit } from "../../../src/audit/queries.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { startApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { createTestSchedule, silentLog } from "../../support/dispatch.ts";
import { fixture } from "../../support/fixture.ts";
import { holding } from "../../support/holding.ts";
import { allChunks, endLeases } from "../../support/maintenance.ts";
import { SELF_SIGNED } from "../../support/network/certificates.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { startRawReceiver } from "../../support/network/raw-receiver.ts";
import { createDatabase } from "../../support/postgres.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { addTenants } from "../../support/tenants.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));
const schedule = fixture(createTestSchedule);

describe("the settings", () => {
  test("are 404 until they are set, show their secret once, and are audited by host", async () => {
    for (const method of ["GET", "DELETE"] as const) expect((await ask(method)).status).toBe(404);
    const url = `${receiver.url}?token=t0p`;
    const set = await ask("PUT", { url });
    expect(set.status).toBe(200);
    expect(String(set.body["secret"])).toStartWith("whsec_");
    expect(set.headers.get("cache-control")).toBe("no-store");
    const { secret: _, ...shown } = set.body;
    expect((await ask("GET")).body).toEqual({ ...shown, oldest_waiting_at: expect.any(String) });
    expect((await ask("DELETE")).status).toBe(204);
    expect((await ask("GET")).status).toBe(404);
    const rows = await database.db.sql<{ action: string; details: object }[]>`
      select action, details - 'token' as details from audit_log
       where action like 'AUDIT_WEBHOOK%' order by id`;
    const { host } = new URL(receiver.url);
    expect([...rows]).toEqual([
      { action: "AUDIT_WEBHOOK_SET", details: { host, start: null } },
      { action: "AUDIT_WEBHOOK_REMOVED", details: { host } },
    ]);
  });

  test("show the secret in an answer that needs nothing after the commit", async () => {
    const statements: string[] = [];
    const onStatement = (text: string) => statements.push(text);
    const db = connect(database.url, { max: 1, name: "noting", onStatement });
    try {
      const noting = await startApi({ ...api.deps, db });
      const set = await noting.call("PUT", "/admin/audit-webhook", {
        token: tokens.root,
        body: { url: receiver.url },
      });
      expect(set.status).toBe(200);
      const reads = statements.map((text) => /^select.*from "audit_log"/s.test(text));
      expect(reads).toContain(true);
      expect(reads.lastIndexOf(true)).toBeLessThan(statements.lastIndexOf("commit"));
    } finally {
      await db.close();
    }
  });

  test("are tested by a row of the audit log, which is due at once even in a pause", async () => {
    const askTest = () => api.call("POST", "/admin/audit-webhook/test", { token: tokens.root });
    expect((await askTest()).status).toBe(404);
    await ask("PUT", { url: receiver.url });
    await database.db.sql`
      update audit_webhooks set failures = 3, failed_at = now(), last_error = 'http_503',
             next_at = now() + interval '5 min'`;
    expect(await forwarder().chunk()).toEqual({ rows: 0 });
    expect((await askTest()).status).toBe(204);
    await forwarder().chunk();
    const { host } = new URL(receiver.url);
    expect(sent().at(-1)).toMatchObject({ action: "AUDIT_WEBHOOK_TESTED", details: { host } });
    expect((await ask("GET")).body).toMatchObject({ failures: 0, oldest_waiting_at: null });
  });

  test.each([
    [{ url: "http://10.0.0.1/x" }, "url"],
    [{ url: "http://127.0.0.1/x", start: "middle" }, "start"],
  ])("refuse %j and name the field", async (body, field) => {
    const { status, body: answer } = await ask("PUT", body);
    expect([status, Object.keys(answer["errors"] ?? {})]).toEqual([422, [field]]);
    expect((await ask("GET")).status).toBe(404);
  });

  test("begin with the next row, with the oldest, or continue, as the request says", async () => {
    await note(3);
    await ask("PUT", { url: receiver.url });
    await forwarder().chunk();
    // The row of the PUT itself is the first one.
    expect(sent().map(({ action }) => action)).toEqual(["AUDIT_WEBHOOK_SET"]);
    await ask("PUT", { url: receiver.url });
    await forwarder().chunk();
    expect(sent().map(({ action }) => action)).toEqual(["AUDIT_WEBHOOK_SET", "AUDIT_WEBHOOK_SET"]);
    receiver.received.length = 0;
    await ask("PUT", { url: receiver.url, start: "oldest" });
    await drain();
    expect(sent().map(({ id }) => id)).toEqual(await allIds());
    receiver.received.length = 0;
    await ask("PUT", { url: receiver.url, start: "newest" });
    await drain();
    expect(sent()).toHaveLength(1);
  });
});

describe("the POSTs", () => {
  test("have 500 rows at most, in order, as the export has them; a library of Standard Webhooks accepts them", async () => {
    const { body } = await ask("PUT", { url: receiver.url });
    await note(500);
    await drain();
    expect(receiver.received.map((one) => idsOf(one).length)).toEqual([500, 1]);
    const webhook = new Webhook(String(body["secret"]));
    for (const one of receiver.received) {
      webhook.verify(one.body, { ...one.headers });
      expect(one.headers["content-type"]).toBe("application/json");
    }
    const forged = `${receiver.received[0]?.body} `;
    expect(() => webhook.verify(forged, { ...receiver.received[0]?.headers })).toThrow();
    const [{ cursor: first } = NOTHING] = sent();
    const query = `after=${first}&limit=1000`;
    const exported = await api.call("GET", `/admin/audit-log/export?${query}`, {
      token: tokens.root,
    });
    const lines = exported.text.trimEnd().split("\n");
    expect(lines.slice(0, 500).map((line) => JSON.parse(line))).toEqual(sent().slice(1));
    const shown = (await ask("GET")).body;
    expect([shown["cursor"], shown["failures"], shown["last_error"]]).toEqual([
      sent().at(-1)?.cursor,
      0,
      null,
    ]);
    expect(await forwarder().chunk()).toEqual({ rows: 1 });
    expect(sent().at(-1)).toMatchObject({ action: "AUDIT_EXPORTED" });
    expect((await ask("GET")).body["oldest_waiting_at"]).toBeNull();
    expect(await forwarder().chunk()).toEqual({ rows: 0 });
  });

  test("that fail in TLS name the reason", async () => {
    const secure = await startRawReceiver("", { tls: SELF_SIGNED });
    await ask("PUT", { url: secure.url });
    await note(1);
    await forwarder().chunk();
    secure.stop();
    expect(await lastError()).toBe("tls_self_signed");
  });

  test("that fail are repeated after a growing pause, without a gap", async () => {
    await ask("PUT", { url: receiver.url });
    await note(2);
    receiver.answer = () => 500;
    const one = forwarder();
    const at = clock.now();
    expect(await one.chunk()).toEqual({ rows: 0 });
    const shown = (await ask("GET")).body;
    expect(shown).toMatchObject({
      failures: 1,
      last_error: { error: "http_500" },
      delivered_at: null,
    });
    expect(Date.parse(String(shown["next_attempt_at"]))).toBe(at.getTime() + 5_000);
    clock.advance(4_999);
    await one.chunk();
    expect(receiver.received).toHaveLength(1);
    clock.advance(1);
    await one.chunk();
    expect(receiver.received).toHaveLength(2);
    expect((await ask("GET")).body["failures"]).toBe(2);
    clock.advance(9_999);
    await one.chunk();
    expect(receiver.received).toHaveLength(2);
    for (let n = 2; n < 9; n++) {
      clock.advance(300_000);
      await one.chunk();
    }
    expect(receiver.received).toHaveLength(9);
    receiver.answer = () => 204;
    clock.advance(299_999);
    await one.chunk();
    expect(receiver.received).toHaveLength(9);
    clock.advance(1);
    expect(await one.chunk()).toEqual({ rows: 3 });
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    expect(new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    expect((await ask("GET")).body).toMatchObject({ failures: 0, last_error: null });
  });

  test.each([302, 410])(
    "that are answered %d have failed, and are not redirected",
    async (status) => {
      await ask("PUT", { url: receiver.url });
      receiver.answer = () => status;
      expect(await forwarder().chunk()).toEqual({ rows: 0 });
      expect(receiver.received).toHaveLength(1);
      const shown = (await ask("GET")).body;
      expect(shown).toMatchObject({ failures: 1, last_error: { error: `http_${status}` } });
    },
  );

  test("that are cut are repeated, with the error of a delivery", async () => {
    const cut = await startRawReceiver((socket) => socket.destroy());
    await ask("PUT", { url: cut.url });
    expect(await forwarder().chunk()).toEqual({ rows: 0 });
    cut.stop();
    expect(await lastError()).toBe("reset");
    await ask("PUT", { url: receiver.url });
    expect(await forwarder().chunk()).toEqual({ rows: 2 });
  });

  test("go to no address that a delivery may not reach, also if the setting allowed it", async () => {
    await ask("PUT", { url: receiver.url });
    const policy = { allowHttp: true, allowedNetworks: [] };
    expect(await forwarder(policy).chunk()).toEqual({ rows: 0 });
    expect(receiver.received).toEqual([]);
    expect(await lastError()).toBe("blocked_address");
  });

  test("wait for a transaction that took an earlier id, and then skip no row", async () => {
    await ask("PUT", { url: receiver.url });
    await drain();
    receiver.received.length = 0;
    const commit = await holding(database.connect(), (tx) => recordAudit(tx, entry("early id")));
    await recordAudit(database.db, entry("late id"));
    const one = forwarder();
    // The clock stands still, so the wait for open transactions ends when it is moved.
    const chunk = one.chunk();
    const outcome = chunk.then(
      () => "sent",
      ({ code }) => code,
    );
    await until("it waits", () => clock.sleepers > 0);
    clock.advance(2_001);
    await until("it has looked again", async () => {
      clock.advance(11);
      return (await Promise.race([outcome, Bun.sleep(20)])) !== undefined;
    });
    expect(await outcome).toBe("unavailable");
    expect(receiver.received).toEqual([]);
    await commit();
    await drain();
    expect(sent().map(({ details }) => details["note"])).toEqual(["early id", "late id"]);
  });

  test("that fail after a test was requested leave the test due", async () => {
    await ask("PUT", { url: receiver.url });
    receiver.answer = async () => {
      receiver.answer = () => 200;
      await api.call("POST", "/admin/audit-webhook/test", { token: tokens.root });
      return 503;
    };
    await forwarder().chunk();
    expect((await ask("GET")).body).toMatchObject({ failures: 1 });
    await forwarder().chunk();
    expect(sent().at(-1)).toMatchObject({ action: "AUDIT_WEBHOOK_TESTED" });
  });

  test("that end after the settings have changed move nothing", async () => {
    await ask("PUT", { url: receiver.url });
    receiver.answer = async () => {
      receiver.answer = () => 200;
      await ask("PUT", { url: receiver.url });
      return 200;
    };
    expect(await forwarder().chunk()).toEqual({ rows: 0 });
    expect((await ask("GET")).body["delivered_at"]).toBeNull();
    await drain();
    expect(sent().map(({ action }) => action)).toEqual([
      "AUDIT_WEBHOOK_SET",
      "AUDIT_WEBHOOK_SET",
      "AUDIT_WEBHOOK_SET",
    ]);
  });

  test("of two processes at once repeat rows, and move the position once", async () => {
    await ask("PUT", { url: receiver.url });
    receiver.answer = async () => {
      await until("both POSTs have arrived", () => receiver.received.length === 2);
      return 200;
    };
    const results = await Promise.all([forwarder().chunk(), forwarder().chunk()]);
    expect(results.map(({ rows }) => rows).toSorted()).toEqual([0, 1]);
    expect(sent().map(({ id }) => id)).toEqual([sent()[0]?.id ?? 0, sent()[0]?.id ?? 0]);
  });
});

test("retention counts the rows that it removes before they are accepted", async () => {
  await ask("PUT", { url: receiver.url });
  await note(2);
  await drain();
  receiver.answer = () => 500;
  await note(3);
  await database.db.sql`update audit_log set at = now() - interval '40 days'`;
  expect(await allChunks(() => removeOldAudit(database.db, { days: 30 }))).toBeGreaterThan(4);
  expect((await ask("GET")).body["lost_rows"]).toBe(3);
  await ask("PUT", { url: receiver.url });
  expect((await ask("GET")).body["lost_rows"]).toBe(3);
  await ask("PUT", { url: receiver.url, start: "oldest" });
  expect((await ask("GET")).body["lost_rows"]).toBe(0);
});

test("a dispatcher that is killed between the answer and the commit leaves a repeat and no gap", async () => {
  const dispatcher = () => {
    const one = new DispatcherProcess({
      DATABASE_URL: database.url,
      REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
      REDIS_PREFIX: schedule.prefix,
      MASTER_KEY: Buffer.from(api.deps.config.masterKey).toString("base64"),
    });
    one.start();
    return one;
  };
  const { db } = database;
  const { body } = await ask("PUT", { url: receiver.url });
  await note(3);
  await db.sql`update maintenance_jobs set next_at = now() where name = 'audit_webhook'`;
  const release = await holding(
    database.connect(),
    (tx) => tx.sql`select from audit_webhooks for update`,
  );
  const first = dispatcher();
  const waiting = () => db.sql<{ pid: number }[]>`
    select pid from pg_stat_activity where datname = current_database()
       and wait_event_type = 'Lock' and query like 'update "audit_webhooks"%'`;
  await until("the answered POST waits for its commit", async () => (await waiting()).length > 0);
  await first.kill();
  // The server would still finish the statement of the dead process.
  for (const { pid } of await waiting()) await db.sql`select pg_terminate_backend(${pid})`;
  await release();
  await note(2);
  await endLeases(db);
  const second = dispatcher();
  try {
    await until("all rows", async () => (await ask("GET")).body["oldest_waiting_at"] === null);
  } finally {
    await second.kill();
  }
  const [one, two] = receiver.received;
  const webhook = new Webhook(String(body["secret"]));
  for (const { body: text, headers } of receiver.received) webhook.verify(text, { ...headers });
  expect(idsOf(one)).toEqual(idsOf(two).slice(0, 4));
  const ids = [...new Set(sent().map(({ id }) => id))];
  expect(ids).toEqual((await allIds()).slice(-ids.length));
  expect(ids.length).toBeGreaterThanOrEqual(6);
}, 120_000);

interface Row {
  readonly id: number;
  readonly action: string;
  readonly cursor: string;
  readonly details: Readonly<Record<string, unknown>>;
}
const NOTHING: Row = { id: 0, action: "", cursor: "", details: {} };

const tokens = { root: "" };
let receiver: Receiver;
let clock = createFakeClock();
let clients: HttpClient[] = [];

beforeAll(async () => {
  tokens.root = await api.login(tenants.superAdmin.email);
});
beforeEach(async () => {
  receiver = await Receiver.start();
  clock = createFakeClock();
});
afterEach(async () => {
  await database.db.sql`delete from audit_webhooks`;
  for (const one of clients) one.close();
  clients = [];
  await receiver.stop();
});

const ask = (method: "GET" | "PUT" | "DELETE", body?: unknown) =>
  api.call(method, "/admin/audit-webhook", { token: tokens.root, body });

/** A forwarder of a process of its own. Its clock stands still, and is ahead of the due time of new settings. */
function forwarder(policy = api.deps.config.egress): AuditForwarder {
  const client = new HttpClient({ policy, timeoutMs: 10_000 });
  clients.push(client);
  const deliver = createDeliver({ clock: systemClock, client });
  if (clock.now() < new Date()) clock.set(new Date());
  return new AuditForwarder({
    db: database.connect(),
    clock,
    box: api.deps.box,
    log: silentLog,
    deliver,
  });
}

async function drain(): Promise<void> {
  const one = forwarder();
  await allChunks(() => one.chunk());
}

const entry = (text: string) =>
  ({
    at: new Date(),
    action: "CLIENT_UPDATED",
    actor: null,
    requestContext: null,
    details: { note: text },
  }) as const;

async function note(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await recordAudit(database.db, entry(`note ${n}`));
}

const rowsOf = (text: string): Row[] => JSON.parse(text);
const sent = () => receiver.received.flatMap(({ body }) => rowsOf(body));
const idsOf = (one: { readonly body: string } | undefined) =>
  rowsOf(one?.body ?? "[]").map(({ id }) => id);

async function allIds(): Promise<number[]> {
  const rows = await database.db.sql<{ id: number }[]>`select id from audit_log order by id`;
  return rows.map(({ id }) => id);
}

async function lastError(): Promise<unknown> {
  return fieldsOf((await ask("GET")).body["last_error"])["error"];
}
