import { afterAll, expect, test } from "bun:test";

import { readFileSync } from "node:fs";
import { connect } from "node:net";

import { PASSWORD } from "../support/api.ts";
import { startAttackedApi } from "../support/processes/attacked-api.ts";
import { requestText, sendRaw } from "../support/network/raw-http.ts";
import { until } from "../support/network/receiver.ts";

/* Crowds of unauthenticated clients with many addresses must not keep other clients from the service. */

test("600 wrong sign-ins in flight from 256 /64s of one /56 keep no other network from signing in", async () => {
  const seen = new Map<number | undefined, number>();
  const over = new AbortController();
  let names = 0;
  const keepTrying = async (from: string) => {
    while (!over.signal.aborted) {
      const status = await signIn(from, `nobody-${++names}@unknown.test`, "wrong");
      seen.set(status, (seen.get(status) ?? 0) + 1);
    }
  };
  for (let i = 0; i < CROWD; i++) void keepTrying(`2001:db8:0:${(i % 256).toString(16)}::1`);
  // A 503 shows that the queue of sign-ins is full.
  while (!seen.has(503)) await Bun.sleep(10);
  const people = tenants.partners.flatMap(({ owner, admin }) => [owner.email, admin.email]);
  const answers = await Promise.all(
    VICTIMS.map(async (from, i) => {
      const own: (number | undefined)[] = [];
      for (let n = 0; n < SIGN_INS; n++) own.push(await signIn(from, people[i] ?? "", PASSWORD));
      return own;
    }),
  );
  over.abort();
  expect(answers).toEqual(VICTIMS.map(() => Array.from({ length: SIGN_INS }, () => 200)));
  expect([...seen.keys()].toSorted()).toEqual([401, 503]);
});

const EVENTS = "POST /api/v1/providers/any/events HTTP/1.1";
const HALF_SENT = 1_040_000;

/** Sends a body without its last byte. `said` collects the response. */
function halfSend(from: string, headers = SIGNED) {
  const { hostname, port } = new URL(api.root);
  const socket = connect(Number(port), hostname);
  const half = { said: "", end: () => socket.destroy() };
  socket.on("error", () => {});
  socket.on("data", (chunk: Buffer) => void (half.said += chunk.toString("latin1")));
  const lines = `${headers}X-Forwarded-For: ${from}\r\nContent-Length: ${HALF_SENT}\r\n`;
  socket.write(requestText(EVENTS, lines));
  socket.write(Buffer.alloc(HALF_SENT - 1, " "));
  return half;
}

const statusOf = ({ said }: { said: string }) => said.slice(9, 12);
const residentMb = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${api.pid}/status`, "utf8"))?.[1]) / 1024;

/** The number of these bodies that fit into the bound of 64 MiB for unverified bodies. */
const HELD = Math.floor((64 * 1024 * 1024) / HALF_SENT);
const BODIES = 500;

test.skipIf(process.platform !== "linux")(
  "500 half-sent bodies of provider events are bounded by 64 MiB, and bodies from other addresses are read",
  async () => {
    const before = residentMb();
    const other = [halfSend("192.0.2.1"), halfSend("198.51.100.7")];
    const crowd: ReturnType<typeof halfSend>[] = [];
    for (let i = 0; i < BODIES; i++) {
      crowd.push(halfSend(`2001:db8:0:${i.toString(16)}::1`));
      if (i % 20 === 0) await Bun.sleep(1);
    }
    const refused = () => crowd.filter((one) => statusOf(one) === "503");
    // The two bodies from other addresses count against the bound too.
    const expected = BODIES - (HELD - other.length);
    await until("all beyond the bound are refused", () => refused().length >= expected);
    expect(refused()[0]?.said.toLowerCase()).toContain("retry-after: 5");
    expect(refused()).toHaveLength(expected);
    expect(other.map(statusOf)).toEqual(["", ""]);
    expect(residentMb() - before).toBeLessThan(250);
    const { email } = tenants.partners[0].owner;
    expect(await signIn("203.0.113.5", email, PASSWORD)).toBe(200);
    const whole = requestText(EVENTS, `${SIGNED}Content-Length: 2\r\n`, "{}");
    expect((await sendRaw(api.root, whole, { answers: 1 })).statuses).toEqual([401]);
    for (const one of [...other, ...crowd]) one.end();
  },
);

test.each([
  ["no signature", ""],
  ["one without its prefix", `X-Provider-Signature: ${"0".repeat(64)}\r\n`],
  ["one of 65 digits", `X-Provider-Signature: sha256=${"0".repeat(65)}\r\n`],
])("events with %s are rejected before their body has arrived", async (_, header) => {
  const half = halfSend("192.0.2.1", JSON_TYPE + header);
  await until("the refusal", () => half.said.includes("invalid_signature"));
  expect(statusOf(half)).toBe("401");
  half.end();
});

const world = await startAttackedApi({ TRUSTED_PROXIES: "127.0.0.1" });
const JSON_TYPE = "Content-Type: application/json\r\n";
const SIGNED = `${JSON_TYPE}X-Provider-Signature: sha256=${"0".repeat(64)}\r\n`;

const { api, tenants } = world;

afterAll(() => world.stop());

/** Signs in on a separate connection; answers the status. */
async function signIn(from: string, email: string, password: string): Promise<number | undefined> {
  const body = JSON.stringify({ email, password });
  const headers = `${JSON_TYPE}X-Forwarded-For: ${from}\r\nContent-Length: ${body.length}\r\n`;
  const bytes = requestText("POST /api/v1/login HTTP/1.1", headers, body);
  const { statuses } = await sendRaw(api.root, bytes, { answers: 1, patienceMs: 120_000 });
  return statuses[0];
}

/** More than the 512 sign-ins that may wait. */
const CROWD = 600;

const VICTIMS = ["192.0.2.1", "198.51.100.7", "2001:db8:1::1", "2001:db8:2:5::1"];

const SIGN_INS = 4;
