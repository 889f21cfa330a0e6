import { beforeAll, expect, test } from "bun:test";

import { connect } from "../../../db/client.ts";
import { LIMITS } from "../../../db/limits.ts";
import { writable } from "../../../db/server.ts";
import { PASSWORD, startApi } from "../../support/api.ts";
import { operationsIn } from "../../hostile/description.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { proxyBefore } from "../../support/network/tcp-proxy.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const network = fixture(() => proxyBefore(database.url));
const db = fixture(() =>
  connect(network.in(database.url), { max: 16, name: "away", limits: LIMITS.requests }),
);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db, checks: { postgres: writable(db) } }));

test("without PostgreSQL every route that needs a token answers 503 with Retry-After", async () => {
  const description = await api.call("GET", "/openapi.json", { root: true });
  const paths = operationsIn(description.body)
    .filter(({ security }) => security.some((one) => "bearer" in one))
    .map(({ method, path }) => [method, path] as const);
  expect(paths.length).toBeGreaterThan(50);
  const answers = await Promise.all(
    paths.map(async ([method, path]) => {
      const url = path.replace(/\{\w+\}/g, "1");
      const root = url.startsWith("/api/");
      const sent = method === "GET" ? {} : { body: {} };
      const { status, body, headers } = await api.call(method, url, { root, token, ...sent });
      return [method, path, status, body["code"], Number(headers.get("retry-after")) > 0];
    }),
  );
  expect(answers).toEqual(paths.map((one) => [...one, 503, "unavailable", true]));
});

test("without PostgreSQL a sign-in and provider events answer 503, and OAuth answers its own error", async () => {
  const { email } = tenants.partners[0].owner;
  const login = await api.call("POST", "/login", { body: { email, password: PASSWORD } });
  expect(login).toMatchObject({ status: 503, body: { code: "unavailable" } });
  const events = await api.call("POST", "/providers/google/events", { body: { events: [] } });
  expect(events).toMatchObject({ status: 503, body: { code: "unavailable" } });
  const redeemed = await api.call("POST", "/oauth/token", {
    root: true,
    body: `grant_type=refresh_token&refresh_token=x&client_id=${crypto.randomUUID()}&client_secret=b`,
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
  });
  expect(redeemed).toMatchObject({ status: 503, body: { error: "temporarily_unavailable" } });
  expect(Number(redeemed.headers.get("retry-after"))).toBeGreaterThan(0);
});

test("readiness fails while PostgreSQL is unreachable or accepts no writes, and recovers with it", async () => {
  // The result of a probe is reused for half a second.
  await until("the failure", async () => {
    return (await api.call("GET", "/readyz", { root: true })).status === 503;
  });
  const pool = connect(database.url, { max: 1, name: "probe", limits: LIMITS.readiness });
  const probe = writable(pool);
  const says = () =>
    probe().then(
      () => "ready",
      () => "not ready",
    );
  expect(await says()).toBe("ready");
  await pool.sql`set default_transaction_read_only = on`;
  await until("it says that it is read-only", async () => (await says()) === "not ready");
  await pool.sql`set default_transaction_read_only = off`;
  await until("it is ready again", async () => (await says()) === "ready");
  // A limit of 0 makes temporary files fail, as on a full disk.
  await pool.sql`set temp_file_limit = 0`;
  await until("it says that nothing can be stored", async () => (await says()) === "not ready");
  await pool.close();
});

let token = "";

beforeAll(async () => {
  token = await api.login(tenants.superAdmin.email);
  expect((await api.call("GET", "/readyz", { root: true })).status).toBe(200);
  network.stop();
});
