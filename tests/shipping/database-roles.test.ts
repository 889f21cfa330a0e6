// Runs the statements of docs/operations/production.md for two database users, and the service with these users.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { connect, type RawDb } from "../../db/client.ts";
import { migrate } from "../../db/migrate.ts";
import { lookAtRights } from "../../src/operate/doctor/database.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import { createSecretBox } from "../../src/lib/secret-box.ts";
import { PASSWORD } from "../support/api.ts";
import {
  addProvider,
  connectStore,
  created,
  reviewIdOf,
  type TestProvider,
} from "../support/factory.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { addTenants, type Tenants } from "../support/tenants.ts";

test("two database users serve sign-in, actions, deliveries, retention and erasure, and the service cannot change the audit log", async () => {
  const [partner] = tenants.partners;
  const [account] = partner.accounts;
  const [user, member, root] = await Promise.all(
    [partner.owner, account.user, tenants.superAdmin].map(async ({ email }) => {
      const { status, body } = await api.login(email, PASSWORD);
      expect([email, status]).toEqual([email, 200]);
      return String(body["token"]);
    }),
  );
  const webhook = { label: "Hook", webhook_url: receiver.url, delivery_kind: "immediate" };
  expect((await post("/partner/webhooks", webhook, user)).status).toBe(201);
  expect((await api.report(provider, [created(siteId, "first")])).status).toBe(200);
  const reviewId = await reviewIdOf(owner, "first");
  const response = { body: "Thank you." };
  expect((await post(`/account/reviews/${reviewId}/response`, response, member)).status).toBe(200);
  await until("both deliveries", () => receiver.received.length >= 2);
  const history = await api.call("GET", `${api.root}${BASE_PATH}/partner/review-history`, {
    headers: { Authorization: `Bearer ${user}` },
  });
  expect(history.body["data"]).toHaveLength(2);
  const exported = await fetch(`${api.root}${BASE_PATH}/partner/audit-log/export`, {
    headers: { Authorization: `Bearer ${user}` },
  });
  expect([exported.status, await exported.text()]).toEqual([
    200,
    expect.stringContaining('"AUTH_LOGIN"'),
  ]);

  await service.sql`
    insert into audit_log (at, action, details) values (now() - interval '40 days', 'AUTH_LOGOUT', '{}')`;
  await owner.sql`
    update maintenance_jobs set began_at = now() - interval '1 hour', next_at = now() where name = 'audit_log'`;
  await until("retention", async () => (await auditRows(`action = 'AUTH_LOGOUT'`)) === 0);
  const named = `actor_id = ${account.user.id} and ip is not null`;
  expect(await auditRows(named)).toBeGreaterThan(0);
  const deactivated = await post(`/admin/users/${account.user.id}/deactivate`, {}, root);
  expect(deactivated.status).toBe(200);
  expect((await post("/admin/erasures", { user_id: account.user.id }, root)).status).toBe(202);
  await until("the erasure", async () => (await auditRows(named)) === 0);

  for (const statement of [
    "update audit_log set ip = null",
    "delete from audit_log",
    "truncate audit_log",
  ])
    await expect(service.sql.unsafe(statement).then(() => statement)).rejects.toThrow(
      "permission denied for table audit_log",
    );
  expect(await lookAtRights(owner, service)).toMatchObject({ kind: "ok" });
  await owner.sql.unsafe(`grant delete on audit_log to ${names.reviewrelay}`);
  expect(await lookAtRights(owner, service)).toMatchObject({ kind: "advice" });
  await owner.sql.unsafe(`revoke delete on audit_log from ${names.reviewrelay}`);
  expect(dispatcher.log).not.toContain("permission denied");
  expect(api.said).not.toContain("permission denied");
}, 120_000);

const KEY = randomBytes(32);

/** The names of the document, and those of this test: users belong to the whole server. */
const names = (() => {
  const suffix = randomBytes(6).toString("hex");
  return {
    reviewrelay_owner: `owner_${suffix}`,
    reviewrelay: `service_${suffix}`,
    // The test command drops every database whose name begins with that of its template.
    database: `${process.env["TEST_TEMPLATE"] ?? ""}_${suffix}`,
  };
})();

let admin: RawDb;
let owner: RawDb;
let service: RawDb;
let tenants: Tenants;
let provider: TestProvider;
let siteId: number;
let receiver: Receiver;
let api: ApiProcess;
let dispatcher: DispatcherProcess;

beforeAll(async () => {
  const adminUrl = process.env["TEST_DATABASE_URL"] ?? "";
  admin = connect(adminUrl, { max: 1, name: "test" });
  const [create = "", grants = ""] = documented();
  for (const statement of create.split(";\n")) await admin.sql.unsafe(statement);
  const urlOf = (username: string, password: string) =>
    Object.assign(new URL(adminUrl), { username, password, pathname: `/${names.database}` }).href;
  const ownerUrl = urlOf(names.reviewrelay_owner, "change-me");
  const serviceUrl = urlOf(names.reviewrelay, "change-me-too");
  await migrate(ownerUrl);
  owner = connect(ownerUrl, { max: 2, name: "test" });
  await owner.sql.unsafe(grants);
  service = connect(serviceUrl, { max: 1, name: "test" });
  tenants = await addTenants(owner);
  provider = await addProvider(owner, createSecretBox({ current: KEY }));
  siteId = await connectStore(owner, tenants.partners[0].accounts[0], { provider });
  receiver = await Receiver.start();
  const env = {
    DATABASE_URL: serviceUrl,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: `${names.database}:`,
    MASTER_KEY: KEY.toString("base64"),
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
  };
  api = await ApiProcess.start(env);
  dispatcher = new DispatcherProcess({
    ...env,
    MAINTENANCE_DATABASE_URL: ownerUrl,
    AUDIT_RETENTION_DAYS: "30",
  });
  dispatcher.start();
}, 120_000);

afterAll(async () => {
  api.kill();
  await dispatcher.stop();
  await receiver.stop();
  await Promise.all([owner.close(), service.close()]);
  await admin.sql.unsafe(`drop database ${names.database} with (force)`);
  await admin.sql.unsafe(`drop role ${names.reviewrelay_owner}, ${names.reviewrelay}`);
  await admin.close();
});

/** Reads the blocks of the document that name this file, with the names of this test. */
function documented(): string[] {
  const path = join(import.meta.dir, "../../docs/operations/production.md");
  const blocks = readFileSync(path, "utf8").matchAll(
    /^```sql run \S+roles\.test\.ts\n(.*?)^```/gms,
  );
  return [...blocks].map(([, statements = ""]) =>
    statements
      .replace(/(?<=database )reviewrelay\b/, `"${names.database}"`)
      .replaceAll(/\breviewrelay(?:_owner)?\b/g, (name) =>
        name === "reviewrelay" ? names.reviewrelay : names.reviewrelay_owner,
      ),
  );
}

function post(path: string, body: object, token = "") {
  return api.call("POST", `${api.root}${BASE_PATH}${path}`, {
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function auditRows(where: string): Promise<number> {
  const [row] = await owner.sql.unsafe(`select count(*)::int as n from audit_log where ${where}`);
  return Number(row?.["n"]);
}
