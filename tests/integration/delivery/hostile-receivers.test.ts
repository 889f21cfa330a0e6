import { describe, expect, test } from "bun:test";

import type { HttpClientOptions } from "../../../dispatcher/http/pool.ts";
import { checkNewWebhookUrl, type EgressPolicy } from "../../../src/lib/egress.ts";
import type { Lookup } from "../../../src/lib/name-resolver.ts";
import type { Log } from "../../../src/lib/log.ts";
import { deliveries, type RecordedAttempt, type Subscribed } from "../../support/deliveries.ts";
import { silentLog } from "../../support/dispatch.ts";
import { startRawReceiver, type RawAnswer } from "../../support/network/raw-receiver.ts";
import { until } from "../../support/network/receiver.ts";

// What the record of an attempt keeps of a response. tests/integration/delivery/deliver.test.ts has the responses
// themselves.

const { dispatcher, ending, subscribe, emit, stateOf, ...read } = deliveries();

test("an address that is not public is blocked at every attempt although the name was public at creation, and counts as one failure", async () => {
  const details: unknown[] = [];
  const info: Log["info"] = (event, fields) =>
    void (event === "attempt.finished" && details.push(fields?.["detail"]));
  const receiver = await receive(OK);
  const url = `http://rebind.test:${receiver.port}/hook`;
  const check = await checkNewWebhookUrl(url, PUBLIC_ONLY, { lookup: giving("93.184.216.34") });
  expect(check.kind).toBe("target");
  const subscribed = await subscribe(url);
  dispatch(
    { policy: PUBLIC_ONLY, lookup: giving("127.0.0.1") },
    { retryDelaysMs: [1, 1, 1], log: { ...silentLog, info } },
  );
  await emit(subscribed);
  const attempts = await attemptsOf(subscribed, 4);
  for (const attempt of attempts.slice(0, 3))
    expect(attempt).toMatchObject(unanswered("blocked_address"));
  expect(attempts[3]).toMatchObject({ ...unanswered("blocked_address"), outcome: "failed" });
  expect(await stateOf(subscribed.id)).toMatchObject({ failures: 1 });
  expect(receiver.accepted).toBe(0);
  await until("the log", () => details.length === 4);
  expect(details).toEqual(
    Array.from({ length: 4 }, () => expect.stringMatching(/^127\.0\.0\.1 is/)),
  );
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
    [Buffer.from("x".repeat(4_097)), "x".repeat(4_096)],
    [Buffer.from("\\N"), "\\N"],
    [Buffer.from("NULL"), "NULL"],
    [Buffer.from("{},\"'\\;--\t\r\n"), "{},\"'\\;--\t\r\n"],
  ];

  test("is recorded in a readable form, and does not block other records of the same commit", async () => {
    const warnings: unknown[] = [];
    const log: Log = { ...silentLog, warn: (event, fields) => void warnings.push([event, fields]) };
    const all = await Promise.all(
      BODIES.map(async ([body, excerpt]) => {
        const head = `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`;
        const { url } = await receive(Buffer.concat([Buffer.from(head), body]));
        return { ...(await subscribe(url)), excerpt, isCut: body.length > 4_096 };
      }),
    );
    dispatch({}, { log });
    await Promise.all(all.map((one) => emit(one)));
    for (const one of all)
      expect(await attemptsOf(one)).toMatchObject([accepted(one.excerpt, one.isCut)]);
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
    await Promise.all(all.map((one) => emit(one)));
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

test("a connection that the receiver closed when the request arrived is replaced by a new one, within one recorded attempt", async () => {
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

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** The policy of a production dispatcher, except that it allows http, which these receivers speak. */
const PUBLIC_ONLY: EgressPolicy = { allowHttp: true, allowedNetworks: [] };

/** Delays so long that a test sees only the first attempt. */
const NO_RETRY = [60_000, 60_000, 60_000];

function dispatch(
  http: Partial<HttpClientOptions> = {},
  options: { retryDelaysMs?: readonly number[]; log?: Log } = {},
): void {
  const limits = { timeoutMs: 60_000, bodyMs: 60_000, ...http };
  dispatcher({ retryDelaysMs: NO_RETRY, http: limits, ...options });
}

const receive = async (answer: RawAnswer) => ending(await startRawReceiver(answer));

async function attemptsOf({ id }: Subscribed, atLeast = 1): Promise<RecordedAttempt[]> {
  let found: RecordedAttempt[] = [];
  await until(`${atLeast} attempt(s)`, async () => {
    found = await read.attemptsOf(id);
    return found.length >= atLeast;
  });
  return found;
}

/** Delivers one event, and returns the record of its first attempt. */
async function firstAttempt(url: string): Promise<RecordedAttempt> {
  const subscribed = await subscribe(url);
  await emit(subscribed);
  const [attempt] = await attemptsOf(subscribed);
  if (attempt === undefined) throw new Error("no attempt");
  return attempt;
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
