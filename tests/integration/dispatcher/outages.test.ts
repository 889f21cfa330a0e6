import { afterEach, describe, expect, test } from "bun:test";
import { Resolver } from "node:dns/promises";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { HttpClientOptions } from "../../../dispatcher/http/pool.ts";
import { parseProxyUrl } from "../../../src/lib/egress-proxy.ts";
import { NameResolver } from "../../../src/lib/name-resolver.ts";
import { deliveries, type Subscribed } from "../../support/deliveries.ts";
import type { startDispatcher } from "../../support/dispatch.ts";
import { SELF_SIGNED } from "../../support/network/certificates.ts";
import { startNameServer } from "../../support/network/name-server.ts";
import { type ProxyAnswer, startProxy } from "../../support/network/proxy.ts";
import { lacks } from "../../support/needs.ts";
import { listen, startRawReceiver } from "../../support/network/raw-receiver.ts";
import { until } from "../../support/network/receiver.ts";

const { database, ending, dispatcher, receiver, subscribe, emit } = deliveries();

describe("receivers that fail beside others", () => {
  test.skipIf(lacks("mounts"))(
    "names that DNS does not know fail by themselves, and so do names that it fails for beside others",
    async () => {
      const dns = await names((name) => {
        if (name.startsWith("good")) return { addresses: ["127.0.0.1"] };
        return name.startsWith("bad") ? "failure" : "unknown";
      });
      const port = new URL(await healthyUrl()).port;
      const known = await deliverTo([`http://good.test:${port}/`], { lookup: dns.lookup });
      await until(
        "the first delivery",
        async () => (await countAttempts(known.ids)).delivered === 1,
      );
      await known.running.stop();
      const urls = range(12, (n) => `http://${n % 2 === 0 ? "bad" : "gone"}${n}.test:1/`);
      const good = range(4, (n) => `http://good${n}.test:${port}/`);
      const { ids } = await deliverTo([...good, ...urls], { lookup: dns.lookup });
      await until("every record", async () => (await countAttempts(ids)).recorded === 16);
      expect(await countAttempts(ids)).toEqual({ recorded: 16, retry: 12, delivered: 4 });
    },
  );

  test("a destination that the egress proxy refuses is recorded once the proxy has let another one pass", async () => {
    const [refused, passed] = [await closedUrl(), await healthyUrl()];
    const port = new URL(refused).port;
    const proxy = await egress((authority) =>
      authority.endsWith(`:${port}`) ? FORBIDDEN : undefined,
    );
    const { ids, running } = await deliverTo([refused], { proxy });
    await until("the refusal", async () => running.workload.hasOutage);
    expect(await countAttempts(ids)).toEqual(NOTHING);
    const other = await subscribe(passed);
    await emit(other);
    await until("the record", async () => (await countAttempts(ids)).recorded === 1);
    expect(await countAttempts(ids)).toEqual({ recorded: 1, retry: 1, delivered: 0 });
  });

  test.each([
    ["reset the connection", { kind: "reset" }],
    ["break TLS", { kind: "tls" }],
    ["never answer", { kind: "timeout" }],
    ["answer 500", { kind: "http_status" }],
    ["do not speak HTTP", { kind: "protocol" }],
    ["refuse the connection", { kind: "connect" }],
  ] as const)(
    "of 12 partners that %s, and no other, each is recorded and counted",
    async (_, { kind }) => {
      const urls = await Promise.all(range(12, () => failingUrl(kind)));
      const { ids, running } = await deliverTo(
        urls,
        {},
        kind === "timeout" ? { timeoutMs: 500 } : {},
      );
      await until("every record", async () => (await countAttempts(ids)).recorded === 12);
      expect(await countAttempts(ids)).toEqual({ recorded: 12, retry: 12, delivered: 0 });
      expect(await codesOf(ids)).toEqual([kind]);
      expect([await shownOutage(), running.workload.hasOutage]).toEqual([null, false]);
    },
  );

  test("40 subscriptions of one host that the proxy cannot reach are all recorded", async () => {
    const proxy = await egress(() => "HTTP/1.1 504 T\r\n\r\n");
    const url = await closedUrl();
    const urls = Array.from({ length: 40 }, () => url);
    const { ids } = await deliverTo(urls, { proxy });
    // On a machine without time, some attempts fail on our side, and the waits after that grow to 30 s.
    const isRecorded = async () => (await countAttempts(ids)).recorded === 40;
    await until("every record", isRecorded, 150_000);
    expect(await shownOutage()).toBeNull();
  });
});

describe("while our own part fails for everything", () => {
  test.skipIf(lacks("mounts"))(
    "no attempt counts, health and administration say so, and everything is delivered once it works: DNS",
    async () => {
      let isDown = true;
      const dns = await names(() => (isDown ? "failure" : { addresses: ["127.0.0.1"] }));
      const port = new URL(await healthyUrl()).port;
      const urls = range(30, (n) => `http://shop${n}.test:${port}/`);
      const { ids, running } = await deliverTo(urls, { lookup: dns.lookup });
      await until("the outage", async () => (await shownOutage()) === "names");
      await until("a try of each", () => dns.asked() >= 30);
      isDown = false;
      await until("every delivery", async () => (await countAttempts(ids)).delivered === 30);
      // Nothing tells the first two from receivers that are down alone.
      expect(await countAttempts(ids)).toEqual({ recorded: 32, retry: 2, delivered: 30 });
      expect(running.workload.hasOutage).toBe(true);
    },
  );

  test.skipIf(lacks("mounts"))(
    "no attempt counts that fails by a failure of DNS which is remembered from before it worked again",
    async () => {
      let isDown = true;
      const dns = await names(() => (isDown ? "failure" : { addresses: ["127.0.0.1"] }));
      const port = new URL(await healthyUrl()).port;
      const urls = range(30, (n) => `http://shop${n}.test:${port}/`);
      const { ids } = await deliverTo(urls, { lookup: dns.lookup });
      await until("the outage", async () => (await shownOutage()) === "names");
      const counted = (await countAttempts(ids)).retry;
      isDown = false;
      const fresh = await subscribe(`http://fresh.test:${port}/`);
      await emit(fresh);
      await until("the proof", async () => (await countAttempts([fresh.id])).delivered === 1);
      await until("every delivery", async () => (await countAttempts(ids)).delivered === 30);
      expect((await countAttempts(ids)).retry).toBe(counted);
    },
  );

  test.skipIf(lacks("mounts"))(
    "no attempt counts while DNS fails, beside a receiver whose address stands in the hosts file",
    async () => {
      const dns = await names(() => "failure", "127.0.0.1 inside.test\n");
      const port = new URL(await healthyUrl()).port;
      const inside = await subscribe(`http://inside.test:${port}/`);
      const urls = range(30, (n) => `http://shop${n}.test:${port}/`);
      const { ids } = await deliverTo(urls, { lookup: dns.lookup });
      await until("the outage, and ten deliveries inside", async () => {
        await emit(inside);
        if ((await countAttempts([inside.id])).delivered < 10) return false;
        return (await shownOutage()) === "names";
      });
      expect((await countAttempts(ids)).recorded).toBe(2);
    },
  );

  test.each([
    ["a proxy that refuses everything", FORBIDDEN, "policy", 0],
    ["a proxy that does not know us", "HTTP/1.1 407 Login\r\n\r\n", "proxy", 0],
    ["a network behind the proxy that reaches nothing", "HTTP/1.1 504 T\r\n\r\n", "network", 2],
  ] as const)("no attempt counts: %s", async (_, answer, part, counted) => {
    let isDown = true;
    const proxy = await egress(() => (isDown ? answer : undefined));
    const urls = await Promise.all(range(12, healthyUrl));
    const { ids } = await deliverTo(urls, { proxy });
    await until("the outage", async () => (await shownOutage()) === part);
    expect((await countAttempts(ids)).recorded).toBe(counted);
    isDown = false;
    await until("every delivery", async () => (await countAttempts(ids)).delivered === 12);
    expect(await countAttempts(ids)).toEqual({
      recorded: 12 + counted,
      retry: counted,
      delivered: 12,
    });
  });

  test("no attempt counts through a proxy that is down, also of a single partner", async () => {
    const { ids } = await deliverTo([await healthyUrl()], {
      proxy: parseProxyUrl(await closedUrl()),
    });
    await until("the outage", async () => (await shownOutage()) === "proxy");
    expect(await countAttempts(ids)).toEqual(NOTHING);
  });
});

const FORBIDDEN = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
const NOTHING = { recorded: 0, retry: 0, delivered: 0 };
/** Delays so long that a test sees only the first attempt that counts, except where attempts go on being postponed. */
const RETRY_MS = [3_000, 60_000, 60_000];

afterEach(async () => {
  // What a test leaves queued would be evidence in the next one.
  await database.db.sql`
    update webhook_subscriptions set state = 'disabled', disabled_at = now(), disabled_reason = 'consecutive_failures'`;
});

function range<T>(length: number, make: (n: number) => T): T[] {
  return Array.from({ length }, (_, n) => make(n));
}

async function closedUrl(): Promise<string> {
  const server = createServer();
  const port = await listen(server, "127.0.0.1");
  await new Promise((resolve) => void server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

/** The URL of a receiver whose attempts fail with this code. */
async function failingUrl(
  kind: "reset" | "tls" | "timeout" | "http_status" | "protocol" | "connect",
) {
  if (kind === "connect") return closedUrl();
  const answers = {
    reset: (socket: Socket) => void socket.resetAndDestroy(),
    tls: "",
    timeout: "",
    http_status: "HTTP/1.1 500 Error\r\nContent-Length: 0\r\n\r\n",
    protocol: "SSH-2.0-OpenSSH\r\n\r\n",
  };
  const tls = kind === "tls" ? { tls: SELF_SIGNED } : {};
  return ending(await startRawReceiver(answers[kind], tls)).url;
}

const healthyUrl = async () => (await receiver()).url;

async function egress(answer: ProxyAnswer) {
  const proxy = ending(await startProxy(answer));
  return parseProxyUrl(`http://127.0.0.1:${proxy.port}`);
}

/** A real name server, and a look-up that asks it. */
async function names(
  answer: (name: string) => { addresses: string[] } | "failure" | "unknown",
  hosts = "",
) {
  let asked = 0;
  const zone = new Proxy(
    {},
    {
      get: (_, name) => () => {
        asked += 1;
        return answer(String(name));
      },
    },
  );
  const server = ending(await startNameServer(zone));
  const newChannel = () => {
    const resolver = new Resolver({ timeout: 30_000, tries: 1 });
    resolver.setServers([server.address]);
    return resolver;
  };
  const hostsFile = join(mkdtempSync(join(tmpdir(), "hosts-")), "hosts");
  writeFileSync(hostsFile, hosts);
  const { lookup } = new NameResolver({ newChannel, hostsFile });
  return { lookup, asked: () => asked };
}

/** Delivers one event to a subscription of a partner of its own for each URL. */
async function deliverTo(
  urls: readonly string[],
  http: Partial<HttpClientOptions> = {},
  options: Partial<Parameters<typeof startDispatcher>[0]> = {},
) {
  const subscribed: Subscribed[] = [];
  for (const url of urls) subscribed.push(await subscribe(url));
  const running = dispatcher({ http, retryDelaysMs: RETRY_MS, ...options });
  for (const one of subscribed) await emit(one);
  return { ids: subscribed.map(({ id }) => id), running };
}

async function countAttempts(ids: readonly string[]) {
  const [row] = await database.db.sql<{ recorded: number; retry: number; delivered: number }[]>`
    select count(*)::int as recorded, (count(*) filter (where outcome = 'retry'))::int as retry,
           (count(*) filter (where outcome = 'delivered'))::int as delivered
      from delivery_attempts where subscription_id = any(${[...ids]})`;
  return row ?? NOTHING;
}

async function codesOf(ids: readonly string[]) {
  const rows = await database.db.sql<{ code: string }[]>`
    select distinct error_code as code from delivery_attempts where subscription_id = any(${[...ids]})`;
  return rows.map(({ code }) => code);
}

/** The outage as `GET /admin/dispatcher` shows it. */
async function shownOutage(): Promise<string | null> {
  const [row] = await database.db.sql<{ outage: string | null }[]>`
    select outage from dispatchers where (outage is null) = (outage_since is null) order by started_at desc limit 1`;
  return row?.outage ?? null;
}
