import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  type AddressInfo,
  createServer as createPlainServer,
  type Server as PlainServer,
  type Socket,
} from "node:net";
import { createServer, type Server } from "node:https";
import type { TlsOptions } from "node:tls";

import {
  checkedRequest,
  OutboundError,
  type CheckedHttpOptions,
} from "../../../src/lib/checked-http.ts";
import { parseNetworks } from "../../../src/lib/egress.ts";
import { CA, EXPIRED, HOOK_TEST } from "../../support/network/certificates.ts";
import { startProxy } from "../../support/network/proxy.ts";
import { until } from "../../support/network/receiver.ts";
import {
  ROOT,
  serverOf,
  VALID_CHAIN,
  WORTHLESS,
} from "../../support/network/worthless-certificates.ts";
import { fixture } from "../../support/fixture.ts";

describe("a checked request", () => {
  test("goes to the checked address under the name's own Host and certificate", async () => {
    const request = { url: at("/?a=b"), method: "POST", headers: {}, body: "the body" } as const;
    expect(await checkedRequest(request, options)).toEqual({ status: 200, body: "the body" });
    expect(seen.at(-1)).toBe(`POST hook.test:${portOf(server)} /?a=b`);
  });

  test("looks the name up once, so that a second answer changes nothing", async () => {
    let asked = 0;
    const lookup = async () => (asked++ === 0 ? ["127.0.0.1"] : ["10.0.0.1"]);
    expect((await ask(at("/exact"), { lookup })).status).toBe(200);
    expect(asked).toBe(1);
  });

  test("is rejected if one address of the name is not permitted", async () => {
    for (const addresses of [["10.0.0.1"], ["127.0.0.1", "169.254.169.254"], ["::ffff:127.0.0.1"]])
      await expectFault(ask(at("/"), { lookup: async () => addresses }), "blocked_address");
    const policy = { allowHttp: false, allowedNetworks: [] };
    await expectFault(ask(at("/"), { policy }), "blocked_address");
    await expectFault(ask("http://hook.test/", { policy }), "invalid_url");
    await expectFault(ask("https://127.0.0.1/", { policy }), "blocked_address");
    await expectFault(ask("https://[::1]/", { policy }), "blocked_address");
    await expectFault(ask("https://localhost/", { policy }), "blocked_address");
    await expectFault(ask("file:///etc/passwd"), "invalid_url");
  });

  test("tries the next address if one refuses the connection", async () => {
    const lookup = async () => ["127.0.0.9", "127.0.0.1"];
    expect((await ask(at("/exact"), { lookup })).status).toBe(200);
  });

  test("rejects a certificate for another name, of another authority or expired", async () => {
    await expectFault(ask(at("/", "other.test")), "connect");
    await expectFault(ask(at("/"), { ca: [] }), "connect");
    await expectFault(ask(`https://hook.test:${portOf(expired)}/`), "connect");
  });

  const WHOLE = serverOf(VALID_CHAIN);
  const OLD: TlsOptions = { ...WHOLE, minVersion: "TLSv1", maxVersion: "TLSv1.1" };
  test.each<[string, TlsOptions, accepted: boolean]>([
    ...Object.entries(WORTHLESS).map(([name, cert]): [string, TlsOptions, boolean] => [
      name,
      serverOf(cert),
      false,
    ]),
    ["over TLS 1.1", OLD, false],
    ["with its whole chain", WHOLE, true],
  ])("judges a certificate %s, directly and through a proxy", async (_, tls, accepted) => {
    const one = createServer(tls, (_request, response) => response.end("received"));
    await listen(one);
    const relay = await startProxy();
    const proxy = { host: "127.0.0.1", port: relay.port, authorization: undefined };
    for (const over of [{ ca: [ROOT] }, { ca: [ROOT], proxy }]) {
      const asked = ask(`https://hook.test:${portOf(one)}/`, over);
      if (accepted) expect((await asked).body).toBe("received");
      else await expectFault(asked, "connect");
    }
    relay.stop();
    one.close();
  });

  test("follows no redirect", async () => {
    expect((await ask(at("/away"))).status).toBe(302);
    expect(seen.at(-1)).toEndWith("/away");
  });

  test("accepts a response of the maximum size and rejects one byte more", async () => {
    expect((await ask(at("/exact"))).body).toHaveLength(MAX_BYTES);
    await expectFault(ask(at("/huge")), "too_large");
  });

  test("ends at its deadline in any phase", async () => {
    const short = { timeoutMs: 100 };
    await expectFault(ask(at("/slow"), short), "timeout");
    await expectFault(ask(`http://hook.test:${portOf(silent)}/`, short), "timeout");
    await expectFault(ask(`https://hook.test:${portOf(silent)}/`, short), "timeout");
    await expectFault(ask(at("/"), { ...short, lookup: () => new Promise(() => {}) }), "timeout");
  });

  test("reports a failed look-up and a name without an address as `dns`", async () => {
    const lookup = () => Promise.reject(new Error("ENOTFOUND"));
    await expectFault(ask(at("/"), { lookup }), "dns");
    await expectFault(ask(at("/"), { lookup: async () => [] }), "dns");
  });
});

describe("a checked request through the operator's proxy", () => {
  test("asks the proxy for the checked address, and keeps the name for TLS and Host", async () => {
    const relay = await startProxy();
    const proxy = { host: "127.0.0.1", port: relay.port, authorization: "Basic eDp5" };
    const request = { url: at("/"), method: "POST", headers: {}, body: "through" } as const;
    const answer = await checkedRequest(request, { ...options, proxy });
    expect(answer).toEqual({ status: 200, body: "through" });
    expect(relay.authorities).toEqual([`127.0.0.1:${portOf(server)}`]);
    expect(relay.requests[0]).toContain("\r\nProxy-Authorization: Basic eDp5\r\n");
    expect(seen.at(-1)).toBe(`POST hook.test:${portOf(server)} /`);
    await expectFault(ask(at("/", "other.test"), { proxy }), "connect");
    await expectFault(ask(at("/huge"), { proxy }), "too_large");
    await expectFault(ask(at("/slow"), { proxy, timeoutMs: 100 }), "timeout");
    const asked = relay.authorities.length;
    const lookup = async () => ["10.0.0.1"];
    await expectFault(ask(at("/"), { proxy, lookup }), "blocked_address");
    expect(relay.authorities).toHaveLength(asked);
    relay.stop();
  });

  test.each<[does: string, answer: string | ((client: Socket) => void)]>([
    ["refuses", "HTTP/1.1 403 Forbidden\r\n\r\n"],
    ["requires authentication", "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n"],
    ["does not reach the target", "HTTP/1.1 502 Bad Gateway\r\n\r\n"],
    ["redirects", "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n"],
    ["uses another protocol", "SSH-2.0-OpenSSH\r\n\r\n"],
    [
      "sends data for the server",
      "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ],
    ["sends an endless head", (client) => void client.write("X: y\r\n".repeat(200_000))],
    ["closes", (client) => void client.end()],
    ["resets", (client) => void client.resetAndDestroy()],
  ])("fails like a connection when it %s", async (_, answer) => {
    const relay = await startProxy(() => answer);
    const proxy = { host: "127.0.0.1", port: relay.port, authorization: undefined };
    await expectFault(ask(at("/"), { proxy }), "connect");
    await until("the proxy is left", () => relay.connections.size === 0);
    relay.stop();
  });

  test("fails as `connect` if the proxy is unreachable, and at the deadline if it is silent", async () => {
    const mute = await startProxy(() => () => {});
    const proxy = { host: "127.0.0.1", port: mute.port, authorization: undefined };
    await expectFault(ask(at("/"), { proxy: { ...proxy, port: 1 } }), "connect");
    await expectFault(ask(at("/"), { proxy, timeoutMs: 100 }), "timeout");
    mute.stop();
  });
});

const server = fixture(() =>
  createServer(HOOK_TEST, (request, response) => {
    seen.push(`${request.method} ${request.headers.host} ${request.url}`);
    if (request.url === "/exact") response.end("x".repeat(MAX_BYTES));
    else if (request.url === "/huge") response.end("x".repeat(MAX_BYTES + 1));
    else if (request.url === "/slow") response.write("x");
    else if (request.url === "/away") response.writeHead(302, { Location: "/exact" }).end();
    else request.pipe(response);
  }),
);
const expired = fixture(() => createServer(EXPIRED, (_request, response) => response.end()));
const silent = fixture(() => createPlainServer(() => {}));

const MAX_BYTES = 1024;
const seen: string[] = [];

const loopback = { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.0/8") };

const options: CheckedHttpOptions = {
  policy: loopback,
  ca: [CA],
  lookup: async () => ["127.0.0.1"],
  timeoutMs: 5_000,
  maxBytes: MAX_BYTES,
};

const portOf = (one: Server | PlainServer) => (one.address() as AddressInfo).port;

const listen = (one: Server | PlainServer) =>
  new Promise<void>((resolve) => one.listen(0, "127.0.0.1", resolve));

beforeAll(async () => {
  await Promise.all([server, expired, silent].map(listen));
});

afterAll(async () => {
  server.closeAllConnections();
  for (const one of [server, expired, silent]) one.close();
});

const ask = (url: string, over: Partial<CheckedHttpOptions> = {}) =>
  checkedRequest({ url, method: "GET", headers: {} }, { ...options, ...over });

const at = (path: string, host = "hook.test") => `https://${host}:${portOf(server)}${path}`;

async function expectFault(asked: Promise<unknown>, code: OutboundError["code"]): Promise<void> {
  const error: unknown = await asked.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(OutboundError);
  expect((error as OutboundError).code).toBe(code);
}
