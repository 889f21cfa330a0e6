import { describe, expect, test } from "bun:test";
import { createServer as createTcp, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { verify } from "@octokit/webhooks-methods";
import { hmacSha256Hex } from "../../../src/lib/secrets.ts";
import type { Lookup, LookupOptions } from "../../../src/lib/name-resolver.ts";
import { lacks, program } from "../../support/needs.ts";
import { directDeliveries, giving, message, OK } from "../../support/network/direct-deliveries.ts";
import { listen } from "../../support/network/raw-receiver.ts";
import { until } from "../../support/network/receiver.ts";

const { atEnd, start, receive } = directDeliveries();

describe("an answered delivery", () => {
  test("sends exactly the head and the signed bytes, and any 2xx accepts it", async () => {
    for (const status of ["200 OK", "202 Accepted", "204 No Content", "299 Odd"]) {
      const receiver = await receive(
        `HTTP/1.1 ${status}\r\nX-Seen: yes\r\nContent-Length: 0\r\n\r\n`,
      );
      const body = '{"reviewer":"Zoë 🦊"}';
      const signature = `sha256=${hmacSha256Hex("a".repeat(64), body)}`;
      const headers = { "X-SVC-Event": "webhook.test", "X-SVC-Signature": signature };
      const outcome = await start().deliver({ url: `${receiver.url}?k=1`, headers, body });
      expect(outcome).toMatchObject({
        kind: "accepted",
        statusCode: Number(status.slice(0, 3)),
        resent: false,
      });
      expect(outcome).toMatchObject({
        responseHeaders: { "x-seen": "yes" },
        responseTruncated: false,
      });
      const [head, sent = ""] = (receiver.requests[0] ?? "").split("\r\n\r\n");
      expect(head?.split("\r\n")).toEqual([
        "POST /hook?k=1 HTTP/1.1",
        `Host: 127.0.0.1:${receiver.port}`,
        "X-SVC-Event: webhook.test",
        `X-SVC-Signature: ${signature}`,
        `Content-Length: ${Buffer.byteLength(body)}`,
      ]);
      expect(await verify("a".repeat(64), Buffer.from(sent, "latin1").toString(), signature)).toBe(
        true,
      );
    }
  });

  test("is `gone` for a 410 and `rejected` for any other status", async () => {
    for (const [status, kind] of [
      [410, "gone"],
      [300, "rejected"],
      [304, "rejected"],
      [400, "rejected"],
      [500, "rejected"],
      [999, "rejected"],
    ] as const) {
      const receiver = await receive(`HTTP/1.1 ${status} X\r\nContent-Length: 0\r\n\r\n`);
      const outcome = await start().deliver(message(receiver.url));
      expect(outcome).toMatchObject({ kind, statusCode: status, errorCode: "http_status" });
    }
  });

  test("never follows a redirect, to the metadata service or back to itself", async () => {
    for (const location of ["http://169.254.169.254/latest/meta-data/", "/elsewhere"]) {
      const receiver = await receive(
        `HTTP/1.1 307 Moved\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`,
      );
      const outcome = await start().deliver(message(receiver.url));
      expect(outcome).toMatchObject({
        kind: "rejected",
        statusCode: 307,
        responseHeaders: { location },
      });
      expect(receiver.requests).toHaveLength(1);
    }
  });

  test("carries a whole body of 1 MB, as text and as bytes, to a receiver that starts to read late", async () => {
    const body = "Zoë🦊".repeat(100_000);
    const receiver = await receive(OK);
    const { deliver } = start();
    for (const sent of [body, new TextEncoder().encode(body)]) {
      expect(await deliver(message(receiver.url, sent))).toMatchObject({ kind: "accepted" });
      const got = receiver.requests.at(-1) ?? "";
      expect(
        Buffer.from(got.slice(got.indexOf("\r\n\r\n") + 4), "latin1").toString() === body,
      ).toBe(true);
    }
  });

  test("counts if the response comes before the request was read, and closes the connection", async () => {
    const server = createTcp((socket) => {
      socket.on("error", () => {});
      socket.pause();
      socket.write("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    });
    const port = await listen(server);
    atEnd(() => server.close());
    const { client, deliver } = start();
    const outcome = await deliver(message(`http://127.0.0.1:${port}/`, "x".repeat(16_000_000)));
    expect(outcome).toMatchObject({ kind: "rejected", statusCode: 413 });
    expect(client.counts()).toEqual({ open: 0, idle: 0 });
  });
});

describe("a receiver that is slow or endless", () => {
  test("fails with timeout when it never answers, and no connection is left", async () => {
    const receiver = await receive(NO_ANSWER);
    const { client, deliver } = start({ timeoutMs: 100 });
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, () => deliver(message(receiver.url))),
    );
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ kind: "failed", errorCode: "timeout" });
    expect(outcomes[0]?.durationMs).toBeGreaterThanOrEqual(95);
    expect(client.counts()).toEqual({ open: 0, idle: 0 });
    await until("the connection is closed", () => receiver.connections.size === 0);
  });

  test("is accepted within the deadline and fails beyond it", async () => {
    const receiver = await receive((socket) => void setTimeout(() => socket.write(OK), 150));
    expect(await start().deliver(message(receiver.url))).toMatchObject({
      kind: "accepted",
    });
    expect(await start({ timeoutMs: 60 }).deliver(message(receiver.url))).toMatchObject({
      errorCode: "timeout",
    });
  });

  test("fails with timeout if headers arrive byte by byte, although bytes always arrive", async () => {
    const receiver = await receive((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      const drip = setInterval(() => socket.write("X: y\r\n"), 10);
      socket.on("close", () => clearInterval(drip));
    });
    expect(await start({ timeoutMs: 150 }).deliver(message(receiver.url))).toMatchObject({
      errorCode: "timeout",
    });
  });

  test("fails with timeout when the look-up or the TLS handshake never ends", async () => {
    const named = start({ timeoutMs: 60, lookup: silent }).deliver(message("http://hook.test/"));
    expect(await named).toMatchObject({ kind: "failed", errorCode: "timeout" });
    const receiver = await receive(NO_ANSWER);
    const { client, deliver } = start({ timeoutMs: 60 });
    const outcome = await deliver(message(receiver.url.replace("http:", "https:")));
    expect(outcome).toMatchObject({ kind: "failed", errorCode: "timeout" });
    expect(client.counts().open).toBe(0);
  });

  test("is accepted by its headers if the body arrives byte by byte, and the body is cut", async () => {
    const receiver = await receive((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
      const drip = setInterval(() => socket.write("."), 10);
      socket.on("close", () => clearInterval(drip));
    });
    const { client, deliver } = start({ bodyMs: 150 });
    const outcome = await deliver(message(receiver.url));
    expect(outcome).toMatchObject({ kind: "accepted", responseTruncated: true });
    // The response announced 1,000 bytes.
    if (outcome.kind === "accepted") expect(outcome.responseExcerpt).toMatch(/^\.{0,999}$/);
    expect(outcome.durationMs).toBeGreaterThanOrEqual(145);
    expect(client.counts().open).toBe(0);
  });

  test("has its whole body kept if it ends within the limit", async () => {
    const receiver = await receive((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
      setTimeout(() => socket.write("ok"), 50);
    });
    const { client, deliver } = start();
    expect(await deliver(message(receiver.url))).toMatchObject({
      responseExcerpt: "ok",
      responseTruncated: false,
    });
    expect(client.counts()).toEqual({ open: 1, idle: 1 });
  });

  test("cannot exhaust memory with a flood or a gzip bomb", async () => {
    const bomb = gzipSync(new Uint8Array(32 * 1024 * 1024));
    const bombing = await receive((socket) => {
      socket.write(
        `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`,
      );
      socket.write(bomb);
    });
    const flooding = await receive((socket) => {
      socket.write("HTTP/1.1 500 Oops\r\n\r\n");
      const flood = setInterval(() => socket.write("x".repeat(100_000)), 1);
      socket.on("close", () => clearInterval(flood));
    });
    const { client, deliver } = start();
    const memory = process.memoryUsage.rss();
    const outcome = await deliver(message(bombing.url));
    expect(outcome).toMatchObject({ kind: "accepted", responseTruncated: true });
    if (outcome.kind === "accepted") expect(outcome.responseExcerpt).toHaveLength(4_096);
    expect(await deliver(message(flooding.url))).toMatchObject({
      kind: "rejected",
      responseTruncated: true,
    });
    expect(process.memoryUsage.rss() - memory).toBeLessThan(24 * 1024 * 1024);
    // The whole bomb is 32 KB of gzip, so that it was read to its end and the connection can be used again.
    expect(client.counts()).toEqual({ open: 1, idle: 1 });
  });
});

describe("a receiver that breaks off", () => {
  test("before a response fails with reset, closed or aborted, and the request is not sent again", async () => {
    for (const breakOff of [
      (socket: Socket) => void socket.end(),
      (socket: Socket) => void socket.resetAndDestroy(),
    ]) {
      const receiver = await receive(breakOff);
      const outcome = await start().deliver(message(receiver.url));
      expect(outcome).toMatchObject({ kind: "failed", errorCode: "reset", resent: false });
      expect(receiver.requests).toHaveLength(1);
    }
  });

  test("within its headers fails with reset", async () => {
    const receiver = await receive((socket) => void socket.end("HTTP/1.1 200 OK\r\nContent-"));
    expect(await start().deliver(message(receiver.url))).toMatchObject({ errorCode: "reset" });
  });

  test("within its body is accepted by its headers", async () => {
    const head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart";
    for (const breakOff of [
      (socket: Socket) => void socket.end(head),
      (socket: Socket) =>
        void socket.write(head, () => setTimeout(() => socket.resetAndDestroy(), 30)),
    ]) {
      const receiver = await receive(breakOff);
      const outcome = await start().deliver(message(receiver.url));
      expect(outcome).toMatchObject({
        kind: "accepted",
        responseExcerpt: "part",
        responseTruncated: true,
      });
    }
  });

  test("after a body without a length has completed it", async () => {
    const receiver = await receive((socket) => void socket.end("HTTP/1.1 200 OK\r\n\r\nall of it"));
    const outcome = await start().deliver(message(receiver.url));
    expect(outcome).toMatchObject({ responseExcerpt: "all of it", responseTruncated: false });
  });

  test("or does not speak HTTP fails with protocol", async () => {
    for (const answer of [
      "SSH-2.0-OpenSSH\r\n\r\n",
      "HTTP/1.1 200 OK\nA: b\n\n",
      "HTTP/1.1 101 Switch\r\n\r\n",
    ]) {
      const receiver = await receive(answer);
      expect(await start().deliver(message(receiver.url))).toMatchObject({ errorCode: "protocol" });
    }
  });

  test("in its chunks is accepted by its headers and not used again", async () => {
    const receiver = await receive(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nxyz\r\n",
    );
    const { client, deliver } = start();
    const outcome = await deliver(message(receiver.url));
    expect(outcome).toMatchObject({
      kind: "accepted",
      responseExcerpt: "ok",
      responseTruncated: true,
    });
    expect(client.counts().open).toBe(0);
  });
});

describe("a kept connection", () => {
  test("serves several deliveries, also with interim responses", async () => {
    const receiver = await receive(`HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${OK}`);
    const { client, deliver } = start();
    for (let nth = 0; nth < 20; nth++)
      expect(await deliver(message(receiver.url))).toMatchObject({
        kind: "accepted",
        resent: false,
      });
    expect(receiver.accepted).toBe(1);
    expect(client.counts()).toEqual({ open: 1, idle: 1 });
  });

  test("that closes without a response has its request sent again on a new one, as the outcome records", async () => {
    for (const die of [
      (socket: Socket) => void socket.end(),
      (socket: Socket) => void socket.resetAndDestroy(),
    ]) {
      const receiver = await receive((socket, _request, nth) => {
        if (nth === 2) die(socket);
        else socket.write(OK);
      });
      const { deliver } = start();
      expect(await deliver(message(receiver.url, "first"))).toMatchObject({ resent: false });
      expect(await deliver(message(receiver.url, "second"))).toMatchObject({
        kind: "accepted",
        resent: true,
      });
      expect(receiver.requests).toHaveLength(3);
      expect(receiver.requests[2]).toBe(receiver.requests[1] ?? "");
      expect(receiver.accepted).toBe(2);
    }
  });

  test("is replaced only once: a second close within the attempt is a reset", async () => {
    const receiver = await receive(
      (socket, _request, nth) => void (nth === 1 ? socket.write(OK) : socket.end()),
    );
    const { deliver } = start();
    await deliver(message(receiver.url));
    expect(await deliver(message(receiver.url))).toMatchObject({
      errorCode: "reset",
      resent: true,
    });
    expect(receiver.requests).toHaveLength(3);
  });

  test("that closes after the first byte of a response is not replaced", async () => {
    const receiver = await receive(
      (socket, _request, nth) => void (nth === 1 ? socket.write(OK) : socket.end("H")),
    );
    const { deliver } = start();
    await deliver(message(receiver.url));
    expect(await deliver(message(receiver.url))).toMatchObject({
      errorCode: "reset",
      resent: false,
    });
    expect(receiver.requests).toHaveLength(2);
  });

  test("that closes more than a second after the start is not replaced", async () => {
    const receiver = await receive((socket, _request, nth) => {
      if (nth === 1) socket.write(OK);
      else setTimeout(() => socket.end(), 1_100);
    });
    const { deliver } = start();
    await deliver(message(receiver.url));
    expect(await deliver(message(receiver.url))).toMatchObject({
      errorCode: "reset",
      resent: false,
    });
    expect(receiver.requests).toHaveLength(2);
  });

  test("that the receiver closes with a 408 counts as closed without a response", async () => {
    const goodbye = "HTTP/1.1 408 Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    const receiver = await receive((socket, _request, nth) => {
      if (nth === 2) socket.end(goodbye);
      else socket.write(OK);
    });
    const { deliver } = start();
    await deliver(message(receiver.url));
    expect(await deliver(message(receiver.url))).toMatchObject({ kind: "accepted", resent: true });
    const honest = await receive(goodbye);
    expect(await deliver(message(honest.url))).toMatchObject({ statusCode: 408, resent: false });
  });

  test("is not used in the last second before its receiver closes it", async () => {
    for (const [seconds, accepted] of [
      [1, 2],
      [60, 1],
    ] as const) {
      const answer = OK.replace("\r\n", `\r\nKeep-Alive: timeout=${seconds}, max=100\r\n`);
      const receiver = await receive(answer);
      const { deliver } = start();
      await deliver(message(receiver.url));
      await Bun.sleep(5);
      await deliver(message(receiver.url));
      expect(receiver.accepted).toBe(accepted);
    }
  });

  test("is closed if too many are idle, the longest idle first", async () => {
    const receivers = await Promise.all([receive(OK), receive(OK), receive(OK)]);
    const { client, deliver } = start({ maxIdle: 2 });
    for (const { url } of receivers) await deliver(message(url));
    expect(client.counts()).toEqual({ open: 2, idle: 2 });
    await until("the connection is closed", () => receivers[0].connections.size === 0);
    for (const { url } of receivers.slice(1)) await deliver(message(url));
    expect(receivers.map((one) => one.accepted)).toEqual([1, 1, 1]);
  });

  test("that the receiver closed while it idled is not tried", async () => {
    const receiver = await receive(OK);
    const { client, deliver } = start();
    await deliver(message(receiver.url));
    for (const socket of receiver.connections) socket.end();
    await until("the connection is closed", () => client.counts().open === 0);
    expect(await deliver(message(receiver.url))).toMatchObject({ kind: "accepted", resent: false });
    expect(receiver.accepted).toBe(2);
  });

  test("is closed if bytes arrive without a request", async () => {
    const receiver = await receive(OK);
    const { client, deliver } = start();
    await deliver(message(receiver.url));
    for (const socket of receiver.connections) socket.write(OK);
    await until("the connection is closed", () => client.counts().open === 0);
  });

  test("is not used after an answer with Connection: close, or with more bytes than its length", async () => {
    for (const answer of [
      OK.replace("\r\n", "\r\nConnection: close\r\n"),
      `${OK}more`,
      OK.replace("1.1", "1.0"),
    ]) {
      const receiver = await receive(answer);
      const { client, deliver } = start();
      expect(await deliver(message(receiver.url))).toMatchObject({
        kind: "accepted",
        responseExcerpt: "ok",
      });
      expect(client.counts().open).toBe(0);
    }
  });

  test("is used again within the idle time, not after it, and is then closed", async () => {
    const receiver = await receive(OK);
    const { client, deliver } = start({ idleMs: 2_000 });
    await deliver(message(receiver.url));
    await Bun.sleep(50);
    await deliver(message(receiver.url));
    expect(receiver.accepted).toBe(1);
    await until("the connection is closed", () => client.counts().open === 0);
    await deliver(message(receiver.url));
    expect(receiver.accepted).toBe(2);
  });

  test("that is too old is not used, even if it was never idle", async () => {
    const receiver = await receive(OK);
    const { deliver } = start({ maxConnectionAgeMs: 200 });
    const started = performance.now();
    while (receiver.accepted < 2 && performance.now() - started < 60_000) {
      expect(await deliver(message(receiver.url))).toMatchObject({ kind: "accepted" });
      await Bun.sleep(10);
    }
    expect(receiver.accepted).toBe(2);
  });

  test("is not shared between two names of one address, and its reuse needs no look-up", async () => {
    const receiver = await receive(OK);
    const asked: string[] = [];
    const lookup = async (host: string) => {
      asked.push(host);
      return ["127.0.0.1"];
    };
    const { deliver } = start({ lookup });
    for (const name of ["a.test", "b.test", "a.test", "b.test", "A.test."])
      await deliver(message(`http://${name}:${receiver.port}/`));
    expect(asked).toEqual(["a.test", "b.test"]);
    expect(receiver.accepted).toBe(2);
    expect(receiver.requests[0]).toContain(`\r\nHost: a.test:${receiver.port}\r\n`);
  });

  test("is opened for each concurrent delivery", async () => {
    const receiver = await receive(OK);
    const { client, deliver } = start();
    await Promise.all(Array.from({ length: 10 }, () => deliver(message(receiver.url))));
    expect(client.counts()).toEqual({ open: 10, idle: 10 });
    client.close();
    expect(client.counts()).toEqual({ open: 0, idle: 0 });
    await until("the connection is closed", () => receiver.connections.size === 0);
  });
});

describe("a request that may not be sent", () => {
  test("is withheld after its look-up, although it was allowed at its start", async () => {
    const receiver = await receive(OK);
    const { promise, resolve } = Promise.withResolvers<string[]>();
    const { client, deliver } = start({ lookup: () => promise });
    let mayLeave = true;
    const url = `http://hook.test:${receiver.port}/`;
    const delivery = deliver(message(url), { mayBegin: () => mayLeave });
    mayLeave = false;
    resolve(["127.0.0.1"]);
    expect(await delivery).toMatchObject({ kind: "withheld", resent: false });
    await until("the connection is closed", () => client.counts().open === 0);
    expect(receiver.requests).toEqual([]);
  });

  test("is not sent on a kept connection either", async () => {
    const receiver = await receive(OK);
    const { deliver } = start();
    await deliver(message(receiver.url));
    const withheld = await deliver(message(receiver.url), { mayBegin: () => false });
    expect(withheld).toMatchObject({ kind: "withheld" });
    expect(receiver.requests).toHaveLength(1);
  });

  test("again is aborted, because the receiver may have got the first one", async () => {
    const receiver = await receive((socket, _request, nth) => {
      if (nth === 2) socket.end();
      else socket.write(OK);
    });
    const { deliver } = start();
    await deliver(message(receiver.url));
    const answers = [true, false];
    const delivery = deliver(message(receiver.url), { mayBegin: () => answers.shift() ?? false });
    expect(await delivery).toMatchObject({ kind: "aborted", resent: false });
    expect(receiver.requests).toHaveLength(2);
    expect(answers).toEqual([]);
  });
});

describe("a lack of local resources", () => {
  test("of descriptors is unsent, at the connection and at the look-up", async () => {
    const receiver = await receive((socket) => void setTimeout(() => socket.write(OK), 300));
    const run = `exec "${process.execPath}" tests/support/processes/without-descriptors.ts ${receiver.port}`;
    const child = Bun.spawn(["sh", "-c", `ulimit -n 64; ${run}`], { stdout: "pipe" });
    const said = await new Response(child.stdout).text();
    const kinds = JSON.parse(said) as Record<string, number>;
    expect(Object.keys(kinds).toSorted()).toEqual(["accepted", "unsent"]);
  });
});

test.skipIf(lacks("mounts"))(
  "a missing route is no refusal, although Bun reports it as one",
  async () => {
    const run = [process.execPath, "tests/support/processes/without-route.ts"];
    const child = Bun.spawn([program("mounts", "unshare"), "-n", ...run], { stdout: "pipe" });
    expect(JSON.parse(await new Response(child.stdout).text())).toEqual([
      ["203.0.113.5", "failed", "network", false],
      ["[2001:db8::5]", "failed", "network", false],
      ["both.test", "failed", "network", false],
    ]);
  },
);

describe("an address", () => {
  test("that is blocked is never connected to, whether the URL contains it or a name resolves to it", async () => {
    const receiver = await receive(OK);
    const policy = { allowHttp: true, allowedNetworks: [] };
    const { deliver } = start({ policy, lookup: giving("8.8.8.8", "127.0.0.1") });
    for (const host of ["127.0.0.1", "hook.test"]) {
      const outcome = await deliver(message(`http://${host}:${receiver.port}/`));
      expect(outcome).toMatchObject({ kind: "failed", errorCode: "blocked_address" });
    }
    expect(receiver.accepted).toBe(0);
  });

  test("is checked for every connection, so that a name that moves to a private address is blocked", async () => {
    const receiver = await receive(OK.replace("\r\n", "\r\nConnection: close\r\n"));
    const answers = [["127.0.0.1"], ["169.254.169.254"]];
    const { deliver } = start({ lookup: async () => answers.shift() ?? [] });
    const url = `http://rebind.test:${receiver.port}/`;
    expect(await deliver(message(url))).toMatchObject({ kind: "accepted" });
    expect(await deliver(message(url))).toMatchObject({ errorCode: "blocked_address" });
  });

  test("is checked again if a request is sent again", async () => {
    const receiver = await receive(
      (socket, _request, nth) => void (nth === 1 ? socket.write(OK) : socket.end()),
    );
    const answers = [["127.0.0.1"], ["10.0.0.1"]];
    const { deliver } = start({ lookup: async () => answers.shift() ?? [] });
    const url = `http://rebind.test:${receiver.port}/`;
    await deliver(message(url));
    expect(await deliver(message(url))).toMatchObject({
      errorCode: "blocked_address",
      resent: false,
    });
  });

  test("is one of at most four that are tried", async () => {
    const receiver = await receive(OK);
    const dead = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];
    const url = `http://hook.test:${receiver.port}/`;
    const fourth = start({ lookup: giving(...dead.slice(1), "127.0.0.1") });
    expect(await fourth.deliver(message(url))).toMatchObject({ kind: "accepted" });
    const fifth = start({ lookup: giving(...dead, "127.0.0.1") });
    expect(await fifth.deliver(message(url))).toMatchObject({
      kind: "failed",
      errorCode: "connect",
    });
  });

  test("without a listener fails with connect, an unknown name with dns, an invalid URL with its own code", async () => {
    const { client, deliver } = start({ lookup: () => Promise.reject(new Error("ENOTFOUND")) });
    expect(await deliver(message("http://127.0.0.1:1/"))).toMatchObject({ errorCode: "connect" });
    expect(await deliver(message("http://nowhere.test/"))).toMatchObject({
      errorCode: "dns",
      detail: "ENOTFOUND",
    });
    expect(await deliver(message("ftp://example.com/"))).toMatchObject({
      errorCode: "invalid_url",
    });
    expect(client.counts().open).toBe(0);
  });
});

describe("a look-up", () => {
  const following = (asked: LookupOptions[]): Lookup => {
    return (_host, options = {}) => {
      asked.push(options);
      return silent();
    };
  };

  test("belongs to the partner of the request, and is aborted at its deadline or its end, not before", async () => {
    const asked: LookupOptions[] = [];
    const { client, deliver } = start({ lookup: following(asked), timeoutMs: 60 });
    const late = deliver(message("http://late.test/"), { partnerId: 7 });
    let breakOff = () => {};
    const abortable = (by: () => void) => (breakOff = by);
    const stopped = deliver(message("http://stopped.test/"), { abortable });
    expect(asked.map(({ partnerId, signal }) => [partnerId, signal?.aborted])).toEqual([
      [7, false],
      [undefined, false],
    ]);
    breakOff();
    expect(await stopped).toMatchObject({ kind: "withheld" });
    expect(asked[1]?.signal?.aborted).toBe(true);
    expect(await late).toMatchObject({ kind: "failed", errorCode: "timeout" });
    expect(asked[0]?.signal?.aborted).toBe(true);
    expect(client.counts().open).toBe(0);
  });
});

describe("a shutdown", () => {
  test("aborts deliveries without a response in every phase, and leaves nothing open", async () => {
    const receiver = await receive(NO_ANSWER);
    const { client, deliver } = start({ lookup: silent });
    const breakOffs: (() => void)[] = [];
    const abortable = (breakOff: () => void) => void breakOffs.push(breakOff);
    const urls = [
      "http://hook.test/",
      receiver.url,
      receiver.url,
      receiver.url.replace("http:", "https:"),
    ];
    const deliveries = urls.map((url) => deliver(message(url), { abortable }));
    await until("the requests", () => receiver.requests.length === 2);
    for (const breakOff of breakOffs) breakOff();
    const kinds = (await Promise.all(deliveries)).map(({ kind }) => kind);
    // No byte was sent for the deliveries that were in look-up or handshake.
    expect(kinds).toEqual(["withheld", "aborted", "aborted", "withheld"]);
    expect(client.counts().open).toBe(0);
  });

  test("keeps a response whose headers have arrived, and cuts its body", async () => {
    const receiver = await receive("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npart");
    let breakOff = () => {};
    const abortable = (by: () => void) => (breakOff = by);
    const delivery = start({ bodyMs: 1500 }).deliver(message(receiver.url), { abortable });
    await until("the requests", () => receiver.requests.length === 1);
    await Bun.sleep(50);
    breakOff();
    expect(await delivery).toMatchObject({
      kind: "accepted",
      responseExcerpt: "part",
      responseTruncated: true,
    });
  });
});

const NO_ANSWER = "";

function silent(): Promise<string[]> {
  return new Promise(() => {});
}
