import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";

import { startAttackedApi } from "../support/processes/attacked-api.ts";
import { requestText, sendRaw } from "../support/network/raw-http.ts";
import { until } from "../support/network/receiver.ts";

/* Clients that begin a request and never finish it occupy connections, but must not delay other clients. */
/** The time limit of the test. The server closes an idle connection after at most 30 s. */
const LET_GO_MS = 150_000;

const { api, stop } = await startAttackedApi();

test("clients that stop in a request, or send it byte by byte, delay no others and are disconnected in the end", async () => {
  const halves = Object.values(HALVES).flatMap((half) =>
    Array.from({ length: CLIENTS }, () => half),
  );
  const sockets = await Promise.all(halves.map(open));
  const trickling = await Promise.all(
    Array.from({ length: CLIENTS }, () => open(HALVES["half a body"])),
  );
  const trickle = setInterval(() => {
    for (const one of trickling) one.write(" ");
  }, 1_000);
  for (let i = 0; i < 20; i++) {
    const headers = "Content-Type: application/json\r\nContent-Length: 2\r\n";
    const bytes = requestText("POST /api/v1/login HTTP/1.1", headers, "{}");
    expect((await sendRaw(api.root, bytes, { answers: 1 })).statuses).toEqual([422]);
  }
  const areClosed = () => [...sockets, ...trickling].every((one) => one.closed);
  await until("the server has closed all", areClosed, LET_GO_MS);
  clearInterval(trickle);
  expect(api.said).not.toContain("request.failed");
});

/** Half-sent bodies: `FILLING` of them fill the bound of 64 MiB for unverified bodies. */
const EVENTS_BYTES = 1_040_000;
const FILLING = 64;
const HALF_EVENTS = requestText(
  "POST /api/v1/providers/any/events HTTP/1.1",
  `Content-Type: application/json\r\nX-Provider-Signature: sha256=${"0".repeat(64)}\r\nContent-Length: ${EVENTS_BYTES}\r\n`,
  " ".repeat(EVENTS_BYTES - 1),
);

test(
  "half-sent bodies free their memory when the server closes their connections",
  async () => {
    for (let round = 0; round < 2; round++) {
      const sockets = await Promise.all(
        Array.from({ length: FILLING + 1 }, () => open(HALF_EVENTS)),
      );
      let refused = 0;
      for (const one of sockets)
        one.on("data", (chunk: Buffer) => {
          if (chunk.includes("HTTP/1.1 503")) refused++;
        });
      await until("the body beyond the bound is rejected", () => refused > 0);
      await until(
        "the server has closed the others",
        () => sockets.filter((one) => one.closed).length >= FILLING,
        LET_GO_MS,
      );
      expect(refused).toBe(1);
      for (const one of sockets) one.destroy();
    }
  },
  LET_GO_MS,
);

test.skipIf(process.platform !== "linux")(
  "clients that request the longest response 200 times and never read use less than 100 MB in all",
  async () => {
    const before = residentMb(api.pid);
    const { hostname, port } = new URL(api.root);
    const sockets = Array.from({ length: READERS }, () => {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      socket.pause();
      socket.write(requestText("GET /openapi.json HTTP/1.1").repeat(ASKED));
      return socket;
    });
    // These requests give the event loop time to serve the clients above.
    for (let i = 0; i < 200; i++) {
      const { statuses } = await sendRaw(api.root, requestText("GET /healthz HTTP/1.1"), {
        answers: 1,
      });
      expect(statuses).toEqual([200]);
    }
    // All responses together would take a gigabyte.
    expect(residentMb(api.pid) - before).toBeLessThan(100);
    for (const socket of sockets) socket.destroy();
  },
);

function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

const CLIENTS = 100;

/** The number of clients that never read, and the number of requests that each of them sends. */
const READERS = 20;

const ASKED = 200;

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

afterAll(stop);

async function open(bytes: string): Promise<Socket> {
  const { hostname, port } = new URL(api.root);
  const socket = connect(Number(port), hostname);
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
  socket.on("error", () => {});
  // A socket notices the end of its connection only while it reads.
  socket.resume();
  socket.write(bytes, "latin1");
  return socket;
}
