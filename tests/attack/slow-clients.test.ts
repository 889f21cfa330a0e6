import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";

import { ApiProcess } from "../support/api-process.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";
import { requestText, sendRaw } from "../support/raw-http.ts";
import { until } from "../support/receiver.ts";
import { addTenants } from "../support/tenants.ts";

/* Clients that begin and never finish: they hold their connections, and nobody else's time. */

const CLIENTS = 100;
/** Ends the test: the server lets an idle connection go after half a minute at the most. */
const LET_GO_MS = 150_000;
const HALVES = {
  "nothing at all": "",
  "half a request line": "GET /heal",
  "half a header": "GET /healthz HTTP/1.1\r\nHost: local",
  "half a body": requestText(
    "POST /api/v1/login HTTP/1.1",
    "Content-Type: application/json\r\nContent-Length: 9000\r\n",
    "{",
  ),
};

let database: TestDatabase;
let api: ApiProcess;
beforeAll(async () => {
  database = await createDatabase();
  await addTenants(database.db);
  api = await ApiProcess.start({
    DATABASE_URL: database.url,
    MASTER_KEY: randomBytes(32).toString("base64"),
  });
});
afterAll(async () => {
  api.kill();
  await database.drop();
});

async function open(bytes: string): Promise<Socket> {
  const { hostname, port } = new URL(api.root);
  const socket = connect(Number(port), hostname);
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
  socket.on("error", () => {});
  // The end of the connection is noticed only by who reads.
  socket.resume();
  socket.write(bytes, "latin1");
  return socket;
}

test("clients that begin and stop there keep nobody waiting, and are let go in the end", async () => {
  const halves = Object.values(HALVES).flatMap((half) =>
    Array.from({ length: CLIENTS }, () => half),
  );
  const sockets = await Promise.all(halves.map(open));
  for (let i = 0; i < 20; i++) {
    const headers = "Content-Type: application/json\r\nContent-Length: 2\r\n";
    const bytes = requestText("POST /api/v1/login HTTP/1.1", headers, "{}");
    expect((await sendRaw(api.root, bytes, { answers: 1 })).statuses).toEqual([422]);
  }
  const areClosed = () => sockets.every((one) => one.closed);
  await until("the server has closed all", areClosed, LET_GO_MS);
  expect(api.said).not.toContain("request.failed");
});
