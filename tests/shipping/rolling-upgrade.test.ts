// Proves docs/operations/upgrades.md.
import { expect, test } from "bun:test";

import type { RawDb } from "../../db/client.ts";
import { freePort } from "../../scripts/demo/stores/keep.ts";
import { ROOT } from "../../scripts/install/install.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import { lacks } from "../support/needs.ts";
import { startShipped } from "../support/network/shipped-proxy.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { checkOut, type DemoPartner, seedWith, signIn, succeed } from "./demo.ts";
import {
  type Drill,
  drills,
  type Endpoint,
  expectAllInOrder,
  openDb,
  settingsOf,
  startDurableStores,
  startLoad,
} from "./drill.ts";

/** Six replacements, each with a drain, on a loaded machine. */
const TEST_MS = 900_000;
const begin = drills();

test.skipIf(lacks("caddy"))(
  "two APIs and two dispatchers behind the shipped proxy are replaced one by one under load, and back again, and every request is answered",
  async () => {
    const drill = begin();
    const older = checkOut(process.env["UPGRADE_FROM"] ?? "0.1.0");
    const stores = await startDurableStores(drill, { postgres: true });
    const proxyPort = await freePort();
    const settings = {
      ...settingsOf(drill, stores),
      SERVER_ROOT: `http://127.0.0.1:${proxyPort}`,
      DRAIN_DELAY_MS: "5000",
    };
    const partners = await seedWith(settings, older);
    const db = openDb(drill, stores.databaseUrl);
    const startBoth = async (tree: string, port: number) => {
      const api = await ApiProcess.start(settings, { tree, port });
      drill.atEnd(() => api.kill());
      const dispatcher = new DispatcherProcess(settings, { tree });
      dispatcher.start();
      drill.atEnd(() => dispatcher.stop());
      return { api, dispatcher, port };
    };
    // Two ports are in use. The third one is for the API that replaces one of them.
    const ports = [await freePort(), await freePort(), await freePort()] as const;
    let [, , spare] = ports;
    let fleet = [await startBoth(older, ports[0]), await startBoth(older, ports[1])];
    const proxy = await startShipped("Caddyfile", { port: proxyPort, apis: ports });
    drill.atEnd(() => proxy.stop());

    const [first] = fleet;
    if (first === undefined) throw new Error("There is no API.");
    const endpoints = await subscribe(drill, first.api, partners);
    const load = startLoad(first.api, endpoints, { root: proxy.root });
    const readers = partners.map((partner) => startReader(proxy.root, partner));
    drill.atEnd(() => Promise.all([load.stop(), ...readers.map((reader) => reader.stop())]));
    const more = async () => {
      const before = load.accepted.length;
      await until("more events", () => load.accepted.length >= before + EVENTS);
    };
    await more();
    await succeed(["src/operate/main.ts", "migrate"], settings, ROOT);
    await more();
    for (const tree of [ROOT, older, ROOT]) {
      const next: typeof fleet = [];
      for (const old of fleet) {
        next.push(await startBoth(tree, spare));
        await Bun.sleep(SETTLES_MS);
        old.api.signal("SIGTERM");
        await old.api.exited();
        await old.dispatcher.stop();
        spare = old.port;
      }
      fleet = next;
      await more();
    }
    await load.stop();
    const reads = await Promise.all(readers.map((reader) => reader.stop()));
    await expectAllInOrder(db, endpoints, load.accepted);
    expect([...load.answers.keys()]).toEqual(["200"]);
    expect(reads.flatMap((statuses) => [...new Set(statuses)])).toEqual([200, 200]);
    console.log(await table(db, { load, reads: reads.flat().length, endpoints }));
  },
  TEST_MS,
);

/** Every request of a receiver with a multiple of this number fails, so that retries are always in progress. */
const FAILS_EACH = 25;
/** The number of events in each phase. */
const EVENTS = 300;
/** The time in milliseconds after which the proxy, which asks every two seconds, has seen that a new process is ready. */
const SETTLES_MS = 2_500;
const READS_EACH_MS = 100;

/** Subscribes each partner to a receiver of its own. */
function subscribe(
  { atEnd }: Drill,
  api: ApiProcess,
  partners: readonly DemoPartner[],
): Promise<Endpoint[]> {
  return Promise.all(
    partners.map(async (partner) => {
      const receiver = await Receiver.start((_, count) =>
        (count + 1) % FAILS_EACH === 0 ? 500 : 200,
      );
      atEnd(() => receiver.stop());
      const call = await signIn(api, partner);
      await call("POST", "/partner/webhooks", {
        label: "Reviews",
        delivery_kind: "immediate",
        webhook_url: receiver.url,
      });
      return { receiver, provider: partner.provider, siteId: partner.siteId };
    }),
  );
}

/** Reads a partner's subscriptions through the proxy, with one token of the older version. Collects the statuses. */
function startReader(root: string, { email, password }: DemoPartner) {
  const statuses: number[] = [];
  const over = new AbortController();
  const ask = async (path: string, init: RequestInit) => {
    const response = await fetch(root + BASE_PATH + path, init);
    statuses.push(response.status);
    return Object(await response.json());
  };
  const reading = (async () => {
    const { token } = await ask("/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ email, password }),
    });
    while (!over.signal.aborted) {
      await ask("/partner/webhooks", { headers: { Authorization: `Bearer ${token}` } });
      await Bun.sleep(READS_EACH_MS);
    }
  })();
  return {
    async stop(): Promise<number[]> {
      over.abort();
      await reading;
      return statuses;
    },
  };
}

/** Formats the figures of docs/operations/upgrades.md. */
async function table(
  db: RawDb,
  {
    load,
    reads,
    endpoints,
  }: {
    readonly load: ReturnType<typeof startLoad>;
    readonly reads: number;
    readonly endpoints: readonly Endpoint[];
  },
): Promise<string> {
  const [row] = await db.sql<{ history: number; attempts: number }[]>`
    select (select count(*) from review_history) as history,
           (select count(*) from delivery_attempts) as attempts`;
  const posts = endpoints.reduce((sum, { receiver }) => sum + receiver.received.length, 0);
  return [
    `| requests of providers, all answered 200 | ${load.answers.get("200")} |`,
    `| requests of readers, all answered 200 | ${reads} |`,
    `| events accepted; recorded | ${load.accepted.length}; ${row?.history} |`,
    `| POSTs received; attempts recorded | ${posts}; ${row?.attempts} |`,
    "| lost; out of order; recorded twice | 0; 0; 0 |",
  ].join("\n");
}
