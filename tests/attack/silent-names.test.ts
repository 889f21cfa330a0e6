import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { BASE_PATH } from "../../src/http/access.ts";
import { createSecretBox } from "../../src/lib/secrets.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { PASSWORD } from "../support/api.ts";
import { createTestSchedule } from "../support/dispatch.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { startNameServer, type NameServer } from "../support/network/name-server.ts";
import { insertSubscription, insertTenant, record, reviewAction } from "../support/outbox.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";
import { startRawReceiver, type RawReceiver } from "../support/network/raw-receiver.ts";
import { until } from "../support/network/receiver.ts";
import { addTenants } from "../support/tenants.ts";
import { lacks } from "../support/needs.ts";

/*
 * A tenant chooses host names and with them a name server, which may never answer. A lookup then lasts until its timeout.
 * The other work of the processes must continue meanwhile.
 */

const SILENT = 32;

describe.skipIf(lacks("mounts"))(`beside ${SILENT} names with a silent name server`, () => {
  const masterKey = randomBytes(32);
  const box = createSecretBox({ current: masterKey });
  let database: TestDatabase;
  let stores: Awaited<ReturnType<typeof createTestSchedule>>;
  let names: NameServer;
  let receiver: RawReceiver;
  let env: Record<string, string>;

  beforeAll(async () => {
    database = await createDatabase();
    await addTenants(database.db);
    stores = await createTestSchedule();
    names = await startNameServer({
      [GOOD]: () => ({ addresses: ["127.0.0.1"] }),
      ...Object.fromEntries(SILENT_NAMES.map((name) => [name, () => "silence" as const])),
    });
    receiver = await startRawReceiver(
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    );
    env = {
      DATABASE_URL: database.url,
      REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
      REDIS_PREFIX: stores.prefix,
      MASTER_KEY: masterKey.toString("base64"),
      WEBHOOK_ALLOW_HTTP: "1",
      WEBHOOK_ALLOWED_NETWORKS: "127.0.0.1",
      LOG_LEVEL: "warn",
    };
  });
  afterAll(async () => {
    names.stop();
    receiver.stop();
    stores.close();
    await database.drop();
  });

  const askedForSilent = () => SILENT_NAMES.reduce((sum, name) => sum + names.asked(name), 0);

  test("of 32 tenants, a healthy receiver gets its ten events before the first silent lookup times out", async () => {
    const { db } = database;
    const { schedule } = stores;
    const subscribe = async (host: string) => {
      const tenant = await insertTenant(db);
      const url = `http://${host}:${receiver.port}/`;
      const { subscriptionId } = await insertSubscription(
        { db, box },
        { partnerId: tenant.partnerId, url },
      );
      return { tenant, subscriptionId };
    };
    const silent = await Promise.all(SILENT_NAMES.map(subscribe));
    const healthy = await subscribe(GOOD);
    const attempts = async (ids: readonly string[]) =>
      (await db.sql`select from delivery_attempts where subscription_id = any(${ids})`).length;
    const asked = askedForSilent();
    const dispatcher = new DispatcherProcess(env, names);
    dispatcher.start();
    try {
      await schedule.wake(
        await record(
          db,
          silent.map(({ tenant }) => reviewAction(tenant)),
        ),
      );
      await until("a silent name is looked up", () => askedForSilent() > asked);
      await schedule.wake(
        await record(
          db,
          Array.from({ length: 10 }, () => reviewAction(healthy.tenant)),
        ),
      );
      await until(
        "the healthy receiver has all",
        async () => (await attempts([healthy.subscriptionId])) === 10,
      );
      expect(await attempts(silent.map(({ subscriptionId }) => subscriptionId))).toBe(0);
      expect(names.asked(GOOD)).toBeGreaterThanOrEqual(10);
    } finally {
      await dispatcher.kill();
    }
  });

  test("a sign-in at another partner is answered before the updates that register these names", async () => {
    const api = await ApiProcess.start(env, names);
    try {
      const { body } = await api.login("owner@p1.test", PASSWORD);
      const headers = {
        Authorization: `Bearer ${String(body["token"])}`,
        "Content-Type": "application/json",
      };
      const subscriptions = `${api.root}${BASE_PATH}/partner/webhooks`;
      const made = await api.call("POST", subscriptions, {
        headers,
        body: JSON.stringify({
          label: "x",
          webhook_url: `http://${GOOD}/`,
          delivery_kind: "immediate",
        }),
      });
      const change = (name: string) =>
        api.call("PATCH", `${subscriptions}/${String(made.body["id"])}`, {
          headers,
          body: JSON.stringify({ webhook_url: `http://${name}/` }),
        });
      // Each update waits 2 s for its lookup. If the machine is so busy that a sign-in takes longer, the test tries
      // again.
      await until("a sign-in is answered before the updates", async () => {
        const asked = askedForSilent();
        let answered = 0;
        const updates = SILENT_NAMES.map(async (name) => {
          const { status } = await change(name);
          answered += 1;
          return status;
        });
        await until("a name is looked up", () => askedForSilent() > asked);
        expect((await api.login("owner@p2.test", PASSWORD)).status).toBe(200);
        const isFirst = answered === 0;
        expect(new Set(await Promise.all(updates))).toEqual(new Set([200]));
        return isFirst;
      });
    } finally {
      api.kill();
    }
  });
});

const SILENT_NAMES = Array.from({ length: SILENT }, (_, n) => `silent-${n}.test`);

const GOOD = "good.test";
