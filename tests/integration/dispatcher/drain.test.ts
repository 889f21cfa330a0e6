// Health endpoints of the processes, and their shutdown.
import { beforeAll, expect, test } from "bun:test";

import { ApiProcess } from "../../support/processes/api-process.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

test("an API that gets SIGTERM reports draining, and serves requests until DRAIN_DELAY_MS has passed", async () => {
  const api = await ApiProcess.start({ ...settings, DRAIN_DELAY_MS: "3000" });
  api.signal("SIGTERM");
  const readyz = `${api.root}/readyz`;
  await until("it says so", async () => (await statusOf(readyz))?.toString() === "503,draining");
  const { status, headers } = await fetch(`${api.root}/healthz`);
  expect([status, headers.get("connection")]).toEqual([200, "close"]);
  expect(await api.exited()).toBe(0);
});

test("a dispatcher serves health, readiness and metrics only on METRICS_HOST", async () => {
  // The port stays taken on 127.0.0.1: a dispatcher that listened on all addresses could not start.
  using other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const at = { METRICS_HOST: "127.0.0.2", METRICS_PORT: String(other.port) };
  const dispatcher = new DispatcherProcess({ ...settings, ...at });
  dispatcher.start();
  try {
    const root = `http://127.0.0.2:${other.port}`;
    const isReady = async () => (await statusOf(`${root}/readyz`))?.toString() === "200,ok";
    await until("it is ready", isReady);
    expect(await statusOf(`${root}/healthz`)).toEqual([200, "ok"]);
    expect((await fetch(`${root}/metrics`)).status).toBe(200);
    expect((await fetch(`${root}/`)).status).toBe(404);
    expect((await fetch(`${root}/readyz`, { method: "POST" })).status).toBe(405);
  } finally {
    await dispatcher.stop();
  }
});

let settings: Record<string, string>;

beforeAll(async () => {
  settings = {
    DATABASE_URL: database.url,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: `drain-${crypto.randomUUID()}:`,
    MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
  };
});

async function statusOf(url: string): Promise<unknown> {
  const response = await fetch(url).catch(() => undefined);
  return response && [response.status, Reflect.get(Object(await response.json()), "status")];
}
