import { beforeAll, describe, expect, test } from "bun:test";

import { everyPage, startApi, type Answer } from "../../support/api.ts";
import { mailsTo } from "../../support/auth-mails.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, addUser } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

// The team, accounts and audit log of a partner, as the partner uses them (contract 10.5).

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));

describe("the team", () => {
  test("is the users of the partner itself, not of its accounts or of others", async () => {
    const [one] = tenants.partners;
    for (const as of ["owner", "admin"] as const)
      expect(emailsOf(await get("users", as))).toEqual([one.admin.email, one.owner.email]);
    expect(emailsOf(await get("users?is_active=false"))).toEqual([]);
  });

  test("gets new users by invitation, which sets no password", async () => {
    const made = await invite();
    const email = String(made.body["email"]);
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      role: "partner_admin",
      company_id: tenants.partners[0].id,
      has_password: false,
      is_invited: true,
    });
    expect((await mailsTo(api.deps, email)).map(({ kind }) => kind)).toEqual(["invitation"]);
    expect(emailsOf(await get("users"))).toContain(email);
    expect((await post(`/${String(made.body["id"])}/invite`)).status).toBe(200);
    expect(codeOf(await post(`/${tenants.partners[0].admin.id}/invite`))).toEqual([
      409,
      "not_invitable",
    ]);
  });

  test("rejects a role of another company type, a taken email, and fields that it may not set", async () => {
    const [one] = tenants.partners;
    for (const [fields, names] of [
      [{ role: "super_admin" }, ["role"]],
      [{ role: "account_owner" }, ["role"]],
      [{ email: one.owner.email }, ["email"]],
    ] as const) {
      const { status, body } = await invite(fields);
      expect([status, Object.keys(body["errors"] ?? {}).toSorted()]).toEqual([422, [...names]]);
    }
  });

  test("changes roles from the next request on", async () => {
    const email = `promoted-${++people}@p1.test`;
    const companyId = tenants.partners[0].id;
    const { id } = await addUser(database.db, { companyId, role: "partner_admin", email });
    const token = await api.login(email);
    const inviting = () =>
      api.call("POST", "/partner/users", {
        token,
        body: { name: "x", email: `by-${++people}@p1.test`, role: "partner_admin" },
      });
    expect((await inviting()).status).toBe(403);
    const made = await post(`/${id}/role`, { role: "partner_owner" });
    expect([made.status, made.body["role"]]).toEqual([200, "partner_owner"]);
    expect((await inviting()).status).toBe(201);
    expect(await audited("USER_ROLE_CHANGED")).toEqual({
      user_id: id,
      from: "partner_admin",
      to: "partner_owner",
      actor: tenants.partners[0].owner.id,
    });
    expect((await post(`/${id}/role`, { role: "partner_admin" })).status).toBe(200);
    expect((await inviting()).status).toBe(403);
  });

  test("deactivates and activates a user", async () => {
    const email = `gone-${++people}@p1.test`;
    const companyId = tenants.partners[0].id;
    const { id } = await addUser(database.db, { companyId, role: "partner_admin", email });
    const token = await api.login(email);
    expect((await post(`/${id}/deactivate`)).body["is_active"]).toBe(false);
    expect((await api.call("GET", "/verify-token", { token })).status).toBe(401);
    expect(emailsOf(await get("users?is_active=false"))).toEqual([email]);
    expect((await post(`/${id}/activate`)).body["is_active"]).toBe(true);
    await api.login(email);
  });

  test("keeps its last owner, also if two deactivate each other; an operator may deactivate the last", async () => {
    const [, two] = tenants.partners;
    const self = two.owner.id;
    for (const [path, body] of [
      ["deactivate", {}],
      ["role", { role: "partner_admin" }],
    ] as const)
      expect(codeOf(await post(`/${self}/${path}`, body, "other"))).toEqual([409, "last_owner"]);
    const role = "partner_owner";
    // An invited owner who has never signed in does not count.
    const invited = { name: "Invited", email: "invited-owner@p2.test", role };
    expect((await post("", invited, "other")).status).toBe(201);
    expect(codeOf(await post(`/${self}/deactivate`, {}, "other"))).toEqual([409, "last_owner"]);
    const email = "second@p2.test";
    const second = await addUser(database.db, { companyId: two.id, role, email });
    const token = await api.login(email);
    const [a, b] = await Promise.all([
      post(`/${second.id}/deactivate`, {}, "other"),
      api.call("POST", `/partner/users/${self}/deactivate`, { token, body: {} }),
    ]);
    // The second request finds that its user is the last owner, or its caller is signed out by then.
    expect([a.status, b.status].toSorted()[0]).toBe(200);
    expect([401, 409]).toContain([a.status, b.status].toSorted()[1] ?? 0);
    const left = a.status === 200 ? self : second.id;
    const ended = await api.call("POST", `/admin/users/${left}/deactivate`, {
      token: tokens.root,
      body: {},
    });
    expect(ended.status).toBe(200);
    for (const id of [self, second.id])
      await api.call("POST", `/admin/users/${id}/activate`, { token: tokens.root, body: {} });
    tokens.other = await api.login(two.owner.email);
  });

  test("cannot change users of an account or of another partner", async () => {
    const [one, two] = tenants.partners;
    for (const id of [one.accounts[0].owner.id, two.admin.id, tenants.superAdmin.id]) {
      expect(codeOf(await post(`/${id}/deactivate`))).toEqual([403, "forbidden"]);
      expect(await audited("AUTHZ_DENIED")).toMatchObject({
        user_id: id,
        reason: "foreign_record",
      });
    }
    expect(codeOf(await post("/2000000000/deactivate"))).toEqual([404, "not_found"]);
    expect(codeOf(await post("/x/deactivate"))).toEqual([404, "not_found"]);
  });
});

describe("the accounts", () => {
  test("are those of the partner, with their stores, filtered by name and state", async () => {
    const names = async (path: string, as: Who = "owner") =>
      ((await get(path, as)).body["data"] as { name: string }[]).map(({ name }) => name);
    expect(await names("accounts")).toEqual(["p1-a2", "p1-a1"]);
    expect(await names("accounts?name=A1", "admin")).toEqual(["p1-a1"]);
    expect(await names("accounts?is_active=false")).toEqual([]);
    expect(await names("accounts", "other")).toEqual(["p2-a2", "p2-a1"]);
    const { body } = await get("accounts?limit=1");
    expect(body).toMatchObject({
      data: [{ stores: [{ name: "p1-a2 east" }, { name: "p1-a2 west" }] }],
    });
    expect((await get(`accounts?partner_id=${tenants.partners[1].id}`)).body).toEqual(
      (await get("accounts")).body,
    );
  });
});

interface Entry {
  readonly id: number;
  readonly action: string;
  readonly company_id: number;
  readonly actor_name: string | null;
  readonly impersonator_name: string | null;
}

describe("the audit log of a partner", () => {
  test("has the actions of its users and of those of its accounts, with names, and none of others", async () => {
    const [one] = tenants.partners;
    await api.login(one.accounts[0].owner.email);
    const { body } = await api.call("POST", "/partner/account-owner/token", {
      token: tokens.owner,
      body: { account_id: one.accounts[1].id, reason: "help" },
    });
    await api.call("GET", "/logout", { token: String(body["access_token"]) });
    const rows = (
      await everyPage(api, "/partner/audit-log?limit=2", tokens.admin)
    ).flat() as Entry[];
    const own = [one.id, ...one.accounts.map(({ id }) => id)];
    expect([...new Set(rows.map((row) => row.company_id))].toSorted()).toEqual(own.toSorted());
    expect(rows.map(({ id }) => id)).toEqual(rows.map(({ id }) => id).toSorted((a, b) => b - a));
    const all = (await everyPage(api, "/admin/audit-log?limit=100", tokens.root)).flat() as Entry[];
    expect(rows).toEqual(all.filter((row) => own.includes(row.company_id)));
    expect(rows.find(({ action }) => action === "IMPERSONATION_STARTED")).toMatchObject({
      actor_name: `Name of ${one.accounts[1].owner.email}`,
      impersonator_name: `Name of ${one.owner.email}`,
      company_name: "p1-a2",
      details: { reason: "help" },
    });
    const theirs = (
      await everyPage(api, "/partner/audit-log?limit=100", tokens.other)
    ).flat() as Entry[];
    expect(theirs.length).toBeGreaterThan(0);
    expect(theirs.filter((row) => own.includes(row.company_id))).toEqual([]);
  });

  test("accepts the filters of the whole log; a foreign company or user finds nothing", async () => {
    const [one, two] = tenants.partners;
    const rows = async (query: string) => (await get(`audit-log?${query}`)).body["data"] as Entry[];
    const logins = await rows(`action=AUTH_LOGIN&actor_id=${one.owner.id}`);
    expect(logins.map(({ action }) => action)).toEqual(["AUTH_LOGIN"]);
    expect((await rows(`company_id=${one.accounts[0].id}`)).length).toBeGreaterThan(0);
    expect(await rows(`company_id=${two.id}`)).toEqual([]);
    expect(await rows(`actor_id=${two.owner.id}`)).toEqual([]);
    expect((await get("audit-log?since=yesterday")).status).toBe(422);
  });
});

const tokens = { owner: "", admin: "", other: "", root: "" };

let people = 0;

beforeAll(async () => {
  const [one, two] = tenants.partners;
  tokens.owner = await api.login(one.owner.email);
  tokens.admin = await api.login(one.admin.email);
  tokens.other = await api.login(two.owner.email);
  tokens.root = await api.login(tenants.superAdmin.email);
});

type Who = keyof typeof tokens;

const get = (path: string, as: Who = "owner") =>
  api.call("GET", `/partner/${path}`, { token: tokens[as] });

const post = (path: string, body: unknown = {}, as: Who = "owner"): Promise<Answer> =>
  api.call("POST", `/partner/users${path}`, { token: tokens[as], body });

const invite = (fields: Record<string, unknown> = {}) =>
  post("", { name: "New", email: `mate-${++people}@p1.test`, role: "partner_admin", ...fields });

const emailsOf = ({ body }: Answer) =>
  (body["data"] as { email: string }[]).map(({ email }) => email);

const codeOf = ({ status, body }: Answer) => [status, body["code"]];

async function audited(action: string): Promise<unknown> {
  const rows = await database.db.sql<{ details: object; actor: number }[]>`
    select details - 'token' as details, actor_id as actor from audit_log
     where action = ${action} order by id`;
  const last = rows.at(-1);
  return { ...last?.details, actor: last?.actor };
}
