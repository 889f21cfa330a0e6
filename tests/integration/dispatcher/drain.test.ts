// Health endpoints of the processes, and their shutdown.
import { beforeAll, expect, test } from "bun:test";
import { createConnection } from "node:net";

import { fieldsOf } from "../../../src/lib/fields.ts";
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

test.skipIf(process.platform !== "linux")(
  "an API that stops answers every request on a connection that it has let in",
  async () => {
    const api = await ApiProcess.start({ ...settings, DRAIN_DELAY_MS: "500" });
    const clients = Array.from({ length: CLIENTS }, () => askUntilRefused(api.root));
    api.signal("SIGTERM");
    const lost = await Promise.all(clients);
    expect(lost.flat()).toEqual([]);
    expect(await api.exited()).toBe(0);
  },
);

test("an API that stops writes how many failures of each kind it has only counted", async () => {
  const api = await ApiProcess.start(settings);
  const body = JSON.stringify({ email: "nobody@no.test", password: "wrong" });
  const headers = { "Content-Type": "application/json" };
  const sites = Array.from({ length: 20 }, (_, i) => `providers/unknown-${i}/events`);
  for (let i = 0; i < 3; i++)
    for (const path of ["login", ...sites])
      await fetch(`${api.root}/api/v1/${path}`, { method: "POST", headers, body });
  api.signal("SIGTERM");
  expect(await api.exited()).toBe(0);
  const rows = await database.db.sql`
    select details -> 'repeats' as repeats from audit_log
     where action in ('AUTH_LOGIN_FAILED', 'PROVIDER_AUTH_FAILED')`;
  const counts = rows.map((row) => row["repeats"]).filter((one) => one !== null);
  expect(counts).toEqual(["login", ...sites].map(() => 2));
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

/** Enough that connections wait in the queue of the listener at any moment. */
const CLIENTS = 32;

/** Sends a request on each of many connections until one is refused; returns how those ended that were not answered. */
async function askUntilRefused(root: string): Promise<string[]> {
  const { hostname, port } = new URL(root);
  const lost: string[] = [];
  for (;;) {
    const end = await new Promise<string>((resolve) => {
      let isOpen = false;
      const socket = createConnection({ host: hostname, port: Number(port) }, () => {
        isOpen = true;
        socket.write(`GET /healthz HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n\r\n`);
      });
      socket.once("data", () => {
        resolve("answered");
        socket.destroy();
      });
      socket.once("error", (error) => resolve(isOpen ? error.message : "refused"));
      socket.once("close", () => resolve("closed"));
    });
    if (end === "refused") return lost;
    if (end !== "answered") lost.push(end);
  }
}

async function statusOf(url: string): Promise<unknown> {
  const response = await fetch(url).catch(() => undefined);
  return response && [response.status, fieldsOf(await response.json())["status"]];
}
