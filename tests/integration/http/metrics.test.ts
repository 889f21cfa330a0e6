import { afterEach, describe, expect, test } from "bun:test";

import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { serverTime } from "../../../db/server.ts";
import { apiMetrics } from "../../../src/http/metrics.ts";
import { createRateLimiter } from "../../../src/http/rate-limit.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createProcessMetrics, serveOperations } from "../../../src/lib/metrics.ts";
import { createPasswords } from "../../../src/lib/password.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { startApi, testConfig } from "../../support/api.ts";
import { createTestSchedule, silentLog } from "../../support/dispatch.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { insertSubscription, insertTenant, record, reviewAction } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { parsePrometheus } from "../../support/prometheus.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

describe("the API", () => {
  /** Starts an API without a reachable Redis. */
  async function start() {
    const clock = systemClock;
    const away = () => Promise.reject(new Error("away"));
    const checks = { postgres: () => serverTime(database.db), redis: away };
    const metrics = createProcessMetrics({ clock, checks });
    const passwords = createPasswords();
    const limits = testConfig().rateLimit;
    const redis = { defineCommand: () => {}, takeTokens: away };
    const limiter = createRateLimiter({ redis, prefix: "m:", clock, log: silentLog, limits });
    const busy = { load: () => ({ running: 2, waiting: 3 }) };
    const counting = apiMetrics(metrics, { passwords: busy, limiter });
    const api = await startApi({ db: database.db, box, passwords, limiter, ...counting });
    const server = serveOperations(
      { metrics, readiness: async () => ({ status: "ok", checks: {} }) },
      { host: "127.0.0.1", port: 0 },
    );
    started.push(api, server);
    return { api, port: server.port };
  }

  test("counts requests by route pattern, sign-ins, and requests that Redis did not count", async () => {
    const { api, port } = await start();
    const tenants = await addTenants(database.db);
    const { email } = tenants.partners[0].owner;
    const token = await api.login(email);
    await api.call("POST", "/login", { body: { email, password: "a wrong one" } });
    for (const id of ["01JYZ0000000000000000000AA", "01JYZ0000000000000000000BB"])
      await api.call("GET", `/partner/webhooks/${id}`, { token });
    await api.call("GET", "/nowhere");
    const { values } = await scrape(port);
    const requests = (method: string, route: string, status: string) =>
      values.get(
        `reviewrelay_http_request_duration_seconds_count{method="${method}",route="${route}",status="${status}"}`,
      );
    expect(requests("POST", "/login", "2xx")).toBe(1);
    expect(requests("POST", "/login", "4xx")).toBe(1);
    expect(requests("GET", "/partner/webhooks/:id", "4xx")).toBe(2);
    expect(values.get('reviewrelay_sign_ins_total{result="right"}')).toBe(1);
    expect(values.get('reviewrelay_sign_ins_total{result="wrong"}')).toBe(1);
    expect(values.get("reviewrelay_rate_limit_unchecked_total")).toBe(4);
    expect(values.get('reviewrelay_password_hashes{state="running"}')).toBe(2);
    expect(values.get('reviewrelay_password_hashes{state="waiting"}')).toBe(3);
    expect(values.get('reviewrelay_store_up{store="postgres"}')).toBe(1);
    expect(values.get('reviewrelay_store_up{store="redis"}')).toBe(0);
    expect([...values.keys()].join()).not.toContain("01JYZ");
  });

  test("serves metrics on their port only, and nothing else there", async () => {
    const { api, port } = await start();
    expect((await api.call("GET", "/metrics", { root: true })).status).toBe(404);
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
    const url = `http://127.0.0.1:${port}/metrics`;
    expect((await fetch(url, { method: "POST" })).status).toBe(405);
  });
});

test("a dispatcher counts attempts and commits, and reports its shards", async () => {
  const { db } = database;
  const stores = await createTestSchedule();
  const port = await freePort();
  const dispatcher = new DispatcherProcess({
    DATABASE_URL: database.url,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: stores.prefix,
    MASTER_KEY: Buffer.from(key).toString("base64"),
    METRICS_PORT: String(port),
  });
  const receiver = await Receiver.start((_, count) => (count === 2 ? 500 : 200));
  started.push({ stop: () => stores.close() }, receiver, dispatcher);
  const tenant = await insertTenant(db);
  const to = { partnerId: tenant.partnerId, url: receiver.url };
  const { subscriptionId } = await insertSubscription({ db, box }, to);
  dispatcher.start();
  await stores.schedule.wake(
    await record(
      db,
      Array.from({ length: 3 }, () => reviewAction(tenant)),
    ),
  );
  const recorded = () =>
    db.sql`select from delivery_attempts where subscription_id = ${subscriptionId}`;
  await until("the last commit", async () => (await recorded()).length === 3);
  const commits = async () =>
    (await scrape(port)).values.get("reviewrelay_commit_duration_seconds_count") ?? 0;
  await until("the count of commits", async () => (await commits()) > 0);
  const { values } = await scrape(port);
  expect(values.get('reviewrelay_attempt_duration_seconds_count{result="accepted"}')).toBe(2);
  expect(values.get('reviewrelay_attempt_duration_seconds_count{result="rejected"}')).toBe(1);
  expect(values.get("reviewrelay_shards")).toBe(64);
  expect(values.get('reviewrelay_store_up{store="redis"}')).toBe(1);
  expect(values.has("reviewrelay_lag_seconds")).toBe(true);
});

const key = crypto.getRandomValues(new Uint8Array(32));
const box = createSecretBox({ current: key });
const started: { stop(): unknown }[] = [];

afterEach(async () => {
  for (const one of started.splice(0)) await one.stop();
});

async function scrape(port: number) {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  return parsePrometheus(await response.text());
}
