import { beforeAll, describe, expect, test } from "bun:test";

import { recordAudit } from "../../../src/audit/queries.ts";
import { addMs } from "../../../src/lib/clock.ts";
import { everyPage, startApi } from "../../support/api.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));

describe("the audit log", () => {
  test("shows rows newest first, with all their fields", async () => {
    const [login] = await list("");
    expect(login).toMatchObject({ action: "AUTH_LOGIN" });
    const [row] = await list("?action=TOKEN_REVOKED");
    expect(row).toEqual({
      id: expect.any(Number),
      at: "2026-03-01T00:00:00.009+00:00",
      action: "TOKEN_REVOKED",
      actor_id: tenants.partners[0].owner.id,
      actor_name: `Name of ${tenants.partners[0].owner.email}`,
      impersonator_id: null,
      impersonator_name: null,
      company_id: tenants.partners[0].id,
      company_name: "p1",
      object_name: null,
      ip: "192.0.2.1",
      user_agent: "tests",
      request_id: "row-9",
      details: { i: 9 },
    } as never);
  });

  test("filters by action, actor, company and time, individually and combined", async () => {
    const { owner, id } = tenants.partners[0];
    expect(await rows("?action=TOKEN_ISSUED")).toEqual([5, 4, 3, 2, 1, 0]);
    expect(await rows(`?actor_id=${owner.id}`)).toEqual([9, 7, 5, 3, 1]);
    expect(await rows(`?company_id=${id}`)).toEqual([9, 7, 5, 3, 1]);
    expect(await rows(`?since=${at(3)}&until=${at(6)}`)).toEqual([5, 4, 3]);
    const all = `?action=TOKEN_ISSUED&actor_id=${owner.id}&company_id=${id}&since=${at(3)}&until=${at(5)}`;
    expect(await rows(all)).toEqual([3]);
    expect(await rows("?action=NOTHING_OF_THE_KIND")).toEqual([]);
    expect(await rows("?actor_id=2147483647")).toEqual([]);
  });

  test("names the object of an action; a partner sees only names of its own tree", async () => {
    const [one, two] = tenants.partners;
    const add = (id: number, details: object) => database.db.sql`
      insert into audit_log (at, action, company_id, request_id, details)
      values (now(), 'USER_DEACTIVATED', ${one.id}, 'named', ${JSON.stringify({ ...details, i: id })})`;
    await add(30, { user_id: one.admin.id });
    await add(31, { user_id: two.admin.id });
    await add(32, { name: "Gone" });
    await database.db.sql`
      insert into review_sites (slug, name, sealed_secret) values ('named', 'Named site', '')`;
    await add(33, { provider: "named" });
    const names = async (path: string, as: string) => {
      const { body } = await api.call("GET", `${path}?action=USER_DEACTIVATED`, { token: as });
      return (body["data"] as { object_name: string | null }[]).map((row) => row.object_name);
    };
    const [own, foreign] = [`Name of ${one.admin.email}`, `Name of ${two.admin.email}`];
    expect(await names("/admin/audit-log", token)).toEqual(["Named site", "Gone", foreign, own]);
    const partner = await api.login(one.owner.email);
    expect(await names("/partner/audit-log", partner)).toEqual(["named", "Gone", null, own]);
    expect(await rows(`?q=${encodeURIComponent(`deactivated ${own}`)}`)).toEqual([30]);
    await database.db
      .sql`delete from audit_log where request_id = 'named' or details->>'i' is null`;
  });

  test("finds what concerns a company or a user: who acted, and on whom", async () => {
    const [one, two] = tenants.partners;
    const { superAdmin } = tenants;
    const add = (id: number, action: string, details: object) => database.db.sql`
      insert into audit_log (at, action, actor_id, request_id, details)
      values (now(), ${action}, ${superAdmin.id}, 'about', ${JSON.stringify({ ...details, i: id })})`;
    await add(40, "COMPANY_UPDATED", { company_id: one.id });
    await add(41, "USER_DEACTIVATED", { user_id: one.admin.id });
    await add(42, "TENANT_READ", { partner_id: one.id });
    await add(43, "COMPANY_UPDATED", { company_id: two.id });
    await add(44, "AUTHZ_DENIED", { company_id: one.id });
    const [account] = one.accounts;
    await add(45, "COMPANY_CREATED", { company_id: account.id });
    await add(46, "USER_CREATED", { user_id: account.owner.id });
    await add(47, "COMPANY_CREATED", { company_id: two.accounts[0].id });
    expect(await rows(`?about=company:${one.id}&action=COMPANY_CREATED`)).toEqual([45]);
    expect(await rows(`?about=company:${one.id}&action=USER_CREATED`)).toEqual([46]);
    // What people of an account do is about their account, not about its partner.
    await database.db.sql`
      insert into audit_log (at, action, actor_id, company_id, request_id, details)
      values (now(), 'AUTH_LOGIN', ${account.owner.id}, ${account.id}, 'about', '{"i":48}')`;
    expect(await rows(`?about=company:${account.id}`)).toEqual([48, 46, 45]);
    await database.db.sql`delete from audit_log where (details->>'i')::int in (45, 46, 47)`;
    expect(await rows(`?about=company:${one.id}`)).toEqual([42, 41, 40, 9, 7, 5, 3, 1]);
    expect(await rows(`?about=company:${one.id}&reads=false`)).toEqual([41, 40, 9, 7, 5, 3, 1]);
    expect(await rows(`?about=user:${one.admin.id}`)).toEqual([41]);
    expect(await rows(`?about=company:${one.id}&q=deactivated`)).toEqual([41]);
    expect(await rows("?about=company:9999999999")).toEqual([]);
    const wrong = await api.call("GET", "/admin/audit-log?about=store:1", { token });
    expect(wrong.status).toBe(422);
    // A partner does not see what operators did.
    const owner = await api.login(one.owner.email);
    const own = await api.call("GET", `/partner/audit-log?about=company:${one.id}`, {
      token: owner,
    });
    const seen = (own.body["data"] as { request_id: string }[]).map((row) => row.request_id);
    expect(seen).not.toContain("about");
    await database.db
      .sql`delete from audit_log where request_id = 'about' or details->>'i' is null`;
  });

  test("filters by category", async () => {
    expect(await rows("?category=tokens")).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    expect(await rows("?category=tokens&action=TOKEN_ISSUED")).toEqual([5, 4, 3, 2, 1, 0]);
    expect(await rows("?category=tokens&action=AUTH_LOGIN")).toEqual([]);
    expect(await rows("?category=platform")).toEqual([]);
  });

  test("finds a text of the details, of a name, an address or an id, regardless of case", async () => {
    const { owner } = tenants.partners[0];
    expect(await rows("?q=ROW-4")).toEqual([4]);
    expect(await rows("?q=%22i%22%3A7")).toEqual([7]);
    expect(await rows(`?q=${encodeURIComponent(owner.email)}`)).toEqual([9, 7, 5, 3, 1]);
    expect(await rows(`?q=row-&action=TOKEN_ISSUED`)).toEqual([5, 4, 3, 2, 1, 0]);
    expect(await rows("?q=row_")).toEqual([]);
    expect(await rows("?q=Generated%20a%20token")).toEqual([5, 4, 3, 2, 1, 0]);
  });

  test("finds an enable by the words that the dashboard has for it", async () => {
    await database.db.sql`
      insert into audit_log (at, action, request_id, details)
      values (now(), 'WEBHOOK_ENABLED', 'words', '{"i": 20, "test": true}'),
             (now(), 'WEBHOOK_ENABLED', 'words', '{"i": 21}')`;
    expect(await rows("?q=sent%20a%20test%20event%20to%20enable")).toEqual([20]);
    expect(await rows("?q=enabled%20a%20subscription")).toEqual([21]);
    await database.db.sql`delete from audit_log where request_id = 'words'`;
  });

  test("is searched 5,000 rows at a time, and a page that ends there has a cursor", async () => {
    await database.db.sql`
      insert into audit_log (at, action, request_id, details)
      select now(), 'KEY_DROPPED', 'filler', '{}' from generate_series(1, 5001)`;
    const pages = await everyPage<Row>(api, "/admin/audit-log?q=row-&limit=2", token);
    expect(pages[0]).toEqual([]);
    expect(pages.flat().map((row) => row.details.i)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    await database.db.sql`delete from audit_log where request_id = 'filler'`;
  });

  test("is paginated without a gap for any page size, with filters too", async () => {
    const pages = await everyPage<Row>(api, "/admin/audit-log?action=TOKEN_ISSUED&limit=2", token);
    expect(pages.map((page) => page.map((row) => row.details.i))).toEqual([
      [5, 4],
      [3, 2],
      [1, 0],
    ]);
  });

  test.each([
    ["company_id", "2147483648"],
    ["until", "2026-02-30T00:00:00Z"],
    ["category", "webhook"],
    ["q", ""],
    ["q", "x".repeat(201)],
  ])("with %s=%s is a 422 on that parameter", async (name, value) => {
    const query = `?${name}=${encodeURIComponent(value)}`;
    const answer = await api.call("GET", `/admin/audit-log${query}`, { token });
    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body["errors"] as object)).toEqual([name]);
  });
});

let token: string;

const start = new Date("2026-03-01T00:00:00.000Z");

beforeAll(async () => {
  const [one, two] = tenants.partners;
  for (let i = 0; i < 10; i++) {
    const actor = i % 2 ? one.owner : two.owner;
    await recordAudit(database.db, {
      at: addMs(start, i),
      action: i < 6 ? "TOKEN_ISSUED" : "TOKEN_REVOKED",
      actor: { userId: actor.id, companyId: actor.companyId, impersonatorId: null },
      requestContext: { ip: "192.0.2.1", userAgent: "tests", requestId: `row-${i}` },
      details: { i },
    });
  }
  token = await api.login(tenants.superAdmin.email);
});

interface Row {
  readonly id: number;
  readonly action: string;
  readonly details: { i?: number };
}

async function list(query: string): Promise<Row[]> {
  const { status, body, text } = await api.call("GET", `/admin/audit-log${query}`, {
    token,
  });
  if (status !== 200) throw new Error(text);
  return body["data"] as Row[];
}

const rows = async (query: string) => (await list(query)).map((row) => row.details.i);

const at = (i: number) => encodeURIComponent(addMs(start, i).toISOString());
