// How a process is looked at by whoever runs it, and how it leaves.
import { afterAll, beforeAll, expect, test } from "bun:test";

import { systemClock } from "../../src/lib/clock.ts";
import { serveOperations } from "../../src/lib/metrics-server.ts";
import { Metrics } from "../../src/lib/metrics.ts";
import { readinessOf } from "../../src/lib/readiness.ts";
import { ApiProcess } from "../support/api-process.ts";
import { silentLog } from "../support/dispatch.ts";
import { DispatcherProcess } from "../support/dispatcher-process.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";
import { until } from "../support/receiver.ts";

let database: TestDatabase;
let settings: Record<string, string>;

beforeAll(async () => {
  database = await createDatabase();
  settings = {
    DATABASE_URL: database.url,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: `drain-${crypto.randomUUID()}:`,
    MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
  };
});
afterAll(() => database.drop());

async function statusOf(url: string): Promise<unknown> {
  const response = await fetch(url).catch(() => undefined);
  return response && [response.status, Reflect.get(Object(await response.json()), "status")];
}

test("an API that is told to stop says that it drains, and goes on answering until the delay is over", async () => {
  const api = await ApiProcess.start({ ...settings, DRAIN_DELAY_MS: "3000" });
  api.signal("SIGTERM");
  const readyz = `${api.root}/readyz`;
  await until("it says so", async () => (await statusOf(readyz))?.toString() === "503,draining");
  const { status, headers } = await fetch(`${api.root}/healthz`);
  expect([status, headers.get("connection")]).toEqual([200, "close"]);
  expect(await api.exited()).toBe(0);
});

test("a dispatcher shows health, readiness and metrics where METRICS_HOST says", async () => {
  const probe = Bun.listen({ hostname: "127.0.0.2", port: 0, socket: { data() {} } });
  const port = probe.port;
  probe.stop(true);
  const at = { METRICS_HOST: "127.0.0.2", METRICS_PORT: String(port) };
  const dispatcher = new DispatcherProcess({ ...settings, ...at });
  dispatcher.start();
  try {
    const root = `http://127.0.0.2:${port}`;
    await until(
      "it is ready",
      async () => (await statusOf(`${root}/readyz`)) !== undefined,
      30_000,
    );
    expect(await statusOf(`${root}/readyz`)).toEqual([200, "ok"]);
    expect(await statusOf(`${root}/healthz`)).toEqual([200, "ok"]);
    expect((await fetch(`${root}/metrics`)).status).toBe(200);
    expect((await fetch(`${root}/`)).status).toBe(404);
    expect((await fetch(`${root}/readyz`, { method: "POST" })).status).toBe(405);
    expect(await statusOf(`http://127.0.0.1:${port}/readyz`)).toBeUndefined();
  } finally {
    await dispatcher.stop();
  }
});

test("readiness names the store that is away, and nothing else once the process drains", async () => {
  const stores = {
    postgres: async () => {},
    redis: () => Promise.reject(new Error("away")),
  };
  let isDraining = false;
  const readiness = () =>
    readinessOf({ clock: systemClock, log: silentLog, stores, isDraining: () => isDraining });
  const server = serveOperations(
    { metrics: new Metrics(), readiness },
    { host: "127.0.0.1", port: 0 },
  );
  const ask = async () => (await fetch(`http://127.0.0.1:${server.port}/readyz`)).json();
  try {
    expect(await ask()).toEqual({
      status: "unavailable",
      checks: { postgres: "ok", redis: "failed" },
    });
    isDraining = true;
    expect(await ask()).toEqual({ status: "draining", checks: {} });
  } finally {
    server.stop();
  }
});
