import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { createSecretBox } from "../../src/lib/secrets.ts";
import { PASSWORD } from "../support/api.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { createTestSchedule } from "../support/dispatch.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { addProvider, connectStore, created } from "../support/factory.ts";
import { insertSubscription } from "../support/outbox.ts";
import { createDatabase } from "../support/postgres.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { proxyBefore } from "../support/network/tcp-proxy.ts";
import { addTenants } from "../support/tenants.ts";
import { fixture } from "../support/fixture.ts";

const database = fixture(createDatabase);
const network = fixture(() => proxyBefore(database.url));
const receiver = fixture(() => Receiver.start());
const schedule = fixture(createTestSchedule);

test("after all connections to PostgreSQL hang, both processes recover on their own, and no event is lost", async () => {
  const { db } = database;
  const [partner] = (await addTenants(db)).partners;
  const provider = await addProvider(db, box);
  const site = await connectStore(db, partner.accounts[0], { provider });
  await insertSubscription({ db, box }, { partnerId: partner.id, url: receiver.url });
  const env = {
    DATABASE_URL: network.in(database.url),
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: schedule.prefix,
    MASTER_KEY: KEY.toString("base64"),
  };
  const api = await ApiProcess.start(env);
  const dispatcher = new DispatcherProcess(env);
  dispatcher.start();
  // A transaction that holds the sequence when the network hangs keeps it until the server notices.
  let serial = 0;
  const accepted: string[] = [];
  const over = new AbortController();
  const send = async () => {
    while (!over.signal.aborted) {
      const name = `r-${++serial}`;
      const answer = await api.report(provider, [created(site, name)]);
      expect([200, 503]).toContain(answer.status);
      if (answer.status === 200) accepted.push(name);
    }
  };
  const senders = [send(), send(), send()];
  await until("deliveries flow", () => receiver.received.length > 20);
  network.freeze();
  const before = { accepted: accepted.length, received: receiver.received.length };
  await until("events are accepted again", () => accepted.length > before.accepted + 20);
  await until("deliveries flow again", () => receiver.received.length > before.received + 20);
  expect((await api.login(partner.owner.email, PASSWORD)).status).toBe(200);
  await until("the API is ready", () => api.isReady());
  over.abort();
  await Promise.all(senders);
  const history = await db.sql<{ event_id: string; name: string }[]>`
    select h.event_id, r.external_review_id as name
      from review_history h join reviews r on r.id = h.review_id order by h.id`;
  const recorded = new Set(history.map(({ name }) => name));
  expect(accepted.filter((name) => !recorded.has(name))).toEqual([]);
  await until("all is delivered", () => new Set(receiver.eventIds).size === history.length);
  expect([...new Set(receiver.eventIds)]).toEqual(history.map((row) => row.event_id));
  await dispatcher.stop();
  api.kill();
});

const KEY = randomBytes(32);

const box = createSecretBox({ current: KEY });
