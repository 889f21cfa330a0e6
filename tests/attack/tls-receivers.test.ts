import { afterEach, describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";

import { HttpClient } from "../../dispatcher/http/client.ts";
import { createDeliver } from "../../dispatcher/delivery/deliver.ts";
import { checkedRequest } from "../../src/lib/checked-http.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { parseNetworks } from "../../src/lib/egress.ts";
import { fieldsOf } from "../../src/lib/fields.ts";
import { EXPIRED, HOOK_TEST, MANY_NAMES, SELF_SIGNED } from "../support/network/certificates.ts";
import { listen, startRawReceiver } from "../support/network/raw-receiver.ts";
import { until } from "../support/network/receiver.ts";
import {
  ROOT,
  serverOf,
  VALID_CHAIN,
  WORTHLESS,
} from "../support/network/worthless-certificates.ts";

/*
 * Receivers with invalid TLS against both of our HTTP clients: the one for webhooks and the one for identity providers.
 * They must get no byte of a request, and no connection to them may stay open.
 */

test("a certificate with its whole chain is accepted", async () => {
  const receiver = await startRawReceiver(OK, { tls: serverOf(VALID_CHAIN) });
  cleanups.push(() => receiver.stop());
  expect(await ask(receiver.port)).toEqual(["accepted", "200"]);
});

describe("a certificate", () => {
  test.each(Object.entries(WORTHLESS))("%s is rejected", (_, cert) =>
    expectRefusal(serverOf(cert)),
  );

  test.each(
    Object.entries({ EXPIRED, SELF_SIGNED, MANY_NAMES, "of another authority": HOOK_TEST }),
  )("%s is rejected", (_, certificate) => expectRefusal(certificate));
});

test.each(["TLSv1", "TLSv1.1"] as const)(
  "a receiver that supports at most %s gets no request",
  (version) =>
    expectRefusal({ ...serverOf(VALID_CHAIN), minVersion: "TLSv1", maxVersion: version }),
);

describe("a handshake", () => {
  /** A TLS alert (handshake_failure). `record` builds the header of a handshake record of a given length. */
  const ALERT = Buffer.from([0x15, 3, 3, 0, 2, 2, 40]);
  const record = (length: number) => Buffer.from([0x16, 3, 3, length >> 8, length & 255]);
  const drip = (socket: Socket) => {
    const timer = setInterval(() => socket.write(record(16_384).subarray(0, 1)), 20);
    socket.on("close", () => clearInterval(timer));
  };

  test.each<[string, (socket: Socket) => void, number]>([
    ["that never begins", () => {}, HASTY_MS],
    ["that drips", drip, HASTY_MS],
    ["that stops in a record", (socket) => void socket.write(record(9_000)), HASTY_MS],
    ["of plain HTTP", (socket) => void socket.write(OK), PATIENT_MS],
    ["of an alert", (socket) => void socket.write(ALERT), PATIENT_MS],
    ["of a record that is too long", (socket) => void socket.write(record(65_535)), PATIENT_MS],
    ["of zeros", (socket) => void socket.write(Buffer.alloc(100_000)), PATIENT_MS],
    ["that is closed", (socket) => void socket.end(), PATIENT_MS],
    ["that is reset", (socket) => void socket.resetAndDestroy(), PATIENT_MS],
  ])("%s fails, and nothing secret is sent in it", async (_, answer, timeoutMs) => {
    const sockets = new Set<Socket>();
    let heard = "";
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
      socket.on("data", (chunk: Buffer) => (heard += chunk.toString("latin1")));
      socket.once("data", () => answer(socket));
    });
    const port = await listen(server);
    cleanups.push(() => server.close());
    const [delivered = "", answered = ""] = await ask(port, timeoutMs);
    expect(["tls", "timeout", "reset", "connect"]).toContain(delivered);
    expect(["connect", "timeout"]).toContain(answered);
    expect(heard).not.toContain("secret");
    expect(heard.length).toBeGreaterThan(0);
    for (const socket of sockets) socket.destroySoon();
    await until("they have left", () => sockets.size === 0);
  });
});

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const PATIENT_MS = 30_000;

/** The deadline for handshakes that never end without one. */
const HASTY_MS = 200;

const POLICY = { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.0/8") };

const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** Sends a request with each client; answers the outcome of the webhook and the status or error code of the other. */
async function ask(port: number, timeoutMs = PATIENT_MS): Promise<string[]> {
  const url = `https://hook.test:${port}/`;
  const lookup = async () => ["127.0.0.1"];
  const options = { policy: POLICY, timeoutMs, ca: [ROOT], lookup };
  const client = new HttpClient(options);
  cleanups.push(() => client.close());
  const outcome = await createDeliver({ clock: systemClock, client })({
    url,
    headers: {},
    body: "a secret",
  });
  const delivered = "errorCode" in outcome ? outcome.errorCode : outcome.kind;
  const headers = { Authorization: "a secret" };
  const asked = { url, method: "POST", headers, body: "a secret" } as const;
  const answered = await checkedRequest(asked, { ...options, maxBytes: 1_000 }).then(
    ({ status }) => String(status),
    (error: unknown) => String(fieldsOf(error)["code"]),
  );
  await until(
    "nothing is left open",
    () => client.counts().open === Number(delivered === "accepted"),
  );
  return [delivered, answered];
}

async function expectRefusal(tls: object): Promise<void> {
  const receiver = await startRawReceiver(OK, { tls });
  cleanups.push(() => receiver.stop());
  expect(await ask(receiver.port)).toEqual(["tls", "connect"]);
  expect(receiver.requests).toEqual([]);
}
