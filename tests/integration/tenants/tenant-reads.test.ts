// An operator who reads data of a tenant leaves a row in the audit log (contract 10.3).
import { beforeAll, expect, test } from "bun:test";

import { fieldsOf } from "../../../src/lib/fields.ts";
import { startApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { addProvider, connectStore } from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { addClient } from "../../support/oauth.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addSsoConnection, addTenants } from "../../support/tenants.ts";

test("every read of operators leaves a row, or shows no data of a tenant", async () => {
  const { body } = await api.call("GET", "/openapi.json", { root: true });
  const paths = Object.entries(fieldsOf(body["paths"])).flatMap(([path, methods]) =>
    "get" in fieldsOf(methods) && /\/(?:admin\/|sso\/clients)/.test(path)
      ? [path.replace(/^\/api\/v1(?:\/admin)?/, "")]
      : [],
  );
  const read = READS.map(([path]) => path().replace(/\?.*$/, ""));
  const silent = paths.filter((path) => {
    const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
    return !read.some((one) => pattern.test(one)) && !path.startsWith("/partners/{id}/webhooks");
  });
  expect(silent.toSorted()).toEqual([...Object.keys(NO_TENANT_DATA), "/stream"].toSorted());
});

const clock = createFakeClock();
const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db, clock }));

let root: string;
let siteId: number;
let connectionId: string;
let clients: { own: string; platform: string };
beforeAll(async () => {
  root = await api.login(tenants.superAdmin.email);
  const provider = await addProvider(database.db, api.deps.box, "site");
  siteId = await connectStore(database.db, own().accounts[0], { provider });
  const { id: companyId } = account();
  connectionId = await addSsoConnection(database.db, { companyId, domains: ["reads.test"] });
  clients = {
    own: (await addClient(database.db, { companyId: own().id })).clientId,
    platform: (await addClient(database.db)).clientId,
  };
});

const own = () => tenants.partners[0];
const account = () => own().accounts[0];
const store = () => account().storeIds[0];

/** The path of each read, with the kind of data and the partner of the row that it leaves. */
const READS: readonly (readonly [path: () => string, kind: string, isOfPartner: boolean])[] = [
  [() => "/partners", "partners", false],
  [() => `/partners/${own().id}`, "partners", true],
  [() => "/accounts", "accounts", false],
  [() => `/accounts?partner_id=${own().id}`, "accounts", true],
  [() => `/accounts/${account().id}`, "accounts", true],
  [() => `/companies/${account().id}`, "companies", true],
  [() => `/companies/${tenants.superAdmin.companyId}`, "companies", false],
  [() => "/stores", "stores", false],
  [() => `/stores?account_id=${account().id}`, "stores", true],
  [() => `/stores/${store()}`, "stores", true],
  [() => "/store-review-sites", "store-review-sites", false],
  [() => `/store-review-sites?store_id=${store()}`, "store-review-sites", true],
  [() => `/store-review-sites/${siteId}`, "store-review-sites", true],
  [() => "/users?q=owner", "users", false],
  [() => `/users?company_id=${account().id}`, "users", true],
  [() => `/users/${account().owner.id}`, "users", true],
  [() => `/users/${tenants.superAdmin.id}`, "users", false],
  [() => `/users/${account().owner.id}/identities`, "users", true],
  [() => `/users/${account().owner.id}/sessions`, "users", true],
  [() => `/users/${account().owner.id}/second-factors`, "users", true],
  [() => `/audit-log?company_id=${own().id}`, "audit-log", true],
  [() => "/sso-connections", "sso-connections", false],
  [() => `/sso-connections?company_id=${account().id}`, "sso-connections", true],
  [() => `/sso-connections/${connectionId}`, "sso-connections", true],
  [() => "/deletions", "companies", false],
  [() => "/backlogs", "backlogs", false],
  [() => "/dispatcher", "dispatcher", false],
  [() => "/inbox", "inbox", false],
  [() => "/sso/clients", "oauth-clients", false],
  [() => `/sso/clients/${clients.own}`, "oauth-clients", true],
  [() => `/sso/clients/${clients.platform}`, "oauth-clients", false],
];

/** The reads without a row, with the reason. */
const NO_TENANT_DATA: Readonly<Record<string, string>> = {
  "/plans": "the platform's own",
  "/plans/{id}": "the platform's own",
  "/providers": "the platform's own",
  "/providers/{id}": "the platform's own",
  "/services": "the platform's own",
  "/services/{id}": "the platform's own",
  "/services/{id}/tokens": "the platform's own",
  "/audit-webhook": "the platform's own",
  "/audit-log/export": "leaves the row AUDIT_EXPORTED",
  "/inbox/status": "counts",
  "/erasures": "names nobody",
  "/erasures/{id}": "names nobody",
  "/partners/{id}/deletion": "a date that an operator has set",
  "/accounts/{id}/deletion": "a date that an operator has set",
};

test.each(READS)(
  "read %# leaves one row an hour, with the partner of its record or filter",
  async (path, kind, isOfPartner) => {
    clock.advance(3_600_000);
    root = await api.login(tenants.superAdmin.email);
    const before = await rows();
    for (let i = 0; i < 2; i++) expect((await read(path())).status).toBe(200);
    const details = { partner_id: isOfPartner ? own().id : null, kind };
    expect((await rows()).slice(before.length)).toEqual([
      { actor: tenants.superAdmin.id, details },
    ]);
  },
);

test("reads of another kind, of another partner and in the next hour leave rows of their own", async () => {
  clock.advance(3_600_000);
  root = await api.login(tenants.superAdmin.email);
  const before = (await rows()).length;
  const [one, two] = tenants.partners;
  for (const path of [
    `/users?company_id=${one.id}`,
    `/users?company_id=${two.id}`,
    `/accounts?partner_id=${one.id}`,
    `/users?company_id=${one.accounts[0].id}`,
  ])
    await read(path);
  expect(await rows()).toHaveLength(before + 3);
  clock.advance(3_600_000);
  await read(`/users?company_id=${one.id}`);
  expect(await rows()).toHaveLength(before + 4);
});

test("a read that finds nothing, is refused, or is of the platform's own data leaves no row", async () => {
  clock.advance(3_600_000);
  root = await api.login(tenants.superAdmin.email);
  const before = await rows();
  const owner = await api.login(own().owner.email);
  expect((await read("/users/2000000000")).status).toBe(404);
  expect((await read("/users?company_id=none")).status).toBe(422);
  expect((await read("/users", owner)).status).toBe(403);
  expect((await read("/sso/clients/unknown")).status).toBe(404);
  for (const path of ["/plans", "/services", "/erasures", "/inbox/status"])
    expect((await read(path)).status).toBe(200);
  expect((await read("/audit-log")).status).toBe(200);
  for (const path of ["/partner/users", "/partner/oauth-clients"])
    expect((await api.call("GET", path, { token: owner })).status).toBe(200);
  expect(await rows()).toEqual(before);
});

const read = (path: string, token = root) =>
  api.call("GET", path.startsWith("/sso/") ? path : `/admin${path}`, { token });

const rows = async (): Promise<readonly Record<string, unknown>[]> => database.db.sql`
  select actor_id as actor, details - 'token' as details from audit_log
   where action = 'TENANT_READ' order by id`;
