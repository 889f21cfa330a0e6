import { afterEach, describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { EXCERPT_BYTES } from "../../../dispatcher/http/excerpt.ts";
import type { HttpClientOptions } from "../../../dispatcher/http/pool.ts";
import { MAX_HEAD_BYTES } from "../../../dispatcher/http/message.ts";
import { parseProxyUrl } from "../../../src/lib/egress-proxy.ts";
import { checkNewWebhookUrl, type EgressPolicy, parseNetworks } from "../../../src/lib/egress.ts";
import type { Lookup } from "../../../src/lib/name-resolver.ts";
import type { Log } from "../../../src/lib/log.ts";
import {
  createTestBox,
  createTestSchedule,
  silentLog,
  startDispatcher,
  type RunningDispatcher,
} from "../../support/dispatch.ts";
import {
  insertSubscription,
  insertTenant,
  record,
  reviewAction,
  type Tenant,
} from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import {
  CA,
  EXPIRED,
  LOOPBACK_ADDRESSES,
  SELF_SIGNED,
} from "../../support/network/certificates.ts";
import { PRIVATE_SPELLINGS } from "../../support/network/private-spellings.ts";
import { startProxy } from "../../support/network/proxy.ts";
import {
  listen,
  startRawReceiver,
  type RawAnswer,
  type RawReceiver,
} from "../../support/network/raw-receiver.ts";
import { until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const stores = fixture(createTestSchedule);

describe("an address that is not public", () => {
  test("is blocked at every attempt although the name was public at creation, and counts as one failure", async () => {
    const receiver = await receive(OK);
    const url = `http://rebind.test:${receiver.port}/hook`;
    const check = await checkNewWebhookUrl(url, PUBLIC_ONLY, { lookup: giving("93.184.216.34") });
    expect(check.kind).toBe("target");
    const subscribed = await subscribe(url);
    dispatch({ policy: PUBLIC_ONLY, lookup: giving("127.0.0.1") }, { retryDelaysMs: AT_ONCE });
    await emit(subscribed);
    const attempts = await attemptsOf(subscribed, 4);
    for (const attempt of attempts.slice(0, 3))
      expect(attempt).toMatchObject(unanswered("blocked_address"));
    expect(attempts[3]).toMatchObject({ ...unanswered("blocked_address"), outcome: "failed" });
    expect(await failuresOf(subscribed)).toBe(1);
    expect(receiver.accepted).toBe(0);
  });

  test("is blocked at the first new connection after the name has moved, even after successful deliveries", async () => {
    const receiver = await receive(OK.replace("\r\n", "\r\nConnection: close\r\n"));
    const answers = [["127.0.0.1"], ["127.0.0.1", "169.254.169.254"]];
    const policy = { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.1/32") };
    const subscribed = await subscribe(`http://moving.test:${receiver.port}/hook`);
    dispatch({ policy, lookup: async () => answers.shift() ?? [] });
    await emit(subscribed);
    expect(await attemptsOf(subscribed)).toMatchObject([accepted("ok", false)]);
    await emit(subscribed);
    expect((await attemptsOf(subscribed, 2))[1]).toMatchObject(unanswered("blocked_address"));
    expect(receiver.accepted).toBe(1);
  });

  test(`is recognised in ${PRIVATE_SPELLINGS.length} spellings, and nothing is connected to`, async () => {
    expect(PRIVATE_SPELLINGS.length).toBeGreaterThanOrEqual(40);
    const receiver = await receive(OK);
    const all = await Promise.all(
      PRIVATE_SPELLINGS.map((host) => subscribe(`http://${host}:${receiver.port}/hook`)),
    );
    dispatch({ policy: PUBLIC_ONLY });
    await emit(...all);
    for (const [nth, one] of all.entries()) {
      const [attempt] = await attemptsOf(one);
      expect([PRIVATE_SPELLINGS[nth], attempt]).toMatchObject([
        PRIVATE_SPELLINGS[nth],
        unanswered("blocked_address"),
      ]);
    }
    expect(receiver.accepted).toBe(0);
  });

  test("is recognised in every form that a resolver may return, also after a public address", async () => {
    const receiver = await receive(OK);
    const forms = [
      "127.0.0.1",
      "::1",
      "::ffff:127.0.0.1",
      "0:0:0:0:0:ffff:7f00:1",
      "::127.0.0.1",
      "64:ff9b::7f00:1",
      "2002:7f00:1::",
      "fe80::1%lo",
      "0.0.0.0",
      "127.1",
    ];
    const all = await Promise.all(
      forms.map((_, nth) => subscribe(`http://form-${nth}.test:${receiver.port}/`)),
    );
    const lookup = async (host: string) => ["8.8.8.8", forms[Number(/\d+/.exec(host))] ?? ""];
    dispatch({ policy: PUBLIC_ONLY, lookup });
    await emit(...all);
    for (const one of all)
      expect(await attemptsOf(one)).toMatchObject([unanswered("blocked_address")]);
    expect(receiver.accepted).toBe(0);
  });

  test("is not reached by a redirect, which is recorded as the response", async () => {
    const inside = await receive(OK);
    dispatch();
    for (const [status, location] of [
      [301, "http://169.254.169.254/latest/meta-data/iam/"],
      [302, "http://[fd00:ec2::254]/latest/"],
      [303, inside.url],
      [307, inside.url],
      [308, "//metadata.google.internal/computeMetadata/v1/"],
    ] as const) {
      const receiver = await receive(
        `HTTP/1.1 ${status} Moved\r\nLocation: ${location}\r\nContent-Length: 4\r\n\r\nmove`,
      );
      expect(await firstAttempt(receiver.url)).toMatchObject({
        outcome: "retry",
        status_code: status,
        error_code: "http_status",
        response_headers: { location },
        response_excerpt: "move",
        response_truncated: false,
      });
      expect(receiver.requests).toHaveLength(1);
    }
    expect(inside.accepted).toBe(0);
  });
});

describe("a body without end", () => {
  test("that decompresses to 32 MB is recorded with its first 4 KiB", async () => {
    const bomb = gzipSync(new Uint8Array(32 * 1024 * 1024).fill(0x61));
    const head = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`;
    const receiver = await receive(Buffer.concat([Buffer.from(head), bomb]));
    dispatch();
    const attempt = await firstAttempt(receiver.url);
    expect(attempt).toMatchObject(accepted("a".repeat(EXCERPT_BYTES), true));
    expect(attempt.response_headers).toMatchObject({ "content-encoding": "gzip" });
  });

  test("that arrives byte by byte is cut, and the next event does not wait for it", async () => {
    const receiver = await receive((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
      const drip = setInterval(() => socket.write("."), 20);
      socket.on("close", () => clearInterval(drip));
    });
    const subscribed = await subscribe(receiver.url);
    const { client } = dispatch({ bodyMs: 150 });
    await emit(subscribed, subscribed);
    for (const attempt of await attemptsOf(subscribed, 2)) {
      expect(attempt).toMatchObject({ outcome: "delivered", response_truncated: true });
      // The response announced 100,000 bytes.
      expect(attempt.response_excerpt).toMatch(/^\.{0,4096}$/);
    }
    expect(receiver.accepted).toBe(2);
    expect(client.counts().open).toBe(0);
  });

  test("that floods is cut at the limit, with and without chunks", async () => {
    dispatch();
    for (const [framing, piece] of [
      ["Connection: close", "x".repeat(4096)],
      ["Transfer-Encoding: chunked", `1000\r\n${"x".repeat(4096)}\r\n`],
    ] as const) {
      const receiver = await receive((socket) => {
        socket.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`);
        const flood = setInterval(() => socket.write(piece.repeat(8)), 1);
        socket.on("close", () => clearInterval(flood));
      });
      expect(await firstAttempt(receiver.url)).toMatchObject(
        accepted("x".repeat(EXCERPT_BYTES), true),
      );
    }
  });
});

describe("headers without end", () => {
  const frame = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: \r\n\r\n";
  const headOf = (bytes: number) => frame.replace("X: ", `X: ${"x".repeat(bytes - frame.length)}`);

  test("are accepted and recorded up to 16 KiB, and fail with one byte more", async () => {
    dispatch();
    for (const bytes of [MAX_HEAD_BYTES - 1, MAX_HEAD_BYTES]) {
      const within = await firstAttempt((await receive(headOf(bytes))).url);
      expect(within).toMatchObject(accepted("", false));
      expect(within.response_headers?.["x"]).toHaveLength(bytes - frame.length);
    }
    const beyond = await firstAttempt((await receive(headOf(MAX_HEAD_BYTES + 1))).url);
    expect(beyond).toMatchObject(unanswered("protocol"));
  });

  test("fail with protocol if they flood and with timeout if they arrive byte by byte", async () => {
    for (const [piece, errorCode, timeoutMs] of [
      ["X: y\r\n".repeat(500), "protocol", 60_000],
      ["X: y\r\n", "timeout", 400],
    ] as const) {
      const dispatcher = dispatch({ timeoutMs });
      const receiver = await receive((socket) => {
        socket.write("HTTP/1.1 200 OK\r\n");
        const flow = setInterval(() => socket.write(piece), 20);
        socket.on("close", () => clearInterval(flow));
      });
      expect(await firstAttempt(receiver.url)).toMatchObject(unanswered(errorCode));
      await dispatcher.stop();
    }
  });

  test("of interim responses count too, while a single 100 Continue is ignored", async () => {
    const dispatcher = dispatch();
    const interim = "HTTP/1.1 100 Continue\r\n\r\n";
    const fitting = Math.floor((MAX_HEAD_BYTES - OK.length) / interim.length);
    for (const [answer, expected] of [
      [interim + OK, accepted("ok", false)],
      [interim.repeat(fitting) + OK, accepted("ok", false)],
      [interim.repeat(fitting + 2) + OK, unanswered("protocol")],
    ] as const)
      expect(await firstAttempt((await receive(answer)).url)).toMatchObject(expected);
    await dispatcher.stop();
    dispatch({ timeoutMs: 400 });
    const { url } = await receive(interim);
    expect(await firstAttempt(url)).toMatchObject(unanswered("timeout"));
  });
});

describe("text that PostgreSQL rejects", () => {
  /** Bodies with the excerpts that are recorded. */
  const BODIES: [body: Buffer, excerpt: string][] = [
    [Buffer.from("a\0b\0"), "a\ufffdb\ufffd"],
    [Buffer.from("\0"), "\ufffd"],
    [Buffer.from([0xff, 0xfe, 0x61, 0xc3]), "\ufffd\ufffda\ufffd"],
    // Half of a surrogate pair, as bytes and as a JSON escape.
    [Buffer.from([0xed, 0xa0, 0x80, 0x62]), "\ufffd\ufffd\ufffdb"],
    [Buffer.from('{"x":"\\ud800","y":"\\u0000"}'), '{"x":"\\ud800","y":"\\u0000"}'],
    [Buffer.from(""), ""],
    [Buffer.from("\\N"), "\\N"],
    [Buffer.from("NULL"), "NULL"],
    [Buffer.from("{},\"'\\;--\t\r\n"), "{},\"'\\;--\t\r\n"],
  ];

  test("is recorded in a readable form, and does not block other records of the same commit", async () => {
    const warnings: unknown[] = [];
    const log: Log = { ...silentLog, warn: (event, fields) => void warnings.push([event, fields]) };
    const all = await Promise.all(
      BODIES.map(async ([body]) => {
        const head = `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`;
        return subscribe((await receive(Buffer.concat([Buffer.from(head), body]))).url);
      }),
    );
    dispatch({}, { log });
    await emit(...all);
    for (const [nth, one] of all.entries())
      expect(await attemptsOf(one)).toMatchObject([accepted(BODIES[nth]?.[1] ?? "", false)]);
    expect(warnings).toEqual([]);
  });

  test("is recorded for every byte, in the body and in a header", async () => {
    const bytes = Array.from({ length: 256 }, (_, byte) => byte);
    const all = await Promise.all(
      bytes
        .filter((byte) => byte !== 0x0a && byte !== 0x0d)
        .map(async (byte) => {
          const one = Buffer.from([byte]);
          const head = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nX-Byte: <");
          const answer = Buffer.concat([head, one, Buffer.from(">\r\n\r\n"), one]);
          return { byte, ...(await subscribe((await receive(answer)).url)) };
        }),
    );
    dispatch();
    await emit(...all);
    for (const one of all) {
      const [attempt] = await attemptsOf(one);
      if (one.byte === 0) {
        expect(attempt).toMatchObject(unanswered("protocol"));
        continue;
      }
      expect(attempt).toMatchObject({ outcome: "delivered", status_code: 200 });
      const character = String.fromCharCode(one.byte);
      expect(attempt?.response_headers?.["x-byte"]).toBe(`<${character}>`);
      expect(attempt?.response_excerpt).toHaveLength(1);
      // Some control characters may be replaced, because the commit uses two of them as separators.
      if (one.byte >= 0x20) {
        const excerpt = one.byte < 0x80 ? character : "\ufffd";
        expect(attempt).toMatchObject(accepted(excerpt, false));
      }
    }
  });

  test("is recorded unchanged for header names that are also properties of objects", async () => {
    const receiver = await receive(
      "HTTP/1.1 200 OK\r\n__proto__: a\r\nconstructor: b\r\nContent-Length: 0\r\n\r\n",
    );
    dispatch();
    const { response_headers } = await firstAttempt(receiver.url);
    expect(JSON.stringify(response_headers)).toBe(
      '{"__proto__":"a","constructor":"b","content-length":"0"}',
    );
  });
});

describe("an unexpected response", () => {
  test("that comes before a byte of the request was read is still its response", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.pause();
      socket.write(OK.replace("200 OK", "202 Accepted"));
      started.push({ stop: () => void socket.destroy() });
    });
    const port = await listen(server);
    started.push({ stop: () => void server.close() });
    dispatch();
    expect(await firstAttempt(`http://127.0.0.1:${port}/`)).toMatchObject({
      ...accepted("ok", false),
      status_code: 202,
    });
  });

  const SECOND = "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n";
  test.each([
    ["behind the first", OK + SECOND],
    ["behind chunks", `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SECOND}`],
    [
      "as the body of a 204",
      `HTTP/1.1 204 No Content\r\nContent-Length: ${SECOND.length}\r\n\r\n${SECOND}`,
    ],
    ["behind a length of zero", `HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n${SECOND}`],
  ])("that comes %s is not taken for the response to the next request", async (_, both) => {
    const receiver = await receive((socket, _request, nth) => {
      socket.write(nth === 1 ? both : OK);
    });
    const subscribed = await subscribe(receiver.url);
    dispatch();
    await emit(subscribed, subscribed, subscribed);
    const attempts = await attemptsOf(subscribed, 3);
    expect(attempts.map(({ outcome }) => outcome)).toEqual(["delivered", "delivered", "delivered"]);
    expect(attempts.slice(1)).toMatchObject([accepted("ok", false), accepted("ok", false)]);
    expect(receiver.requests).toHaveLength(3);
    expect(receiver.accepted).toBe(2);
    expect(await failuresOf(subscribed)).toBe(0);
  });

  test("on an idle connection closes it", async () => {
    const late = (socket: Socket) => void setTimeout(() => socket.write(SECOND), 30);
    const receiver = await receive((socket, _request, nth) => {
      socket.write(OK);
      if (nth === 1) late(socket);
    });
    const subscribed = await subscribe(receiver.url);
    const { client } = dispatch();
    await emit(subscribed);
    await attemptsOf(subscribed);
    await until("the connection ends", () => client.counts().open === 0);
    await emit(subscribed);
    expect(await attemptsOf(subscribed, 2)).toMatchObject([
      accepted("ok", false),
      accepted("ok", false),
    ]);
  });

  test("with two lengths or two framings is invalid", async () => {
    dispatch();
    for (const framing of [
      "Content-Length: 2\r\nContent-Length: 40",
      "Content-Length: 2, 2",
      "Content-Length: 2\r\nTransfer-Encoding: chunked",
      "Transfer-Encoding: chunked, identity",
      "Content-Length: +2",
      "Content-Length: 2\r\n X: folded",
      "Content-Length : 2",
    ]) {
      const receiver = await receive(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\nok${SECOND}`);
      expect(await firstAttempt(receiver.url)).toMatchObject(unanswered("protocol"));
    }
  });
});

describe("a connection that the receiver closed", () => {
  test("while it was idle is not used, so that nothing has to be sent again", async () => {
    const receiver = await receive(OK);
    const subscribed = await subscribe(receiver.url);
    const { client } = dispatch();
    await emit(subscribed);
    await attemptsOf(subscribed);
    for (const socket of receiver.connections) socket.end();
    await until("the connection ends", () => client.counts().open === 0);
    await emit(subscribed);
    expect(await attemptsOf(subscribed, 2)).toMatchObject([
      accepted("ok", false),
      accepted("ok", false),
    ]);
    expect(receiver.requests).toHaveLength(2);
  });

  test("when the request arrived is replaced by a new one, within one recorded attempt", async () => {
    const receiver = await receive((socket, _request, nth) => {
      if (nth === 2) socket.resetAndDestroy();
      else socket.write(OK);
    });
    const subscribed = await subscribe(receiver.url);
    dispatch();
    await emit(subscribed);
    await attemptsOf(subscribed);
    await emit(subscribed);
    expect(await attemptsOf(subscribed, 2)).toMatchObject([
      { ...accepted("ok", false), resent: false },
      { ...accepted("ok", false), resent: true },
    ]);
    expect(receiver.requests).toHaveLength(3);
    expect(receiver.requests[2]).toBe(receiver.requests[1] ?? "");
  });

  test("before any response fails with reset each time, and the four attempts count as one failure", async () => {
    const receiver = await receive((socket) => void socket.resetAndDestroy());
    const subscribed = await subscribe(receiver.url);
    dispatch({}, { retryDelaysMs: AT_ONCE });
    await emit(subscribed);
    const attempts = await attemptsOf(subscribed, 4);
    for (const attempt of attempts)
      expect(attempt).toMatchObject({ ...unanswered("reset"), outcome: attempt.outcome });
    expect(attempts.map(({ outcome }) => outcome)).toEqual(["retry", "retry", "retry", "failed"]);
    expect(await failuresOf(subscribed)).toBe(1);
    expect(receiver.requests).toHaveLength(4);
  });
});

describe("a failure that is not a response of the receiver", () => {
  test("is recorded as tls if the certificate is invalid, and the log has the reason", async () => {
    const details: unknown[] = [];
    const log: Log = { ...silentLog, info: (_, fields) => void details.push(fields?.["detail"]) };
    dispatch({ ca: [CA], lookup: giving("127.0.0.1") }, { log });
    for (const tls of [EXPIRED, SELF_SIGNED, LOOPBACK_ADDRESSES]) {
      const receiver = await startRawReceiver(OK, { tls });
      started.push(receiver);
      expect(await firstAttempt(`https://hook.test:${receiver.port}/`)).toMatchObject(
        unanswered("tls"),
      );
      expect(receiver.requests).toEqual([]);
    }
    expect(details.join()).toMatch(/CERT_HAS_EXPIRED.*SELF_SIGNED_CERT.*ALTNAME_INVALID/);
  });

  test("is not recorded if the egress proxy rejects or is down; the log reports it without the password", async () => {
    const lines: string[] = [];
    const write = (event: string, fields?: Record<string, unknown>) =>
      void lines.push(JSON.stringify([event, fields]));
    const log: Log = { debug: write, info: write, warn: write, error: write };
    const receiver = await receive(OK);
    const proxy = await startProxy(() => "HTTP/1.1 407 Login\r\n\r\n");
    started.push(proxy);
    for (const port of [proxy.port, 1]) {
      lines.length = 0;
      const subscribed = await subscribe(receiver.url);
      const running = dispatch(
        { proxy: parseProxyUrl(`http://relay:s3cret@127.0.0.1:${port}`) },
        { log },
      );
      await emit(subscribed);
      await until("the log", () => lines.join().includes("attempt.postponed"));
      await running.stop();
      expect(await attemptsOf(subscribed, 0)).toHaveLength(0);
      expect(await failuresOf(subscribed)).toBe(0);
      expect(lines.join()).not.toContain("s3cret");
      expect(lines.join()).not.toContain(Buffer.from("relay:s3cret").toString("base64"));
    }
    expect(receiver.accepted).toBe(0);
  });
});

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** The policy of a production dispatcher, except that it allows http, which these receivers speak. */
const PUBLIC_ONLY: EgressPolicy = { allowHttp: true, allowedNetworks: [] };

/** Delays so long that a test sees only the first attempt. */
const NO_RETRY = [60_000, 60_000, 60_000];

const AT_ONCE = [1, 1, 1];

const box = createTestBox();

const started: { stop(): Promise<void> | void }[] = [];

afterEach(async () => {
  for (const one of started.splice(0)) await one.stop();
});

function dispatch(
  http: Partial<HttpClientOptions> = {},
  options: { retryDelaysMs?: readonly number[]; log?: Log } = {},
): RunningDispatcher {
  const { db } = database;
  const running = startDispatcher({
    db,
    box,
    schedule: stores.schedule,
    retryDelaysMs: NO_RETRY,
    http: { timeoutMs: 60_000, bodyMs: 60_000, ...http },
    ...options,
  });
  started.push(running);
  return running;
}

async function receive(answer: RawAnswer): Promise<RawReceiver> {
  const receiver = await startRawReceiver(answer);
  started.push(receiver);
  return receiver;
}

interface Subscribed {
  readonly tenant: Tenant;
  readonly id: string;
}

async function subscribe(url: string): Promise<Subscribed> {
  const tenant = await insertTenant(database.db);
  const { partnerId } = tenant;
  const { subscriptionId } = await insertSubscription({ db: database.db, box }, { partnerId, url });
  return { tenant, id: subscriptionId };
}

async function emit(...subscribed: Subscribed[]): Promise<void> {
  const wakes = [];
  for (const { tenant } of subscribed)
    wakes.push(...(await record(database.db, [reviewAction(tenant)])));
  await stores.schedule.wake(wakes);
}

interface Attempt {
  readonly outcome: string;
  readonly status_code: number | null;
  readonly error_code: string | null;
  readonly response_headers: Record<string, string> | null;
  readonly response_excerpt: string | null;
  readonly response_truncated: boolean;
  readonly resent: boolean;
}

async function attemptsOf({ id }: Subscribed, atLeast = 1): Promise<Attempt[]> {
  let found: Attempt[] = [];
  await until(`${atLeast} attempt(s)`, async () => {
    found = await database.db.sql<Attempt[]>`
      select outcome, status_code, error_code, response_headers, response_excerpt, response_truncated, resent
        from delivery_attempts where subscription_id = ${id} order by id`;
    return found.length >= atLeast;
  });
  return found;
}

/** Delivers one event, and returns the record of its first attempt. */
async function firstAttempt(url: string): Promise<Attempt> {
  const subscribed = await subscribe(url);
  await emit(subscribed);
  const [attempt] = await attemptsOf(subscribed);
  if (attempt === undefined) throw new Error("no attempt");
  return attempt;
}

async function failuresOf({ id }: Subscribed): Promise<number | undefined> {
  const [row] = await database.db.sql<{ failures: number }[]>`
    select consecutive_failure_count as failures from webhook_subscriptions where id = ${id}`;
  return row?.failures;
}

function giving(...addresses: string[]): Lookup {
  return async () => addresses;
}

/** Returns the fields of a record for a failure without a response. */
function unanswered(errorCode: string) {
  return {
    outcome: "retry",
    status_code: null,
    error_code: errorCode,
    response_headers: null,
    response_excerpt: null,
    response_truncated: false,
  };
}

/** Returns the fields of a record for a delivery that was accepted by its headers. */
function accepted(excerpt: string, truncated: boolean) {
  return {
    outcome: "delivered",
    status_code: 200,
    error_code: null,
    response_excerpt: excerpt,
    response_truncated: truncated,
  };
}
