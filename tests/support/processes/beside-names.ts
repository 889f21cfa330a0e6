import { randomBytes } from "node:crypto";

import { BASE_PATH } from "../../../src/http/access.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { PASSWORD } from "../api.ts";
import { createTestSchedule } from "../dispatch.ts";
import { startNameServer, type Zone } from "../network/name-server.ts";
import { insertSubscription, insertTenant, record, reviewAction, type Tenant } from "../outbox.ts";
import { createDatabase } from "../postgres.ts";
import { addTenants } from "../tenants.ts";
import type { ApiProcess } from "./api-process.ts";

/**
 * Starts the name server of an attacker with these names, and the stores of processes that ask it and may connect to
 * one address.
 */
export async function startBesideNames(zone: Zone, allowed: string) {
  const database = await createDatabase();
  const { db } = database;
  await addTenants(db);
  const stores = await createTestSchedule();
  const names = await startNameServer(zone);
  const masterKey = randomBytes(32);
  const box = createSecretBox({ current: masterKey });
  const env: Readonly<Record<string, string>> = {
    DATABASE_URL: database.url,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: stores.prefix,
    MASTER_KEY: masterKey.toString("base64"),
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: allowed,
    LOG_LEVEL: "warn",
  };
  return {
    db,
    names,
    env,
    /** Adds a subscription of a new partner. */
    async subscribe(url: string) {
      const tenant = await insertTenant(db);
      const { partnerId } = tenant;
      const { subscriptionId } = await insertSubscription({ db, box }, { partnerId, url });
      return { tenant, subscriptionId };
    },
    /** Records one event of each tenant. */
    async emit(tenants: readonly Tenant[]): Promise<void> {
      const actions = tenants.map((tenant) => reviewAction(tenant));
      await stores.schedule.wake(await record(db, actions));
    },
    /** Signs an owner in. Returns the address of the subscriptions, and how they are called. */
    async signIn(api: ApiProcess) {
      const { body } = await api.login("owner@p1.test", PASSWORD);
      const headers = {
        Authorization: `Bearer ${String(body["token"])}`,
        "Content-Type": "application/json",
      };
      const root = `${api.root}${BASE_PATH}/partner/webhooks`;
      const send = (method: string, path: string, fields: object) =>
        api.call(method, `${root}${path}`, { headers, body: JSON.stringify(fields) });
      return { headers, root, send };
    },
    async stop(): Promise<void> {
      names.stop();
      stores.close();
      await database.drop();
    },
  };
}
