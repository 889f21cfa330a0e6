// An operator who reads data of a tenant leaves a row in the audit log (contract 10.3).
import { beforeAll, expect, test } from "bun:test";

import { startApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { addProvider, connectStore } from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";

const clock = createFakeClock();
const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db, clock }));

let root: string;
let siteId: number;
beforeAll(async () => {
  root = await api.login(tenants.superAdmin.email);
  const provider = await addProvider(database.db, api.deps.box, "site");
  siteId = await connectStore(database.db, own().accounts[0], { provider });
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
  [() => `/audit-log?company_id=${own().id}`, "audit-log", true],
];

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
  expect((await read("/plans")).status).toBe(200);
  expect((await read("/audit-log")).status).toBe(200);
  expect((await api.call("GET", "/partner/users", { token: owner })).status).toBe(200);
  expect(await rows()).toEqual(before);
});

const read = (path: string, token = root) => api.call("GET", `/admin${path}`, { token });

const rows = async (): Promise<readonly Record<string, unknown>[]> => database.db.sql`
  select actor_id as actor, details - 'token' as details from audit_log
   where action = 'TENANT_READ' order by id`;
