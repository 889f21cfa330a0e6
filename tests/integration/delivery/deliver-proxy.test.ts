import { describe, expect, test } from "bun:test";
import type { Socket } from "node:net";
import type { HttpClientOptions } from "../../../dispatcher/http/pool.ts";
import { parseProxyUrl } from "../../../src/lib/egress-proxy.ts";
import { parseNetworks } from "../../../src/lib/egress.ts";
import { CA, EXPIRED, HOOK_TEST, LOOPBACK_ADDRESSES } from "../../support/network/certificates.ts";
import { directDeliveries, giving, message, OK } from "../../support/network/direct-deliveries.ts";
import { type TestProxy, tunnel } from "../../support/network/proxy.ts";
import { until } from "../../support/network/receiver.ts";

/** Excludes 127.0.0.1, the address of the proxy, which the policy does not apply to. */
const POLICY = { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.2,127.0.0.3,::1") };

const { proxied, receive, ...given } = directDeliveries(
  { policy: POLICY, ca: [CA], lookup: giving("127.0.0.2") },
  "127.0.0.2",
);

describe("a delivery through the proxy", () => {
  test("goes to the checked address, with the host name in Host and in TLS, through one kept tunnel", async () => {
    const proxy = await proxied();
    const plain = await receive();
    const secure = await receive(OK, { tls: HOOK_TEST });
    const { client, deliver } = through(proxy);
    for (let nth = 0; nth < 3; nth++)
      for (const url of [`http://hook.test:${plain.port}/a`, `https://hook.test:${secure.port}/b`])
        expect(await deliver(message(url))).toMatchObject({ kind: "accepted", resent: false });
    expect(proxy.requests).toEqual([
      `CONNECT 127.0.0.2:${plain.port} HTTP/1.1\r\nHost: 127.0.0.2:${plain.port}\r\n\r\n`,
      `CONNECT 127.0.0.2:${secure.port} HTTP/1.1\r\nHost: 127.0.0.2:${secure.port}\r\n\r\n`,
    ]);
    expect(plain.requests[0]).toStartWith(
      `POST /a HTTP/1.1\r\nHost: hook.test:${plain.port}\r\nContent-Type`,
    );
    expect(plain.requests[0]).not.toContain("Proxy");
    expect(secure.serverNames).toEqual(["hook.test"]);
    expect([plain.accepted, secure.accepted]).toEqual([1, 1]);
    expect(client.counts()).toEqual({ open: 2, idle: 2 });
  });

  test("sends an IPv6 address in brackets, and no TLS server name if the URL has an address", async () => {
    const proxy = await proxied();
    const tls = LOOPBACK_ADDRESSES;
    const six = await receive(OK, { address: "::1", tls });
    expect(await through(proxy).deliver(message(six.url))).toMatchObject({ kind: "accepted" });
    expect(proxy.authorities).toEqual([`[::1]:${six.port}`]);
    expect(six.serverNames).toEqual([false]);
    expect(six.requests[0]).toContain(`\r\nHost: [::1]:${six.port}\r\n`);
  });

  test("sends the user and password of the setting only to the proxy", async () => {
    const proxy = await proxied();
    const receiver = await receive();
    const { deliver } = start(`http://re%6Cay:${PASSWORD}@localhost:${proxy.port}`);
    expect(await deliver(message(`http://hook.test:${receiver.port}/`))).toMatchObject({
      kind: "accepted",
    });
    expect(proxy.requests[0]).toContain(`\r\nProxy-Authorization: Basic ${CREDENTIALS}\r\n\r\n`);
    expect(receiver.requests[0]).not.toContain(CREDENTIALS);
  });

  test("carries a body of 1 MB whole, over TLS", async () => {
    const proxy = await proxied();
    const body = "Zoë🦊".repeat(100_000);
    const receiver = await receive(OK, { tls: HOOK_TEST });
    const { deliver } = through(proxy);
    const outcome = await deliver(message(`https://hook.test:${receiver.port}/`, body));
    expect(outcome).toMatchObject({ kind: "accepted" });
    const [, sent = ""] = (receiver.requests[0] ?? "").split("\r\n\r\n");
    expect(Buffer.from(sent, "latin1").toString() === body).toBe(true);
  });

  test("has its addresses checked before the proxy is contacted", async () => {
    const proxy = await proxied();
    for (const [host, lookup] of [
      ["hook.test", giving("127.0.0.2", "169.254.169.254")],
      ["hook.test", giving("127.0.0.1")],
      ["127.0.0.1", giving()],
    ] as const) {
      const { deliver } = through(proxy, { lookup });
      expect(await deliver(message(`http://${host}/`))).toMatchObject({
        errorCode: "blocked_address",
      });
    }
    const unknown = through(proxy, { lookup: giving() });
    expect(await unknown.deliver(message("http://hook.test/"))).toMatchObject({ errorCode: "dns" });
    expect(proxy.requests).toEqual([]);
  });

  test("accepts every valid response to CONNECT: interim responses, any 2xx, framing headers", async () => {
    for (const established of [
      "HTTP/1.0 200 OK\r\n\r\n",
      "HTTP/1.1 299\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Wait\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    ]) {
      const proxy = await proxied(
        (authority) => (client) => tunnel(client, authority, established),
      );
      const receiver = await receive();
      const { deliver } = through(proxy);
      expect(await deliver(message(`http://hook.test:${receiver.port}/`))).toMatchObject({
        kind: "accepted",
      });
    }
  });

  test("takes its outcome only from the receiver: its status, its certificate, its reset", async () => {
    const proxy = await proxied();
    const { deliver } = through(proxy);
    const busy = await receive("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    expect(await deliver(message(`http://hook.test:${busy.port}/`))).toMatchObject({
      kind: "rejected",
      errorCode: "http_status",
      statusCode: 503,
    });
    const expired = await receive(OK, { tls: EXPIRED });
    expect(await deliver(message(`https://hook.test:${expired.port}/`))).toMatchObject({
      errorCode: "tls",
      detail: "CERT_HAS_EXPIRED: certificate has expired",
    });
    const addressed = await receive(OK, { tls: LOOPBACK_ADDRESSES });
    expect(await deliver(message(`https://127.0.0.2:${addressed.port}/`))).toMatchObject({
      errorCode: "tls",
    });
    const resetting = await receive((socket) => void socket.resetAndDestroy());
    expect(await deliver(message(`http://hook.test:${resetting.port}/`))).toMatchObject({
      errorCode: "reset",
      resent: false,
    });
    const silent = await receive("");
    const { deliver: inHaste } = through(proxy, { timeoutMs: 400 });
    expect(await inHaste(message(`http://hook.test:${silent.port}/`))).toMatchObject({
      errorCode: "timeout",
      detail: "no answer before the deadline",
    });
    const { deliver: withBadName } = through(proxy);
    expect(await withBadName(message(`https://-.test:${expired.port}/`))).toMatchObject({
      kind: "failed",
    });
  });

  test("is sent again through a new tunnel if a kept one closes without a response", async () => {
    const proxy = await proxied();
    const receiver = await receive((socket, _request, nth) => {
      if (nth === 2) socket.destroy();
      else socket.write(OK);
    });
    const { deliver } = through(proxy);
    const url = `http://hook.test:${receiver.port}/`;
    expect(await deliver(message(url))).toMatchObject({ resent: false });
    expect(await deliver(message(url))).toMatchObject({ kind: "accepted", resent: true });
    expect(proxy.requests).toHaveLength(2);
  });
});

describe("a proxy that", () => {
  const headOf = (bytes: number) =>
    "HTTP/1.1 200 OK\r\nX: \r\n\r\n".replace("X: ", `X: ${"x".repeat(bytes - 24)}`);

  const ANSWERS: [does: string, answer: string | ((client: Socket) => void), detail: string][] = [
    ["wants a login", "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n", "with 407"],
    ["forbids", "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", "with 403"],
    ["fails", "HTTP/1.1 500 Oops\r\n\r\n", "with 500"],
    ["redirects", "HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n", "with 302"],
    ["says that we are gone", "HTTP/1.1 410 Gone\r\n\r\n", "with 410"],
    ["switches protocols", "HTTP/1.1 101 Switching\r\n\r\n", "switches protocols"],
    ["speaks for the receiver", `HTTP/1.1 200 OK\r\n\r\n${OK}`, "more than its response"],
    ["talks something else", "SSH-2.0-OpenSSH\r\n\r\n", "status line"],
    ["speaks HTTP/2", "HTTP/2 200\r\n\r\n", "status line"],
    ["ends lines without CR", "HTTP/1.1 200 OK\n\n", "without CR"],
    ["has too long headers", headOf(16_385), "16384 bytes"],
    ["floods", (client) => void client.write("X: y\r\n".repeat(5000)), "16384 bytes"],
    ["has too many heads", "HTTP/1.1 100 C\r\n\r\n".repeat(1000), "16384 bytes"],
    ["closes", (client) => void client.end(), "the proxy closed the connection"],
    ["closes midway", (client) => void client.end("HTTP/1.1 200"), "the proxy closed"],
    ["resets", (client) => void client.resetAndDestroy(), ""],
  ];

  test.each(ANSWERS)("%s is not taken for the receiver", async (_, answer, detail) => {
    const proxy = await proxied(() => answer);
    const receiver = await receive();
    for (const scheme of ["http", "https"]) {
      const { client, deliver } = start(`http://relay:${PASSWORD}@127.0.0.1:${proxy.port}`);
      const outcome = await deliver(message(`${scheme}://hook.test:${receiver.port}/`));
      expect(outcome).toMatchObject({ kind: "unsent", resent: false });
      expect(JSON.stringify(outcome)).toContain(detail);
      for (const password of ["s3cr", CREDENTIALS])
        expect(JSON.stringify(outcome)).not.toContain(password);
      expect(client.counts().open).toBe(0);
    }
    expect(receiver.accepted).toBe(0);
    await until("the proxy is left", () => proxy.connections.size === 0);
  });

  test.each([502, 503, 504])("answers %d does not reach the receiver", async (status) => {
    const proxy = await proxied(() => `HTTP/1.1 ${status} No\r\n\r\n`);
    const outcome = await through(proxy).deliver(message("http://hook.test/"));
    expect(outcome).toMatchObject({ kind: "failed", errorCode: "connect", resent: false });
    expect(outcome).toHaveProperty("detail", `the proxy answered CONNECT with ${status}`);
    expect(outcome).not.toHaveProperty("statusCode");
  });

  test("has headers of 16 KiB is used", async () => {
    expect(headOf(16_384)).toHaveLength(16_384);
    const proxy = await proxied(
      (authority) => (client) => tunnel(client, authority, headOf(16_384)),
    );
    const receiver = await receive();
    const { deliver } = through(proxy);
    expect(await deliver(message(`http://hook.test:${receiver.port}/`))).toMatchObject({
      kind: "accepted",
    });
  });

  test("is not reachable by address or by name is reported", async () => {
    const receiver = await receive();
    // A label of 64 characters is invalid, so that the look-up fails without a DNS query.
    for (const host of ["127.0.0.1:1", `${"x".repeat(64)}.test:1`]) {
      const { client, deliver } = start(`http://relay:${PASSWORD}@${host}`);
      const outcome = await deliver(message(`http://hook.test:${receiver.port}/`));
      expect(outcome).toMatchObject({ kind: "unsent" });
      expect(JSON.stringify(outcome)).not.toContain("s3cr");
      expect(client.counts().open).toBe(0);
    }
    expect(receiver.accepted).toBe(0);
  });

  test("accepts no connection before the deadline is reported", async () => {
    // An address of a documentation network: packets to it are lost or rejected.
    const { client, deliver } = start("http://192.0.2.1:3128", { timeoutMs: 150 });
    expect(await deliver(message("http://hook.test/"))).toMatchObject({ kind: "unsent" });
    expect(client.counts().open).toBe(0);
  });

  test("never answers, or drips, costs no more than the deadline", async () => {
    for (const answer of [
      () => {},
      (client: Socket) => {
        const drip = setInterval(() => client.write("HTTP/1.1 100 C\r\n\r\n"), 20);
        client.on("close", () => clearInterval(drip));
      },
    ]) {
      const proxy = await proxied(() => answer);
      const { client, deliver } = through(proxy, { timeoutMs: 150 });
      expect(await deliver(message("http://hook.test/"))).toMatchObject({
        errorCode: "timeout",
        detail: "no tunnel through the proxy before the deadline",
      });
      expect(client.counts().open).toBe(0);
      await until("the proxy is left", () => proxy.connections.size === 0);
    }
  });
});

describe("several addresses behind a proxy", () => {
  const lookup = giving("127.0.0.3", "127.0.0.2");

  test("are tried in turn if it cannot reach one, or takes too long", async () => {
    const receiver = await receive();
    for (const first of [undefined, "HTTP/1.1 504 T\r\n\r\n", () => {}]) {
      const proxy = await proxied((authority) =>
        authority.startsWith("127.0.0.3") ? first : undefined,
      );
      const { deliver } = through(proxy, { lookup, addressMs: 80 });
      expect(await deliver(message(`http://hook.test:${receiver.port}/`))).toMatchObject({
        kind: "accepted",
      });
      expect(proxy.authorities).toEqual([
        `127.0.0.3:${receiver.port}`,
        `127.0.0.2:${receiver.port}`,
      ]);
    }
  });

  test("are not tried if it rejects the client", async () => {
    for (const status of [403, 407, 429, 500]) {
      const proxy = await proxied(() => `HTTP/1.1 ${status} No\r\n\r\n`);
      const { deliver } = through(proxy, { lookup });
      expect(await deliver(message("http://hook.test/"))).toMatchObject({ kind: "unsent" });
      expect(proxy.authorities).toHaveLength(1);
    }
  });
});

test("a shutdown aborts the request for a tunnel", async () => {
  const proxy = await proxied(() => () => {});
  const { client, deliver } = through(proxy);
  let breakOff = () => {};
  const abortable = (by: () => void) => (breakOff = by);
  const aborted = deliver(message("http://hook.test/"), { abortable });
  await until("it asks", () => proxy.requests.length === 1);
  breakOff();
  expect(await aborted).toMatchObject({ kind: "withheld" });
  expect(client.counts().open).toBe(0);
  await until("the proxy is left", () => proxy.connections.size === 0);
});

const PASSWORD = "s3cr%3At%2Fü";
const CREDENTIALS = Buffer.from("relay:s3cr:t/ü").toString("base64");

const start = (proxyUrl: string, options: Partial<HttpClientOptions> = {}) =>
  given.start({ proxy: parseProxyUrl(proxyUrl), ...options });

const through = (proxy: TestProxy, options?: Partial<HttpClientOptions>) =>
  start(`http://127.0.0.1:${proxy.port}`, options);
