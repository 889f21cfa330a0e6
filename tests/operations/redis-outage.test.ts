// Real processes during an outage of Redis, with the shipped deploy/Caddyfile in front of the API.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { startValkeyBridge, type ValkeyServer } from "../../scripts/demo/stores/valkey-bridge.ts";
import { startShipped } from "../support/shipped-proxy.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import { fieldsOf } from "../../src/lib/fields.ts";
import { createSecretBox } from "../../src/lib/secrets.ts";
import { PASSWORD } from "../support/api.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { addProvider, connectStore, created, type TestProvider } from "../support/factory.ts";
import { type TcpProxy, startTcpProxy } from "../support/network/tcp-proxy.ts";
import { insertSubscription } from "../support/outbox.ts";
import { createDatabase } from "../support/postgres.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { addTenants } from "../support/tenants.ts";
import { fixture } from "../support/fixture.ts";
import { lacks } from "../support/needs.ts";
import { type Accepted, reviewKey } from "../verdicts/facts.ts";
import { expectNoViolations } from "../shipping/drill.ts";

const database = fixture(createDatabase);

describe("without Redis every request through the shipped Caddyfile succeeds", () => {
  test.skipIf(lacks("caddy")).each([
    ["ends its connections", () => redis.stop()],
    [
      "accepts connections and never answers",
      () => {
        network.deaf = true;
        network.freeze();
      },
    ],
  ])("by a Redis that %s", async (_, takeAway) => {
    const { api, operations } = await startProcesses(network.port);
    const upstream = Number(new URL(api.root).port);
    const caddy = await startShipped("Caddyfile", { port: await freePort(), apis: [upstream] });
    stops.push(() => caddy.stop());
    expect(await use(api, caddy.root, 0)).toEqual(ONLY_200);
    takeAway();
    await until("it is noticed", async () => (await readiness(api.root))?.body["status"] !== "ok");
    expect(await use(api, caddy.root, OUTAGE_MS)).toEqual(ONLY_200);
    for (const root of [api.root, caddy.root, operations])
      expect(await readiness(root)).toMatchObject(DEGRADED);
    await expectAllDelivered();
  });
});

describe("processes that start without Redis serve requests, deliver, and report that they are degraded", () => {
  test.each([
    ["refuses connections", () => freePort()],
    [
      "accepts connections and never answers",
      async () => {
        network.deaf = true;
        return network.port;
      },
    ],
  ])("by a Redis that %s", async (_, redisPort) => {
    const { api, operations } = await startProcesses(await redisPort());
    await until("the dispatcher is up", async () => (await readiness(operations)) !== undefined);
    expect(await use(api, api.root, 0)).toEqual(ONLY_200);
    for (const root of [api.root, operations])
      expect(await readiness(root)).toMatchObject(DEGRADED);
    await expectAllDelivered();
  });
});

let redis: ValkeyServer;
let network: TcpProxy;

const KEY = randomBytes(32);

/** Longer than two health checks of Caddy (`health_interval 2s` in deploy/Caddyfile). */
const OUTAGE_MS = 6_000;

let receiver: Receiver;

let provider: TestProvider;

let email: string;

let site: number;

let stops: (() => unknown)[];

const taken: Accepted[] = [];

beforeAll(async () => {
  const { db } = database;
  const box = createSecretBox({ current: KEY });
  receiver = await Receiver.start();
  const [partner] = (await addTenants(db)).partners;
  email = partner.owner.email;
  provider = await addProvider(db, box);
  site = await connectStore(db, partner.accounts[0], { provider });
  await insertSubscription({ db, box }, { partnerId: partner.id, url: receiver.url });
});

afterAll(async () => {
  await receiver.stop();
});

beforeEach(async () => {
  redis = startValkeyBridge({ port: 0, onFailure: (error) => console.error(error) });
  network = await startTcpProxy(redis.port);
  stops = [() => redis.stop(), () => network.stop()];
});

afterEach(async () => {
  for (const stop of stops.toReversed()) await stop();
});

/** Starts an API and a dispatcher; `operations` is the address of the metrics and the readiness of the dispatcher. */
async function startProcesses(redisPort: number): Promise<{ api: ApiProcess; operations: string }> {
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: `redis://127.0.0.1:${redisPort}`,
    MASTER_KEY: KEY.toString("base64"),
  };
  const operations = await freePort();
  const dispatcher = new DispatcherProcess({ ...env, METRICS_PORT: String(operations) });
  dispatcher.start();
  stops.push(() => dispatcher.stop());
  const api = await ApiProcess.start({ ...env, RATE_LIMITS: "on" });
  stops.push(() => api.kill());
  return { api, operations: `http://127.0.0.1:${operations}` };
}

const readiness = async (root: string) => {
  const answer = await fetch(`${root}/readyz`).catch(() => undefined);
  return answer && { status: answer.status, body: fieldsOf(await answer.json()) };
};

const DEGRADED = {
  status: 200,
  body: { status: "degraded", checks: { postgres: "ok", redis: "failed" } },
};

/** Sends events, signs in and reads a list for `ms`; answers the statuses by kind of request. */
async function use(
  api: ApiProcess,
  root: string,
  ms: number,
): Promise<Record<string, Set<number>>> {
  const seen = { event: new Set<number>(), login: new Set<number>(), list: new Set<number>() };
  const endMs = performance.now() + ms;
  do {
    const name = crypto.randomUUID();
    const event = created(site, name, { reviewer: name });
    const { status } = await api.report(provider, [event], { root });
    seen.event.add(status);
    if (status === 200)
      taken.push({ eventId: String(event["id"]), review: reviewKey(site, name), marker: name });
    const login = await api.call("POST", `${root}${BASE_PATH}/login`, {
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ email, password: PASSWORD }),
    });
    seen.login.add(login.status);
    const headers = { Authorization: `Bearer ${String(login.body["token"])}` };
    const list = await api.call("GET", `${root}${BASE_PATH}/partner/webhooks`, { headers });
    seen.list.add(list.status);
  } while (performance.now() < endMs);
  return seen;
}

const ONLY_200 = { event: new Set([200]), login: new Set([200]), list: new Set([200]) };

async function expectAllDelivered(): Promise<void> {
  const endpoints = [{ receiver, provider, siteId: site }];
  await expectNoViolations({ db: database.db, masterKey: KEY, endpoints, load: { taken } });
}
