// Proves docs/operations/upgrades.md.
import { expect, test } from "bun:test";

import postgres from "postgres";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { ROOT } from "../../scripts/install/install.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import { fieldsOf } from "../../src/lib/fields.ts";
import { lacks } from "../support/needs.ts";
import { startShipped } from "../support/shipped-proxy.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { checkOut, type DemoPartner, seedWith, signIn, succeed } from "./demo.ts";
import {
  type Drill,
  drills,
  type Endpoint,
  expectNoViolations,
  openDb,
  settingsOf,
  startDurableStores,
  startLoad,
} from "./drill.ts";

/** Six replacements, each with a drain, on a loaded machine. */
const TEST_MS = 900_000;
const begin = drills();

test.skipIf(lacks("caddy"))(
  "two APIs and two dispatchers behind the shipped proxy are replaced one by one under load, and back again, and every request is answered and every action of the inbox taken",
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
    const load = startLoad(first.api, endpoints, { root: proxy.root, paceMs: REPORTS_EACH_MS });
    const readers = partners.map((partner) => startReader(proxy.root, partner));
    drill.atEnd(() => Promise.all([load.stop(), ...readers.map((reader) => reader.stop())]));
    const more = async () => {
      const before = load.accepted.length;
      await until("more events", () => load.accepted.length >= before + EVENTS);
    };
    await more();
    const inbox = await startInbox(drill, stores.databaseUrl, endpoints);
    await more();
    await succeed(["src/operate/main.ts", "migrate"], settings, ROOT);
    await more();
    expect(await inbox.waiting()).toBeGreaterThan(EVENTS / 10);
    await inbox.release();
    for (const [step, tree] of [ROOT, older, ROOT].entries()) {
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
      const [one] = fleet;
      if (one) await (step === 0 ? switchOn : readUsers)(one.api, partners);
      await more();
    }
    await load.stop();
    await inbox.expectAllInOrder();
    const reads = await Promise.all(readers.map((reader) => reader.stop()));
    await expectNoViolations({ db, masterKey: drill.masterKey, endpoints, load });
    expect([...load.answers.keys()]).toEqual(["200"]);
    expect(reads.flatMap((statuses) => [...new Set(statuses)])).toEqual([200, 200]);
    // The older version kept the headers, which it does not know.
    for (const { receiver } of endpoints)
      expect(receiver.received.at(-1)?.headers).toMatchObject(GATEWAY);
  },
  TEST_MS,
);

/** Every request of a receiver with a multiple of this number fails, so that retries are always in progress. */
const FAILS_EACH = 25;
/**
 * The pauses of the two clients and of the inserter of an endpoint. Its receiver takes at least 60 events a second,
 * because each 25th one waits 300 ms for its retry. However fast the machine is, at most 50 come in.
 */
const REPORTS_EACH_MS = 50;
const INSERTS_EACH_MS = 100;
/** The number of events in each phase. */
const EVENTS = 300;
/** The time in milliseconds after which the proxy, which asks every two seconds, has seen that a new process is ready. */
const SETTLES_MS = 2_500;
const READS_EACH_MS = 100;
const LABEL = "Reviews";

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
        label: LABEL,
        delivery_kind: "immediate",
        webhook_url: receiver.url,
      });
      return { receiver, provider: partner.provider, siteId: partner.siteId };
    }),
  );
}

/** Headers of a partner's own, by which its gateway accepts a request. */
const GATEWAY = { "x-gateway-key": "let-me-in" };

/**
 * Sets what the older version does not know: headers of the partner's own, and an integration. Numbers are not switched
 * on, because they may be wrong while that version records events (contract 7.19).
 */
async function switchOn(api: ApiProcess, partners: readonly DemoPartner[]): Promise<void> {
  for (const partner of partners) {
    const call = await signIn(api, partner);
    const { data } = await call("GET", "/partner/webhooks");
    const own = Array.isArray(data) && data.map(fieldsOf).find(({ label }) => label === LABEL);
    await call("PATCH", `/partner/webhooks/${String(fieldsOf(own)["id"])}`, { headers: GATEWAY });
    await call("POST", "/partner/integrations", { name: "Sync", scopes: ["reviews:read"] });
  }
}

/** Reads the users of each partner, one of which is the integration. Throws unless the answers are 200. */
async function readUsers(api: ApiProcess, partners: readonly DemoPartner[]): Promise<void> {
  for (const partner of partners) await (await signIn(api, partner))("GET", "/partner/users");
}

/** Reads a partner's subscriptions through the proxy, with one token of the older version. Collects the statuses. */
function startReader(root: string, { email, password }: DemoPartner) {
  const statuses: number[] = [];
  const over = new AbortController();
  const ask = async (path: string, init: RequestInit) => {
    const response = await fetch(root + BASE_PATH + path, init);
    statuses.push(response.status);
    return fieldsOf(await response.json());
  };
  const reading = (async () => {
    const { token } = await ask("/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ email, password }),
    });
    while (!over.signal.aborted) {
      await ask("/partner/webhooks", { headers: { Authorization: `Bearer ${String(token)}` } });
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

/**
 * Inserts notes about a review of each partner into the inbox, as a role with the rights of docs/operations/moving-in.md.
 * They wait until `release`, because a session has the locks of those who take them over.
 */
async function startInbox({ atEnd }: Drill, databaseUrl: string, endpoints: readonly Endpoint[]) {
  const owner = postgres(databaseUrl, { max: 1 });
  atEnd(() => owner.end());
  await owner.unsafe(`
    create role inserter login password 'change-me';
    grant usage on schema public to inserter;
    grant insert (service_id, action) on inbox to inserter;
    grant select (id, store_review_site_id, external_review_id) on reviews to inserter`);
  const [service] = await owner<{ id: number }[]>`
    with made as (
      insert into users (company_id, email, name, role, created_at, updated_at)
      select id, 'inserter@service.invalid', 'Inserter', 'service', now(), now() from companies where type = 'platform'
      returning id)
    insert into services (id, scopes) select id, '{actions:write}' from made returning id`;
  await owner`select pg_advisory_lock(42, partner_id) from (select distinct partner_id from reviews) partners`;
  const url = Object.assign(new URL(databaseUrl), { username: "inserter", password: "change-me" });
  const sql = postgres(url.href, { max: endpoints.length });
  atEnd(() => sql.end());
  const over = new AbortController();
  const writing = endpoints.map(async ({ siteId }) => {
    const written: string[] = [];
    const [review] = await sql<{ id: number }[]>`
      select id from reviews where store_review_site_id = ${siteId} order by id limit 1`;
    while (!over.signal.aborted) {
      const id = `${siteId}-${written.length}`;
      const action = {
        id,
        event: "note_added",
        actor: { type: "system" },
        occurred_at: new Date().toISOString(),
        review_id: review?.id,
        metadata: { body: id },
      };
      await sql`
        insert into inbox (service_id, action)
        values (${service?.id ?? 0}, ${JSON.stringify(action)}::text::jsonb)`;
      written.push(id);
      await Bun.sleep(INSERTS_EACH_MS);
    }
    return { siteId, written };
  });
  const waiting = async () => (await owner`select from inbox where state = 'waiting'`).length;
  return {
    waiting,
    release: () => owner`select pg_advisory_unlock_all()`,
    async expectAllInOrder() {
      over.abort();
      const all = await Promise.all(writing);
      await until("an empty inbox", async () => (await waiting()) === 0, TEST_MS);
      expect(await owner`select action, errors from inbox`).toHaveLength(0);
      for (const { siteId, written } of all) {
        const recorded = await owner<{ body: string }[]>`
          select metadata ->> 'body' as body from review_history
           where event = 'note_added' and store_review_site_id = ${siteId} order by sequence`;
        expect(recorded.map(({ body }) => body)).toEqual(written);
      }
    },
  };
}
