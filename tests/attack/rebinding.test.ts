import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { createSecretBox } from "../../src/lib/secrets.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { PASSWORD } from "../support/api.ts";
import { createTestSchedule } from "../support/dispatch.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { startNameServer, type NameServer, type Zone } from "../support/network/name-server.ts";
import { insertSubscription, insertTenant, record, reviewAction } from "../support/outbox.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";
import { startProxy, type TestProxy } from "../support/network/proxy.ts";
import { startRawReceiver, type RawReceiver } from "../support/network/raw-receiver.ts";
import { until } from "../support/network/receiver.ts";
import { addTenants } from "../support/tenants.ts";
import { lacks } from "../support/needs.ts";

/*
 * DNS rebinding against the running processes, with a real name server that an attacker controls. 127.0.0.2 stands for a
 * public address. 127.0.0.1 stands for our internal network: a server listens there on the same port and must get nothing.
 */

describe.skipIf(lacks("mounts"))("a name", () => {
  beforeAll(async () => {
    database = await createDatabase();
    await addTenants(database.db);
    stores = await createTestSchedule();
    names = await startNameServer(
      Object.fromEntries(Object.entries(NAMES).map(([name, [, zone]]) => [name, zone])),
    );
    const redirect = (port: number) =>
      `HTTP/1.1 307 Over there\r\nLocation: http://${INSIDE}:${port}/\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;
    const ok = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    inside = await startRawReceiver(ok, { address: INSIDE });
    outside = await startRawReceiver(
      (socket, request) =>
        void socket.end(request.includes("/redirect") ? redirect(outside.port) : ok),
      { address: PUBLIC, port: inside.port },
    );
    env = {
      DATABASE_URL: database.url,
      REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
      REDIS_PREFIX: stores.prefix,
      MASTER_KEY: masterKey.toString("base64"),
      WEBHOOK_ALLOW_HTTP: "1",
      WEBHOOK_ALLOWED_NETWORKS: PUBLIC,
      LOG_LEVEL: "warn",
    };
  });
  afterAll(async () => {
    names.stop();
    outside.stop();
    inside.stop();
    stores.close();
    await database.drop();
  });

  const urlOf = (name: string, path = "/") => `http://${name}:${outside.port}${path}`;

  /** Delivers one event to each URL, each for a new partner; answers the recorded outcomes of the first attempts. */
  async function deliver(urls: readonly string[]): Promise<Record<string, string>> {
    const { db } = database;
    const ids = new Map<string, string>();
    const actions = [];
    for (const url of urls) {
      const tenant = await insertTenant(db);
      const one = await insertSubscription({ db, box }, { partnerId: tenant.partnerId, url });
      ids.set(one.subscriptionId, url);
      actions.push(reviewAction(tenant));
    }
    await stores.schedule.wake(await record(db, actions));
    const attempts = () => db.sql<{ id: string; ending: string }[]>`
      select distinct on (subscription_id) subscription_id as id, coalesce(error_code, outcome) as ending
        from delivery_attempts where subscription_id = any(${[...ids.keys()]}) order by subscription_id, id`;
    await until("all are tried", async () => (await attempts()).length === urls.length);
    const rows = await attempts();
    return Object.fromEntries(rows.map(({ id, ending }) => [ids.get(id) ?? "", ending]));
  }

  test("is looked up at registration, and rejected if it resolves to an internal address", async () => {
    const api = await ApiProcess.start(env, names);
    try {
      const { body } = await api.login("owner@p1.test", PASSWORD);
      const headers = {
        Authorization: `Bearer ${String(body["token"])}`,
        "Content-Type": "application/json",
      };
      const subscriptions = `${api.root}/api/v1/partner/webhooks`;
      for (const [name, [ends]] of Object.entries(NAMES)) {
        const one = { label: "x", webhook_url: urlOf(name), delivery_kind: "immediate" };
        const made = await api.call("POST", subscriptions, { headers, body: JSON.stringify(one) });
        expect([name, made.status]).toEqual([name, ends === "blocked_address" ? 422 : 201]);
        expect([name, names.asked(name) > 0]).toEqual([name, true]);
        if (made.status === 201)
          await fetch(`${subscriptions}/${String(made.body["id"])}`, { method: "DELETE", headers });
      }
    } finally {
      api.kill();
    }
    expect(inside.accepted + outside.accepted).toBe(0);
  });

  test("is looked up again for each connection, and never connects to an internal address", async () => {
    const dispatcher = new DispatcherProcess(env, names);
    dispatcher.start();
    try {
      const expected = Object.entries(NAMES).map(([name, [ends]]) => [urlOf(name), ends]);
      expect(await deliver(expected.map(([url = ""]) => url))).toEqual(
        Object.fromEntries(expected),
      );
      const [moved, redirects] = [urlOf("rebinds.test"), urlOf("public.test", "/redirect")];
      expect(await deliver([moved, redirects])).toEqual({
        [moved]: "blocked_address",
        [redirects]: "http_status",
      });
    } finally {
      await dispatcher.stop();
    }
    expect(inside.accepted).toBe(0);
    expect(outside.requests.every((one) => !one.includes(INSIDE))).toBe(true);
  });

  test("is looked up by the dispatcher even if WEBHOOK_PROXY_URL is set, and the proxy gets only checked addresses", async () => {
    const proxy: TestProxy = await startProxy();
    const url = `http://${INSIDE}:${proxy.port}`;
    const dispatcher = new DispatcherProcess({ ...env, WEBHOOK_PROXY_URL: url }, names);
    dispatcher.start();
    try {
      const [known, inner] = [urlOf("public.test"), urlOf("inside.test")];
      expect(await deliver([known, inner])).toEqual({
        [known]: "delivered",
        [inner]: "blocked_address",
      });
    } finally {
      await dispatcher.stop();
      proxy.stop();
    }
    expect(new Set(proxy.authorities)).toEqual(new Set([`${PUBLIC}:${outside.port}`]));
    expect(inside.accepted).toBe(0);
  });
});

const masterKey = randomBytes(32);
const box = createSecretBox({ current: masterKey });
let database: TestDatabase;
let stores: Awaited<ReturnType<typeof createTestSchedule>>;
let outside: RawReceiver;

const PUBLIC = "127.0.0.2";

const INSIDE = "127.0.0.1";

const to =
  (...addresses: string[]) =>
  () => ({ addresses });

const as = (alias: string) => () => ({ alias });

/** The names, each with the recorded outcome of an attempt and its DNS answers. */
const NAMES: Readonly<Record<string, readonly [ends: string, zone: Zone[string]]>> = {
  "public.test": ["delivered", to(PUBLIC)],
  "alias.test": ["delivered", as("public.test")],
  "inside.test": ["blocked_address", to(INSIDE)],
  "behind.test": ["blocked_address", to(PUBLIC, INSIDE)],
  "before.test": ["blocked_address", to(INSIDE, PUBLIC)],
  "last-of-many.test": ["blocked_address", to(...Array.from({ length: 20 }, () => PUBLIC), INSIDE)],
  "other-family.test": ["blocked_address", to(PUBLIC, "::1")],
  "mapped.test": ["blocked_address", to("::ffff:127.0.0.1")],
  "nowhere.test": ["blocked_address", to("0.0.0.0")],
  "metadata.test": ["blocked_address", to("169.254.169.254")],
  "chain.test": ["blocked_address", as("chain-2.test")],
  "chain-2.test": ["blocked_address", as("inside.test")],
  "loop.test": ["dns", as("loop.test")],
  "unknown.test": ["dns", () => "unknown"],
  "failure.test": ["dns", () => "failure"],
  "empty.test": ["dns", to()],
  // The name is public at its registration and at the first attempt, and internal afterwards.
  "rebinds.test": ["delivered", (nth) => ({ addresses: [nth <= 2 ? PUBLIC : INSIDE] })],
};

let names: NameServer;

let inside: RawReceiver;

let env: Record<string, string>;
