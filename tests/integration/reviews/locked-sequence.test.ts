import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { BASE_PATH } from "../../../src/http/access.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { PASSWORD } from "../../support/api.ts";
import { ApiProcess, type ProcessAnswer } from "../../support/processes/api-process.ts";
import {
  addProvider,
  connectStore,
  created,
  providerEvent,
  type TestProvider,
} from "../../support/factory.ts";
import { insertSubscription } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { addTenants, type Tenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

test("one partner's locked sequence is 503 for that partner only, and nothing of its requests is written", async () => {
  const refused = Array.from({ length: AT_ONCE }, () => event(0));
  await whileLocked(async () => {
    const stuck = Promise.all(refused.map((events) => api.report(provider, events)));
    await until("somebody waits for the lock", async () => (await waiters()) > 0);
    // Each of these would wait until the lock is released if waiting requests filled the pool.
    for (let i = 0; i < 10; i++) {
      expect((await api.login(tenants.partners[0].owner.email, PASSWORD)).status).toBe(200);
      expect((await api.report(provider, event(1))).status).toBe(200);
      expect(await api.isReady()).toBe(true);
      expect(await waiters()).toBeLessThanOrEqual(2);
    }
    for (const answer of await stuck) expectUnavailable(answer);
  });
  expect(await queued(0)).toEqual([]);
  expect(await queued(1)).toEqual(Array.from({ length: 10 }, (_, i) => i + 1));
  for (const events of refused)
    expect((await api.report(provider, events)).body).toEqual({ accepted: 1, duplicates: 0 });
  expect(await queued(0)).toEqual(Array.from({ length: AT_ONCE }, (_, i) => i + 1));
});

test("a locked review or connection is 503 only for requests about it", async () => {
  const { sql } = database.db;
  const [known] = event(0);
  expect((await api.report(provider, [known])).status).toBe(200);
  const site = sites[0] ?? 0;
  const before = (await queued(0)).length;
  const about = [
    [{ ...known, id: "again", type: "review.updated" }],
    [providerEvent("connection.changed", site, { id: "changed", axis: "pull", connected: true })],
  ];
  await database.db.transaction(async (tx) => {
    await tx.sql`select from reviews where store_review_site_id = ${site} for no key update`;
    await tx.sql`select from store_review_sites where id = ${site} for no key update`;
    // The lock is held until the answers have arrived, so that only a deadline can end these requests.
    const stuck = Promise.all(about.map((events) => api.report(provider, events)));
    await until("somebody waits for the lock", async () => (await waiters()) > 0);
    for (let i = 0; i < 5; i++) expect((await api.report(provider, event(0))).status).toBe(200);
    for (const answer of await stuck) expectUnavailable(answer);
  });
  const claims = await sql`select from provider_events where id in ('again', 'changed')`;
  expect(claims).toHaveLength(0);
  expect(await queued(0)).toHaveLength(before + 5);
  for (const events of about)
    expect((await api.report(provider, events)).body).toEqual({ accepted: 1, duplicates: 0 });
});

test("actions of users and calls on the subscription are not delayed either", async () => {
  const { body } = await api.login(tenants.partners[0].owner.email, PASSWORD);
  const headers = { Authorization: `Bearer ${String(body["token"])}` };
  const path = `${api.root}${BASE_PATH}/partner/webhooks/${subscriptions[0]}`;
  await whileLocked(async () => {
    const calls = [
      api.call("POST", `${path}/test`, { headers }),
      api.call("DELETE", path, { headers }),
    ];
    for (const answer of await Promise.all(calls)) expectUnavailable(answer);
    expect((await api.call("GET", path, { headers })).status).toBe(200);
  });
});

const KEY = randomBytes(32);

const box = createSecretBox({ current: KEY });

/** More requests than the pool has connections; one partner may not use all of them. */
const AT_ONCE = 24;

let api: ApiProcess;

let tenants: Tenants;

let provider: TestProvider;

/** The site and the subscription of each partner. */
const sites: number[] = [];

const subscriptions: string[] = [];

beforeAll(async () => {
  const { db } = database;
  tenants = await addTenants(db);
  provider = await addProvider(db, box);
  for (const { id, accounts } of tenants.partners) {
    const options = { partnerId: id, url: "http://127.0.0.1:3999/" };
    subscriptions.push((await insertSubscription({ db, box }, options)).subscriptionId);
    sites.push(await connectStore(db, accounts[0], { provider }));
  }
  api = await ApiProcess.start({
    DATABASE_URL: database.url,
    MASTER_KEY: KEY.toString("base64"),
  });
});

afterAll(async () => {
  api.kill();
});

let serial = 0;

const event = (...partners: readonly number[]) =>
  partners.map((partner) => created(sites[partner] ?? 0, `r-${++serial}`));

const queued = async (partner: number) => {
  const rows = await database.db.sql<{ sequence: number }[]>`
    select sequence from queued_entries where subscription_id = ${subscriptions[partner] ?? ""}
     order by sequence`;
  return rows.map(({ sequence }) => sequence);
};

const waiters = async () => {
  const [row] = await database.db.sql<{ n: number }[]>`
    select count(*)::int as n from pg_stat_activity
     where wait_event_type = 'Lock' and datname = current_database()`;
  return row?.n ?? 0;
};

/** Locks the sequence of the first partner, like an abandoned session. */
async function whileLocked(work: () => Promise<void>): Promise<void> {
  await database.db.transaction(async (tx) => {
    await tx.sql`
      select from outbox_sequences where subscription_id = ${subscriptions[0] ?? ""} for update`;
    await work();
  });
}

function expectUnavailable(answer: ProcessAnswer): void {
  expect(answer).toMatchObject({ status: 503, body: { code: "unavailable" } });
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
}
