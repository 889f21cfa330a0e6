// Tests `keys rotate-master` with real processes that have or lack the new key.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { ApiProcess } from "../../support/processes/api-process.ts";
import { runCommand } from "../../support/processes/command.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { addProvider, connectStore, created, type TestProvider } from "../../support/factory.ts";
import { insertSubscription } from "../../support/outbox.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { addSigningKeys } from "../../support/signing-keys.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const receiver = fixture(() => Receiver.start());

describe("while processes have only the old key", () => {
  test("it is rejected with a list of them, nothing changes, and they keep working", async () => {
    const api = await startApi(OLD);
    await startDispatcher(OLD);
    const { status, said } = await rotate();
    expect(status).toBe(1);
    expect(said).toContain(`These processes do not have the new master key (${idOf(newKey)}):`);
    expect(said).toMatch(new RegExp(`^api .* pid ${api.pid} .*${idOf(oldKey)}`, "m"));
    expect(said).toMatch(new RegExp(`^dispatcher .*${idOf(oldKey)}`, "m"));
    expect(said).toContain("Nothing was changed.");
    for (const key of [OLD.MASTER_KEY, NEW.MASTER_KEY]) expect(said).not.toContain(key);
    expect(await sealingKeys()).toEqual([idOf(oldKey)]);
    expect((await api.report(provider, [created(site, "after")])).status).toBe(200);
    await until("it is delivered", () => receiver.received.length === 1);
  });

  test("--force continues, and both processes fail their readiness check master_key", async () => {
    const api = await startApi(OLD);
    const operations = await startDispatcher(OLD);
    const { status, said } = await rotate("--force");
    expect(status).toBe(0);
    expect(said).toContain("All stored secrets are encrypted with MASTER_KEY");
    expect(said).toContain("Restart each of them with this MASTER_KEY");
    await untilUnready(api.root);
    await untilUnready(operations);
    // A restart of the same process is rejected, so that it cannot return with the wrong key.
    const [exit, line] = await ApiProcess.fail({ ...settings(), ...OLD });
    expect([exit, line]).toEqual([78, expect.stringContaining("The master key is wrong")]);
  });
});

test("with both keys in all processes it runs without interrupting events and deliveries", async () => {
  const first = await startApi(PREPARED);
  const second = await startApi(BOTH);
  await startDispatcher(BOTH);
  const over = new AbortController();
  const answers = new Set<number>();
  let sent = 0;
  const sending = [first, second].map(async (api) => {
    while (!over.signal.aborted)
      answers.add((await api.report(provider, [created(site, `r-${sent++}`)])).status);
  });
  await until("events flow", () => receiver.received.length > 5);
  const { status, said } = await rotate();
  const before = receiver.received.length;
  await until("events flow on", () => receiver.received.length > before + 5);
  over.abort();
  await Promise.all(sending);
  expect([status, said]).toEqual([
    0,
    expect.stringContaining("Remove MASTER_KEY_PREVIOUS as soon as"),
  ]);
  expect(await sealingKeys()).toEqual([idOf(newKey)]);
  expect(answers).toEqual(new Set([200]));
  await until("all is delivered", () => new Set(receiver.eventIds).size === sent);
  const listed = await runCommand(["src/operate/main.ts", "keys", "processes"], {
    ...settings(),
    ...BOTH,
  });
  for (const [pid, sealing, other] of [
    [first.pid, oldKey, newKey],
    [second.pid, newKey, oldKey],
  ] as const)
    expect(listed.said).toMatch(new RegExp(`pid ${pid} .* ${idOf(sealing)}, ${idOf(other)} `));
});

test("a process that starts with the old key meanwhile is reported at the end and is not ready", async () => {
  const { db } = database;
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const holding = db.transaction(async ({ sql }) => {
    await sql`lock table webhook_subscriptions in exclusive mode`;
    await held;
  });
  const rotating = rotate();
  await until("it waits for the lock", async () => {
    const rows = await db.sql`select from pg_locks where not granted`;
    return rows.length > 0;
  });
  const api = await startApi(OLD);
  release();
  await holding;
  const { status, said } = await rotating;
  expect(status).toBe(1);
  expect(said).toMatch(new RegExp(`^api .* pid ${api.pid} `, "m"));
  await untilUnready(api.root);
});

describe("a process that stops renewing its row", () => {
  const insert = (ageS: number) => database.db.sql`
    insert into processes (id, role, host, pid, master_keys, seen_at)
    values ('other', 'api', 'elsewhere', 7, ${[idOf(oldKey)]}, now() - make_interval(secs => ${ageS}))`;

  test("counts as running for a minute", async () => {
    await insert(30);
    expect(await rotate()).toEqual({
      status: 1,
      said: expect.stringContaining("elsewhere, pid 7"),
    });
  });

  test("is forgotten after a minute, like a killed one", async () => {
    await insert(61);
    expect(await rotate()).toMatchObject({ status: 0 });
  });
});

test("a process that stops gracefully is forgotten immediately", async () => {
  const api = await startApi(OLD);
  api.signal("SIGTERM");
  expect(await api.exited()).toBe(0);
  expect(await rotate()).toMatchObject({ status: 0 });
});

const [oldKey, newKey] = [randomBytes(32), randomBytes(32)];
const idOf = (key: Uint8Array) => createSecretBox({ current: key }).keyIds[0] ?? "";
let database: TestDatabase;

const OLD = { MASTER_KEY: oldKey.toString("base64") };

const NEW = { MASTER_KEY: newKey.toString("base64") };

const BOTH = { ...NEW, MASTER_KEY_PREVIOUS: OLD.MASTER_KEY };

/** A prepared process opens values with both keys and still seals with the old one. */
const PREPARED = { ...OLD, MASTER_KEY_PREVIOUS: NEW.MASTER_KEY };

let provider: TestProvider;

let site: number;

let stops: (() => unknown)[];

beforeEach(async () => {
  database = await createDatabase();
  stops = [() => database.drop()];
  receiver.received.length = 0;
  const box = createSecretBox({ current: oldKey });
  await addSigningKeys(database.db, box, systemClock.now());
  const [partner] = (await addTenants(database.db)).partners;
  provider = await addProvider(database.db, box);
  site = await connectStore(database.db, partner.accounts[0], { provider });
  const target = { partnerId: partner.id, url: receiver.url };
  await insertSubscription({ db: database.db, box }, target);
});

afterEach(async () => {
  for (const stop of stops.toReversed()) await stop();
});

const settings = () => ({
  DATABASE_URL: database.url,
  REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
  REDIS_PREFIX: `rotation-${crypto.randomUUID()}:`,
});

async function startApi(keys: Record<string, string>): Promise<ApiProcess> {
  const api = await ApiProcess.start({ ...settings(), ...keys });
  stops.push(() => api.kill());
  return api;
}

/** Starts a dispatcher; returns the address of its operations endpoints. */
async function startDispatcher(keys: Record<string, string>): Promise<string> {
  const port = await freePort();
  const at = { METRICS_PORT: String(port) };
  const dispatcher = new DispatcherProcess({ ...settings(), ...keys, ...at });
  dispatcher.start();
  stops.push(() => dispatcher.stop());
  const root = `http://127.0.0.1:${port}`;
  await until("the dispatcher is ready", async () => (await readiness(root))?.status === 200);
  return root;
}

const readiness = async (root: string) => {
  const answer = await fetch(`${root}/readyz`).catch(() => undefined);
  return answer && { status: answer.status, body: fieldsOf(await answer.json()) };
};

/** Resolves when the process reports that it lacks a key. */
const untilUnready = (root: string) =>
  until(`${root} is not ready`, async () => {
    const told = await readiness(root);
    return told?.status === 503 && fieldsOf(told.body["checks"])["master_key"] === "failed";
  });

const rotate = (...options: string[]) =>
  runCommand(["src/operate/main.ts", "keys", "rotate-master", ...options], {
    ...settings(),
    ...BOTH,
  });

async function sealingKeys(): Promise<string[]> {
  const rows = await database.db.sql<{ id: string }[]>`
    select split_part(sealed_secret, '.', 2) as id from review_sites
     union select split_part(sealed_secret, '.', 2) from webhook_subscriptions`;
  return rows.map(({ id }) => id);
}
