import { beforeAll, describe, expect, test } from "bun:test";

import { everyPage, PASSWORD, startApi, type Answer } from "../../support/api.ts";
import { codeSentTo, mailsTo } from "../../support/auth-mails.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, addUser, type TestUser } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));

describe("a new user", () => {
  test("signs in with the password, by an email of any case, and is audited", async () => {
    const made = await create({ email: "  Mixed.Case@P1.Test " });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      email: "mixed.case@p1.test",
      role: "partner_admin",
      company_id: tenants.partners[0].id,
      store_ids: [],
      is_active: true,
      has_password: true,
      is_invited: false,
      locked_until: null,
    });
    expect(made.text).not.toContain("argon2");
    expect((await signIn("MIXED.CASE@p1.test")).status).toBe(200);
    expect((await audited("USER_CREATED")).at(-1)).toEqual({
      user_id: made.body["id"],
      company_id: tenants.partners[0].id,
      role: "partner_admin",
      actor: tenants.superAdmin.id,
    });
  });

  test("has no password that contains the name", async () => {
    const named = { name: "Mara Lindqvist", password: "lindqvist2026" };
    expect(fieldsOf(await create(named))).toEqual([422, ["password"]]);
  });

  test("with a location role has stores of the account, and no other user has any", async () => {
    const [account, sibling] = tenants.partners[0].accounts;
    const [east = 0] = account.storeIds;
    const location = { company_id: account.id, role: "location_user" };
    const made = await create({ ...location, store_ids: [east] });
    expect([made.status, made.body["store_ids"]]).toEqual([201, [east]]);
    const foreign = [east, sibling.storeIds[0]];
    for (const fields of [
      location,
      { ...location, store_ids: [] },
      { ...location, store_ids: foreign },
      { company_id: account.id, role: "account_user", store_ids: [east] },
    ])
      expect(fieldsOf(await create(fields))).toEqual([422, ["store_ids"]]);
  });

  test.each([
    ["platform", "partner_admin"],
    ["partner", "account_owner"],
    ["partner", "super_admin"],
    ["account", "partner_owner"],
  ] as const)("of a company of type %s is no %s", async (type, role) => {
    const [one] = tenants.partners;
    const companies = {
      platform: tenants.superAdmin.companyId,
      partner: one.id,
      account: one.accounts[0].id,
    };
    expect(fieldsOf(await create({ company_id: companies[type], role }))).toEqual([422, ["role"]]);
  });
});

test("a user is shown with the name of the company", async () => {
  const { superAdmin, partners } = tenants;
  const show = (id: unknown) => api.call("GET", `/admin/users/${String(id)}`, { token: root });
  expect((await show(superAdmin.id)).body).toMatchObject({
    email: superAdmin.email,
    company: { id: superAdmin.companyId, type: "platform", name: "Platform" },
  });
  const { owner } = partners[0].accounts[0];
  expect((await show(owner.id)).body["company"]).toEqual({
    id: owner.companyId,
    type: "account",
    name: "p1-a1",
  });
});

test("an operator lists the sign-ins of a user and ends one; that of another user is 404", async () => {
  const { admin, owner } = tenants.partners[1];
  const token = await api.login(admin.email);
  const kept = await api.login(admin.email);
  const path = `/admin/users/${admin.id}/sessions`;
  const sessions = async () =>
    (await api.call("GET", path, { token: root })).body["data"] as { id: string }[];
  const found = await sessions();
  expect(found).toMatchObject([
    { method: "login", is_current: false },
    { method: "login", is_current: false },
  ]);
  const id = found[1]?.id ?? "";
  const foreign = await api.call("DELETE", `/admin/users/${owner.id}/sessions/${id}`, {
    token: root,
  });
  expect(foreign.status).toBe(404);
  expect((await api.call("DELETE", `${path}/${id}`, { token: root })).status).toBe(204);
  expect(await sessions()).toHaveLength(1);
  expect((await api.call("GET", "/verify-token", { token })).status).toBe(401);
  expect((await api.call("GET", "/verify-token", { token: kept })).status).toBe(200);
  expect((await audited("SESSION_REVOKED")).at(-1)).toMatchObject({
    user_id: admin.id,
    actor: tenants.superAdmin.id,
  });
});

test("users are listed newest first, page by page, and filtered", async () => {
  const [account] = tenants.partners[0].accounts;
  const path = `/admin/users?company_id=${account.id}`;
  const pages = await everyPage<{ id: number }>(api, `${path}&limit=1`, root);
  const ids = pages.flat().map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => b - a));
  expect(ids).toContain(account.owner.id);
  const list = async (query: string) => {
    const { body } = await api.call("GET", `/admin/users?${query}`, { token: root });
    return (body["data"] as { id: number }[]).map(({ id }) => id);
  };
  expect(await list("email=ROOT@platform.test")).toEqual([tenants.superAdmin.id]);
  expect(await list(`company_id=${account.id}&role=account_owner`)).toEqual([account.owner.id]);
  expect(await list(`company_id=${account.id}&is_active=false`)).toEqual([]);
});

test("users are found by a part of the name or the email, among 20,000 per page", async () => {
  const company = tenants.partners[1];
  const made = await create({
    company_id: company.id,
    name: "Noémie van der Berg",
    email: "nvdb@searched.example",
  });
  const id = Number(made.body["id"]);
  const search = async (q: string, more = "") => {
    const path = `/admin/users?q=${encodeURIComponent(q)}${more}`;
    const { body } = await api.call("GET", path, { token: root });
    return {
      ids: (body["data"] as { id: number }[]).map((one) => one.id),
      next: body["next_cursor"],
    };
  };
  for (const q of ["noémie VAN", "er berg", "NVDB@SEARCHED", "searched.ex"])
    expect([q, await search(q)]).toEqual([q, { ids: [id], next: null }]);
  for (const q of ["berg nvdb", "noemie", "no%berg"])
    expect([q, (await search(q)).ids]).toEqual([q, []]);
  expect((await search("noémie", `&company_id=${tenants.partners[0].id}`)).ids).toEqual([]);
  await database.db.sql`
    insert into users (company_id, email, name, role, created_at, updated_at)
    select ${company.id}, 'hay-' || n || '@searched.example', 'Hay', 'partner_admin', now(), now()
      from generate_series(1, 19999) n`;
  expect((await search("noémie")).ids).toEqual([id]);
  await create();
  const first = await search("noémie");
  expect(first).toEqual({ ids: [], next: expect.any(String) });
  expect((await search("noémie", `&cursor=${String(first.next)}`)).ids).toEqual([id]);
  expect((await search("noémie", `&company_id=${company.id}`)).ids).toEqual([id]);
  expect((await search("searched.example", "&limit=2")).ids).toHaveLength(2);
});

describe("deactivating a user", () => {
  test("revokes every token at once and permanently, and the audit log has their number", async () => {
    const user = await member();
    const first = await api.login(user.email);
    const second = await api.login(user.email);
    const made = await api.call("POST", "/account/api-token", { token: first });
    const all = [first, second, String(made.body["token"])];
    expect(await Promise.all(all.map(verify))).toEqual([200, 200, 200]);
    const { status, body } = await post(`/${user.id}/deactivate`);
    expect([status, body["is_active"]]).toEqual([200, false]);
    expect(await Promise.all(all.map(verify))).toEqual([401, 401, 401]);
    const rows = await database.db.sql`select 1 from tokens where user_id = ${user.id}`;
    expect(rows).toHaveLength(0);
    expect((await audited("USER_DEACTIVATED")).at(-1)).toEqual({
      user_id: user.id,
      revoked: 3,
      actor: tenants.superAdmin.id,
    });
    expect((await signIn(user.email)).status).toBe(401);
    const audits = await audited("USER_DEACTIVATED");
    expect((await post(`/${user.id}/deactivate`)).status).toBe(200);
    expect(await audited("USER_DEACTIVATED")).toEqual(audits);
    expect((await post(`/${user.id}/activate`)).body["is_active"]).toBe(true);
    expect(await Promise.all(all.map(verify))).toEqual([401, 401, 401]);
    expect((await signIn(user.email)).status).toBe(200);
  });

  test("while the user signs in leaves no valid token", async () => {
    for (let round = 0; round < 5; round++) {
      const user = await member();
      const [answers] = await Promise.all([
        Promise.all(Array.from({ length: 4 }, () => signIn(user.email))),
        post(`/${user.id}/deactivate`),
      ]);
      for (const { body, status } of answers)
        if (status === 200) expect(await verify(String(body["token"]))).toBe(401);
      const rows = await database.db.sql`select 1 from tokens where user_id = ${user.id}`;
      expect(rows).toHaveLength(0);
    }
  });
});

describe("the last super-admin", () => {
  test("cannot be deactivated: 409, and nothing is revoked", async () => {
    const { status, body } = await post(`/${tenants.superAdmin.id}/deactivate`);
    expect([status, body["code"]]).toEqual([409, "last_super_admin"]);
    expect(await verify(root)).toBe(200);
  });

  test("remains if several deactivate each other at once", async () => {
    const admins = [tenants.superAdmin];
    for (let i = 0; i < 3; i++)
      admins.push(
        await addUser(database.db, {
          companyId: tenants.superAdmin.companyId,
          role: "super_admin",
          email: `root-${i}@platform.test`,
        }),
      );
    const tokens = await Promise.all(admins.map(({ email }) => api.login(email)));
    await Promise.all(
      admins.map((_, i) => post(`/${admins[(i + 1) % 4]?.id}/deactivate`, undefined, tokens[i])),
    );
    const rows = await database.db.sql<{ id: number }[]>`
      select id from users where role = 'super_admin' and is_active`;
    expect(rows.length).toBeGreaterThanOrEqual(1);
    await database.db.sql`update users set is_active = true where id = ${tenants.superAdmin.id}`;
    root = await api.login(tenants.superAdmin.email);
  });
});

test("unlocking accepts the right password before the lock would have expired", async () => {
  const user = await member();
  for (let i = 0; i < 5; i++) await signIn(user.email, "wrong password");
  expect((await signIn(user.email)).status).toBe(429);
  const { body } = await api.call("GET", `/admin/users?email=${user.email}`, { token: root });
  const [shown] = body["data"] as { locked_until: string | null }[];
  expect(shown?.locked_until).toMatch(/^\d{4}-/);
  const unlocked = await post(`/${user.id}/unlock`);
  expect([unlocked.status, unlocked.body["locked_until"]]).toEqual([200, null]);
  expect((await signIn(user.email)).status).toBe(200);
  expect((await audited("USER_UNLOCKED")).at(-1)).toEqual({
    user_id: user.id,
    actor: tenants.superAdmin.id,
  });
});

test("a password reset is mailed as the support's, audited, and only to users with a password", async () => {
  const user = await member();
  expect((await post(`/${user.id}/password-reset`)).status).toBe(204);
  const mail = (await mailsTo(api.deps, user.email)).at(-1);
  expect(mail?.subject).toEndWith(" support sent you a password reset");
  const otp = await codeSentTo(api.deps, user.email);
  const body = { email: user.email, otp, type: "forgot_password" };
  expect((await api.call("POST", "/email-otp/verify", { body })).status).toBe(200);
  expect((await audited("PASSWORD_RESET_SENT")).at(-1)).toEqual({
    user_id: user.id,
    actor: tenants.superAdmin.id,
  });
  await database.db.sql`update users set password_hash = null where id = ${user.id}`;
  const { status, body: refused } = await post(`/${user.id}/password-reset`);
  expect([status, refused["code"]]).toEqual([409, "no_password"]);
});

let root = "";

let people = 0;

beforeAll(async () => {
  root = await api.login(tenants.superAdmin.email);
});

const post = (path: string, body?: unknown, token = root): Promise<Answer> =>
  api.call("POST", `/admin/users${path}`, { token, body });

const create = (fields: Record<string, unknown> = {}) =>
  post("", {
    company_id: tenants.partners[0].id,
    email: `new-${++people}@p1.test`,
    name: "New User",
    role: "partner_admin",
    password: PASSWORD,
    ...fields,
  });

const fieldsOf = ({ status, body }: Answer) => [
  status,
  Object.keys(body["errors"] ?? {}).toSorted(),
];

const verify = async (token: string) => (await api.call("GET", "/verify-token", { token })).status;

const signIn = (email: string, password = PASSWORD) =>
  api.call("POST", "/login", { body: { email, password } });

async function audited(action: string): Promise<unknown[]> {
  const rows = await database.db.sql<{ details: object; actor: number }[]>`
    select details - 'token' as details, actor_id as actor from audit_log
     where action = ${action} order by id`;
  return rows.map(({ details, actor }) => ({ ...details, actor }));
}

function member(): Promise<TestUser> {
  const company = tenants.partners[0];
  const email = `member-${++people}@p1.test`;
  return addUser(database.db, { companyId: company.id, role: "partner_admin", email });
}
