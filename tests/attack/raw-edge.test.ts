import { afterAll, describe, expect, test } from "bun:test";

import { startAttackedApi } from "../support/processes/attacked-api.ts";
import { requestText, sendRaw } from "../support/network/raw-http.ts";

/* Raw bytes to the socket of the API process, without an HTTP library that would refuse to send malformed requests. */

const { api, stop } = await startAttackedApi({ LOG_LEVEL: "debug" });

describe("framing that two servers could read differently", () => {
  const body = '{"email":"a","password":"b"}';
  const framed = (lines: string, sent: string) => requestText(LOGIN, JSON_TYPE + lines, sent);
  const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

  test.each(
    Object.entries({
      "a length and chunks": framed(
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "0\r\n\r\n",
      ),
      "chunks and a length": framed(
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "0\r\n\r\n",
      ),
      "two lengths": framed("Content-Length: 0\r\nContent-Length: 5\r\n", ""),
      "a negative length": framed("Content-Length: -1\r\n", ""),
      "a length of twenty digits": framed("Content-Length: 18446744073709551616\r\n", ""),
      "another coding": framed("Transfer-Encoding: xchunked\r\n", chunks),
      "chunked twice": framed(
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        chunks,
      ),
      "identity after chunked": framed("Transfer-Encoding: chunked, identity\r\n", chunks),
      "a coding behind a vertical tab": framed("Transfer-Encoding:\x0bchunked\r\n", chunks),
      "a blank before the colon": framed("Transfer-Encoding : chunked\r\n", chunks),
      "a folded coding": framed("Transfer-Encoding:\r\n chunked\r\n", chunks),
      "a bare CR": framed("X: a\rContent-Length: 5\r\n", ""),
      "a NUL": framed("X: a\0b\r\n", ""),
      "a line without a colon": framed("Content-Length\r\n", ""),
      "a name with a blank": framed("Content Length: 5\r\n", ""),
      "lines that end in LF alone": framed("", "").replaceAll("\r\n", "\n"),
      "a chunk of a negative size": framed("Transfer-Encoding: chunked\r\n", "-1\r\n\r\n0\r\n\r\n"),
      "a chunk of seventeen digits": framed(
        "Transfer-Encoding: chunked\r\n",
        "10000000000000000\r\n",
      ),
      "a chunk with a prefixed size": framed(
        "Transfer-Encoding: chunked\r\n",
        `0x5\r\nabcde\r\n0\r\n\r\n`,
      ),
      "a chunk longer than its size": framed(
        "Transfer-Encoding: chunked\r\n",
        "1\r\nab\r\n0\r\n\r\n",
      ),
    }),
  )("is rejected, and the bytes behind it are not read as a request: %s", async (_, bytes) => {
    const { statuses, text, isClosed } = await sendRaw(api.root, bytes + HIDDEN);
    expect([bytes, statuses.length <= 1, isClosed]).toEqual([bytes, true, true]);
    for (const status of statuses) expect([400, 505]).toContain(status);
    expect(text).not.toContain("hidden");
  });

  test("is unambiguous where it is valid: a body is not read as the next request", async () => {
    const one = framed(`Content-Length: ${HIDDEN.length}\r\n`, HIDDEN);
    const two = framed(
      "Transfer-Encoding: chunked\r\n",
      `${HIDDEN.length.toString(16)};a=b\r\n${HIDDEN}\r\n0\r\n\r\n`,
    );
    const { statuses, text } = await sendRaw(
      api.root,
      one + two + requestText("GET /healthz HTTP/1.1"),
      { answers: 3 },
    );
    expect(statuses).toEqual([400, 400, 200]);
    expect(text).not.toContain("hidden");
  });
});

describe("a request head", () => {
  test.each([
    ["a path of 16,000 bytes", requestText(`GET /${"a".repeat(15_999)} HTTP/1.1`), 404],
    ["a path of 16,400 bytes", requestText(`GET /${"a".repeat(16_399)} HTTP/1.1`), 431],
    [
      "a header of 16,000 bytes",
      requestText("GET /x HTTP/1.1", `X: ${"a".repeat(16_000)}\r\n`),
      404,
    ],
    [
      "a header of 16,400 bytes",
      requestText("GET /x HTTP/1.1", `X: ${"a".repeat(16_400)}\r\n`),
      431,
    ],
    ["150 headers", requestText("GET /x HTTP/1.1", "X: a\r\n".repeat(149)), 404],
    ["200 headers", requestText("GET /x HTTP/1.1", "X: a\r\n".repeat(199)), 431],
    [
      "a body of over 128 MiB",
      requestText("POST /x HTTP/1.1", "Content-Length: 134217729\r\n"),
      413,
    ],
    ["version 1.0", requestText("GET /x HTTP/1.0"), 404],
    ["version 1.2", requestText("GET /x HTTP/1.2"), 505],
    ["version 2.0", requestText("GET /x HTTP/2.0"), 505],
    ["no version", requestText("GET /x"), 505],
  ])("with %s has the status of contract 2.5", async (_, bytes, status) => {
    const { statuses } = await sendRaw(api.root, bytes, { answers: 1 });
    expect(statuses).toEqual([status]);
  });
});

describe("a request line", () => {
  test.each(
    Object.entries({
      "of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "with two blanks": requestText("GET  /healthz HTTP/1.1"),
      "with a tab": requestText("GET\t/healthz HTTP/1.1"),
      "with a target without a slash": requestText("GET healthz HTTP/1.1"),
      "with an asterisk": requestText("OPTIONS * HTTP/1.1"),
      "in small letters": requestText("get /healthz HTTP/1.1"),
      "with an unknown method": requestText("FOO /healthz HTTP/1.1"),
      "with a NUL": requestText("GET /health\0z HTTP/1.1"),
      "of TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\0".repeat(64),
    }),
  )("%s ends the connection without an effect", async (_, bytes) => {
    const { statuses, isClosed, text } = await sendRaw(api.root, bytes + HIDDEN);
    expect([isClosed, statuses.length <= 1, text.includes("hidden")]).toEqual([true, true, false]);
    for (const status of statuses) expect([400, 414, 431, 505]).toContain(status);
  });

  // Bun's parser accepts only these methods, and closes the connection for any other.
  test.each(["PUT", "TRACE", "QUERY"])(
    "with the method %s gets 405 on a known path without that method, and 404 on an unknown path",
    async (method) => {
      for (const [path, status] of [
        ["/healthz", 405],
        ["/oauth/token", 405],
        ["/nowhere", 404],
      ] as const) {
        const { statuses, text } = await sendRaw(
          api.root,
          requestText(`${method} ${path} HTTP/1.1`),
          { answers: 1 },
        );
        expect([method, path, statuses]).toEqual([method, path, [status]]);
        if (status === 405) expect(text).toMatch(/\r\nallow: \w/i);
      }
    },
  );

  test.each([
    "/api/v1/logout",
    "/api/v1/sso/revoking-token",
    "/api/v1/auth/sso/redirect?email=a@b.example",
    "/api/v1/auth/sso/callback/01JWNB9PR0ZV8X2D3F4G5H6J7K?state=x",
    "/api/v1/auth/sso/exchange?code=x",
    "/oauth/authorize/sso?ticket=x",
  ])("with HEAD gets 405 where GET has an effect: %s", async (path) => {
    const { statuses } = await sendRaw(api.root, requestText(`HEAD ${path} HTTP/1.1`), {
      answers: 1,
      isHead: true,
    });
    expect(statuses).toEqual([405]);
  });
});

describe("a Host", () => {
  const PATHS = [
    "/healthz",
    "/dashboard",
    "/dashboard/keys",
    "/oauth/token",
    "/oauth/authorize?client_id=x",
    "/api/v1/auth/sso/exchange?code=x",
    "/api/v1/login",
    "/nowhere",
    "/.well-known/oauth-authorization-server",
  ];

  test.each([
    "",
    "a b",
    "a/b",
    "a@b",
    "a%00b",
    "a:",
    "a:65536",
    "[",
    "[::g]",
    "::1",
    "\xff",
    "a".repeat(256),
  ])("%p gets 400 on every path", async (host) => {
    for (const path of PATHS) {
      const { statuses, text } = await sendRaw(
        api.root,
        requestText(`GET ${path} HTTP/1.1`, `Host: ${host}\r\n`),
        { answers: 1 },
      );
      expect([host, path, statuses]).toEqual([host, path, [400]]);
      if (path.startsWith("/api")) expect(text).toContain('"invalid_host"');
    }
  });

  test.each([
    "a_b.example.",
    "[::1]",
    "a:65535",
    "[::ffff:1.2.3.4]:80",
    "a".repeat(255),
    // These hosts are valid in the header, although no URL may have them.
    "256.256.256.256",
  ])("%p is accepted, with and without an Origin", async (host) => {
    for (const origin of ["", "Origin: null\r\n", "Origin: https://app.example\r\n"])
      for (const [path, status] of [
        ["/healthz", 200],
        ["/oauth/token", 405],
        ["/api/v1/verify-token", 401],
      ] as const) {
        const sent = requestText(`GET ${path} HTTP/1.1`, `Host: ${host}\r\n${origin}`);
        const { statuses } = await sendRaw(api.root, sent, { answers: 1 });
        expect([host, origin, path, statuses]).toEqual([host, origin, path, [status]]);
      }
  });

  test("gets 400 if it occurs twice, even with the same value, or not at all", async () => {
    for (const headers of [
      "Host: a\r\nHost: b\r\n",
      "Host: a\r\nHost: a\r\n",
      "Host: a\r\nhost: a\r\n",
    ])
      for (const path of PATHS) {
        const { statuses } = await sendRaw(api.root, requestText(`GET ${path} HTTP/1.1`, headers), {
          answers: 1,
        });
        expect([headers, path, statuses]).toEqual([headers, path, [400]]);
      }
    for (const version of ["1.0", "1.1"]) {
      const { statuses } = await sendRaw(api.root, `GET /healthz HTTP/${version}\r\n\r\n`, {
        answers: 1,
      });
      expect(statuses).toEqual([400]);
    }
  });

  test("appears in no response: every URL in it begins with our own root", async () => {
    const evil = "evil.example";
    // The server builds the dashboard at the first request, so this one waits until it is there.
    await (await fetch(`${api.root}/dashboard/`)).text();
    for (const path of [
      ...PATHS,
      "/",
      "/openapi.json",
      "/docs",
      "/dashboard/",
      "/api/v1/auth/sso/redirect?email=a@b.example",
    ])
      for (const line of [
        `GET ${path} HTTP/1.1`,
        `GET http://${evil}${path} HTTP/1.1`,
        `POST ${path} HTTP/1.1`,
      ]) {
        const headers = `Host: ${evil}\r\nX-Forwarded-Host: ${evil}\r\nForwarded: host=${evil}\r\nConnection: close\r\nContent-Length: 0\r\n`;
        const { text } = await sendRaw(api.root, requestText(line, headers));
        expect([line, text.length > 0, text.includes(evil)]).toEqual([line, true, false]);
      }
  });
});

describe("a client that leaves", () => {
  const half = (path: string, type: string) =>
    requestText(`POST ${path} HTTP/1.1`, `Content-Type: ${type}\r\nContent-Length: 100\r\n`, "{");

  test("in the middle of its body, or sends an invalid chunk, causes no logged error", async () => {
    for (const [path, type] of [
      ["/api/v1/login", "application/json"],
      ["/oauth/token", "application/x-www-form-urlencoded"],
      ["/api/v1/providers/x/events", "application/json"],
      ["/api/v1/partner/webhooks", "application/json"],
    ] as const) {
      await sendRaw(api.root, half(path, type), { patienceMs: 50 });
      await sendRaw(
        api.root,
        requestText(
          `POST ${path} HTTP/1.1`,
          `Content-Type: ${type}\r\nTransfer-Encoding: chunked\r\n`,
          "zz\r\n",
        ),
      );
    }
    expect(
      (await sendRaw(api.root, requestText("GET /healthz HTTP/1.1"), { answers: 1 })).statuses,
    ).toEqual([200]);
    expect(api.said).not.toContain("request.failed");
  });
});

const LOGIN = "POST /api/v1/login HTTP/1.1";
const JSON_TYPE = "Content-Type: application/json\r\n";

afterAll(stop);

/** A request that an attacker smuggles behind another. A response to it proves that the framing was misread. */
const HIDDEN = requestText("GET /healthz HTTP/1.1", "X-Request-Id: hidden\r\n");
