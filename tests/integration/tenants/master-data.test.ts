// Single records of master data, and the platform's own ids for them (contract 10.6).
import { beforeAll, describe, expect, test } from "bun:test";

import { PASSWORD, startApi, type Answer } from "../../support/api.ts";
import { connectStore, addProvider, created, report } from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";

describe("what something depends on is not deleted", () => {
  test.each([
    ["partners", () => partner().id, "it has"],
    ["accounts", () => account().id, "stores"],
    ["plans", planId, "accounts"],
    ["stores", () => account().storeIds[0] ?? 0, "location users"],
  ])("one of %s", async (kind, id, contents) => {
    const refused = await call("DELETE", `/${kind}/${await id()}`);
    expect([refused.status, refused.body["code"]]).toEqual([409, "in_use"]);
    expect(String(refused.body["message"])).toContain(contents);
    expect((await call("GET", `/${kind}/${await id()}`)).status).toBe(200);
  });

  test("the last super-admin", async () => {
    const refused = await call("DELETE", `/users/${tenants.superAdmin.id}`);
    expect([refused.status, refused.body["code"]]).toEqual([409, "last_super_admin"]);
  });

  test("a connection that has reported a review, its store and its provider", async () => {
    const provider = await addProvider(database.db, api.deps.box, `used-${++count}`);
    const site = await connectStore(database.db, account(), { provider, store: 1 });
    await report(api, provider, [created(site, "review-1")]);
    const refused = await call("DELETE", `/store-review-sites/${site}`);
    expect([refused.status, String(refused.body["message"])]).toEqual([
      409,
      expect.stringContaining("reported events"),
    ]);
    for (const path of [`/providers/${provider.id}`, `/stores/${account().storeIds[1]}`])
      expect((await call("DELETE", path)).body["code"]).toBe("in_use");
  });

  test("a person who has acted", async () => {
    const made = await call("POST", "/users", {
      ...(await NEW["users"]?.(++count)),
      password: PASSWORD,
    });
    await api.login(String(made.body["email"]));
    const refused = await call("DELETE", `/users/${idOf(made)}`);
    expect([refused.status, refused.body["code"]]).toEqual([409, "in_use"]);
  });
});

describe("fields that belong together", () => {
  test("a record stays with its parent", async () => {
    const [, other] = tenants.partners;
    const cases = [
      ["accounts", { ...(await wanted("accounts")) }, { partner_id: other.id }],
      ["stores", { ...(await wanted("stores")) }, { account_id: other.accounts[0].id }],
      ["users", { ...(await wanted("users")) }, { company_id: other.id }],
    ] as const;
    for (const [kind, body, moved] of cases) {
      const externalId = `fixed-${++count}`;
      await put(kind, externalId, body);
      expect(fieldsOf(await put(kind, externalId, { ...body, ...moved }))).toEqual([
        422,
        Object.keys(moved),
      ]);
    }
  });

  test("a user's role, company and stores", async () => {
    const id = idOf(await create("users"));
    const change = (body: Fields) => call("PATCH", `/users/${id}`, body);
    expect(fieldsOf(await change({ role: "partner_owner" }))).toEqual([422, ["role"]]);
    expect(fieldsOf(await change({ role: "location_user" }))).toEqual([422, ["store_ids"]]);
    const [store = 0] = account().storeIds;
    const moved = await change({ role: "location_user", store_ids: [store] });
    expect(moved.body).toMatchObject({ role: "location_user", store_ids: [store] });
    expect(fieldsOf(await change({ store_ids: [999_999] }))).toEqual([422, ["store_ids"]]);
    expect((await change({ role: "account_owner" })).body).toMatchObject({ store_ids: [] });
    expect(fieldsOf(await change({ email: account().owner.email }))).toEqual([422, ["email"]]);
    expect((await change({ email: "New.Address@Shop.example" })).body["email"]).toBe(
      "new.address@shop.example",
    );
  });

  test("a changed address is the one to sign in with, and the old one ends", async () => {
    const made = await call("POST", "/users", { ...(await wanted("users")), password: PASSWORD });
    const email = `moved-${++count}@shop.example`;
    await call("PATCH", `/users/${idOf(made)}`, { email });
    expect(await api.login(email)).toBeString();
    const body = { email: made.body["email"], password: PASSWORD };
    expect((await api.call("POST", "/login", { body })).status).not.toBe(200);
  });

  test("a changed address ends all access, and an open invitation is mailed to the new one", async () => {
    const made = await create("users");
    const [old] = await database.db.sql<{ hash: string }[]>`
      select code_hash as hash from invitations where user_id = ${idOf(made)}`;
    const mails = async () => (await database.db.sql`select from mails`).length;
    const before = await mails();
    await call("PATCH", `/users/${idOf(made)}`, { email: `again-${++count}@shop.example` });
    const [now] = await database.db.sql<{ hash: string }[]>`
      select code_hash as hash from invitations where user_id = ${idOf(made)}`;
    expect([await mails(), old?.hash === now?.hash]).toEqual([before + 1, false]);

    const person = await call("POST", "/users", { ...(await wanted("users")), password: PASSWORD });
    const token = await api.login(String(person.body["email"]));
    await call("PATCH", `/users/${idOf(person)}`, { name: "Same address" });
    expect((await api.call("GET", "/verify-token", { token })).status).toBe(200);
    await call("PATCH", `/users/${idOf(person)}`, { email: `away-${++count}@shop.example` });
    expect((await api.call("GET", "/verify-token", { token })).status).toBe(401);
    // The mail to the address before.
    expect(await mails()).toBe(before + 2);
  });

  test("a partner's domain", async () => {
    const white_label = { brand_name: "B", domain: `d${++count}.agency.example` };
    const [one, two] = [await create("partners"), await create("partners")];
    const change = (of: Answer, body: Fields) => call("PATCH", `/partners/${idOf(of)}`, body);
    expect((await change(one, { white_label })).body["white_label"]).toMatchObject({
      enabled: true,
      domain: white_label.domain,
    });
    expect((await change(one, { white_label })).status).toBe(200);
    expect(fieldsOf(await change(two, { white_label }))).toEqual([422, ["white_label.domain"]]);
    expect((await change(one, { white_label: null })).body["white_label"]).toMatchObject({
      enabled: false,
    });
    expect((await change(two, { white_label })).status).toBe(200);
    const [change1, change2] = await changesTo({ company_id: idOf(one) });
    expect(change1).toMatchObject({ changes: { white_label: { from: null, to: white_label } } });
    expect(change2).toMatchObject({ changes: { white_label: { from: white_label, to: null } } });
  });

  test.each<[string, string, Fields, Fields]>([
    ["plans", "plan_id", { features: ["reviews"] }, { features: ["reviews", "sso"] }],
    ["providers", "provider", { requires_timestamp: false }, { requires_timestamp: true }],
    ["stores", "store_id", { external_id: null }, { external_id: "changed" }],
  ])("%s is audited with the old and new value of what changed", async (kind, id, from, to) => {
    const { body } = await create(kind);
    const path = `/${kind}/${Number(body["id"])}`;
    await call("PATCH", path, { name: body["name"], ...to });
    await call("PATCH", path, { name: body["name"] });
    const [field = ""] = Object.keys(to);
    const rows = await changesTo({ [id]: kind === "providers" ? body["slug"] : body["id"] });
    expect(rows).toMatchObject([
      { fields: [field], changes: { [field]: { from: from[field], to: to[field] } } },
    ]);
    expect(Object.keys(rows[0]?.["changes"] ?? {})).toEqual([field]);
  });

  test("changes at once are audited one after the other", async () => {
    const { body } = await create("plans");
    const names = Array.from({ length: 12 }, (_, i) => `Plan ${i % 2} ${String(body["id"])}`);
    await Promise.all(names.map((name) => call("PATCH", `/plans/${Number(body["id"])}`, { name })));
    const rows = await changesTo({ plan_id: body["id"] });
    const steps = rows.map(({ changes }) => changes as { name: { from: string; to: string } });
    expect(steps[0]?.name.from).toBe(String(body["name"]));
    for (const [i, { name }] of steps.slice(1).entries())
      expect(name.from).toBe(steps[i]?.name.to ?? "");
  });
});

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));
let root = "";
beforeAll(async () => {
  root = await api.login(tenants.superAdmin.email);
});

/** The path of each kind, with the body of a new record; `n` makes it unique. */
const NEW: Readonly<Record<string, (n: number) => Promise<Fields>>> = {
  partners: async (n) => ({ name: `Agency ${n}` }),
  accounts: async (n) => ({ name: `Shop ${n}`, partner_id: partner().id, plan_id: await planId() }),
  plans: async (n) => ({ name: `Plan ${n}`, features: ["reviews"] }),
  stores: async (n) => ({ name: `Store ${n}`, account_id: account().id }),
  users: async (n) => ({
    company_id: account().id,
    email: `person-${n}@shop.example`,
    name: `Person ${n}`,
    role: "account_user",
  }),
  providers: async (n) => ({ slug: `site-${n}`, name: `Site ${n}` }),
  "store-review-sites": async (n) => ({
    store_id: idOf(await call("POST", "/stores", await NEW["stores"]?.(n))),
    provider_id: idOf(await call("POST", "/providers", await NEW["providers"]?.(n))),
  }),
};
const KINDS = Object.keys(NEW);
const SYNCED = KINDS.filter((kind) => kind !== "plans" && kind !== "providers");

describe.each(KINDS)("one of %s", (kind) => {
  test("is shown as in the list, changed, and deleted", async () => {
    const made = await create(kind);
    const path = `/${kind}/${idOf(made)}`;
    const { secret: _secret, ...shown } = made.body;
    expect((await call("GET", path)).body).toEqual(shown);
    const field = kind === "store-review-sites" ? "external_id" : "name";
    const changed = await call("PATCH", path, { [field]: "Another 名" });
    expect(changed.status).toBe(200);
    const { updated_at, ...same } = shown;
    expect(changed.body).toMatchObject({ ...same, [field]: "Another 名" });
    if (updated_at !== undefined)
      expect([updated_at, changed.body["updated_at"]].toSorted()[0]).toBe(updated_at);
    expect((await call("GET", path)).body).toEqual(changed.body);
    expect((await call("DELETE", path)).status).toBe(204);
    expect((await call("GET", path)).status).toBe(404);
    expect((await call("DELETE", path)).status).toBe(404);
    const verbs = (await audited(kind)).map(({ action }) => action);
    expect(verbs.slice(-3)).toEqual(
      ["CREATED", "UPDATED", "DELETED"].map((verb) =>
        expect.stringMatching(new RegExp(`_${verb}$`)),
      ),
    );
  });

  test("keeps everything if a change names no field, an unknown one or an invalid one", async () => {
    const made = await create(kind);
    const path = `/${kind}/${idOf(made)}`;
    const before = (await call("GET", path)).body;
    expect((await call("PATCH", path, {})).body).toEqual(before);
    for (const body of [{ id: 1 }, { name: "" }, { is_active: false }])
      expect((await call("PATCH", path, body)).status).toBe(422);
    expect((await call("GET", path)).body).toEqual(before);
  });

  test("is a 404 with a malformed or unknown id", async () => {
    for (const id of ["0", "x", "99999999999", "2147483647"])
      for (const method of ["GET", "PATCH", "DELETE"])
        expect((await call(method, `/${kind}/${id}`, {})).status).toBe(404);
  });
});

describe.each(SYNCED)("one of %s that the platform names", (kind) => {
  test("is created, then changed by the same request, and found by its id", async () => {
    const [body, externalId] = [await wanted(kind), `${kind}/${++count} é%`];
    const made = await put(kind, externalId, body);
    expect([made.status, made.body["external_id"]]).toEqual([201, externalId]);
    const again = await put(kind, externalId, body);
    expect(again.status).toBe(200);
    const { updated_at: _at, ...same } = made.body;
    expect(again.body).toMatchObject(same);
    if ("name" in body) {
      const renamed = await put(kind, externalId, { ...body, name: "Renamed" });
      expect(renamed.body).toMatchObject({ id: idOf(made), name: "Renamed" });
    }
  });

  test("is created once by requests at the same time", async () => {
    const [body, externalId] = [await wanted(kind), `once-${++count}`];
    const answers = await Promise.all(Array.from({ length: 6 }, () => put(kind, externalId, body)));
    const statuses = answers.map(({ status }) => status).toSorted();
    // Another unique field of the same record may decide first.
    expect(statuses.filter((status) => status === 201)).toHaveLength(1);
    expect(statuses.every((status) => [200, 201, 422].includes(status))).toBe(true);
    expect(new Set(answers.flatMap((one) => one.body["id"] ?? [])).size).toBe(1);
  });

  test("cannot have the id of another record of its kind, and gives it up", async () => {
    const [one, two] = [await create(kind), await create(kind)];
    const externalId = `taken-${++count}`;
    const change = (of: Answer, external_id: string | null) =>
      call("PATCH", `/${kind}/${idOf(of)}`, { external_id });
    expect((await change(one, externalId)).status).toBe(200);
    expect(fieldsOf(await change(two, externalId))).toEqual([422, ["external_id"]]);
    expect((await change(one, null)).body["external_id"]).toBeNull();
    expect((await change(two, externalId)).status).toBe(200);
  });

  test.each([
    ["x".repeat(200), 201],
    ["x".repeat(201), 404],
    ["%00", 404],
  ])("has an id of 1 to 200 characters", async (externalId, status) => {
    const body = await wanted(kind);
    const path = `/${kind}/external/${externalId}`;
    const made = await call("PUT", path, body);
    expect(made.status).toBe(status);
    if (status === 201) await call("DELETE", `/${kind}/${idOf(made)}`);
  });

  test("is listed if it changed since an instant", async () => {
    const [old, before] = [await create(kind), await create(kind)];
    await Bun.sleep(5);
    const [row] = await database.db.sql<{ at: Date }[]>`select clock_timestamp() as at`;
    await Bun.sleep(5);
    const { body } = await call("PATCH", `/${kind}/${idOf(before)}`, {
      external_id: `s-${++count}`,
    });
    const after = await create(kind);
    const since = kind === "users" ? String(body["updated_at"]) : (row?.at.toISOString() ?? "");
    const list = await call("GET", `/${kind}?updated_since=${encodeURIComponent(since)}`);
    const ids = (list.body["data"] as { id: number }[]).map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining([idOf(after), idOf(before)]));
    expect(ids).not.toContain(idOf(old));
    expect((await call("GET", `/${kind}?updated_since=yesterday`)).status).toBe(422);
  });
});

type Fields = Readonly<Record<string, unknown>>;

let count = 0;

const partner = () => tenants.partners[0];
const account = () => partner().accounts[0];

const call = (method: string, path: string, body?: object) =>
  api.call(method, `/admin${path}`, { token: root, ...(body && method !== "GET" && { body }) });

async function create(kind: string): Promise<Answer> {
  const made = await call("POST", `/${kind}`, await NEW[kind]?.(++count));
  if (made.status !== 201) throw new Error(`The create was answered ${made.text}`);
  return made;
}

const wanted = async (kind: string): Promise<Fields> => (await NEW[kind]?.(++count)) ?? {};

const put = (kind: string, externalId: string, body: object) =>
  call("PUT", `/${kind}/external/${encodeURIComponent(externalId)}`, body);

const idOf = ({ body }: Answer) => Number(body["id"]);

const fieldsOf = ({ status, body }: Answer) => [status, Object.keys(body["errors"] ?? {})];

async function planId(): Promise<number> {
  const { body } = await call("GET", "/plans");
  return (
    (body["data"] as { id: number; name: string }[]).find(({ name }) => name === "Growth")?.id ?? 0
  );
}

const PREFIXES: Readonly<Record<string, string>> = {
  partners: "COMPANY",
  accounts: "COMPANY",
  plans: "PLAN",
  stores: "STORE",
  users: "USER",
  providers: "PROVIDER",
  "store-review-sites": "STORE_REVIEW_SITE",
};

/** Reads the details of the audit rows about changes of a record. */
async function changesTo(record: Fields): Promise<Record<string, object>[]> {
  const rows = await database.db.sql<{ details: Record<string, object> }[]>`
    select details from audit_log
     where action like '%_UPDATED' and details @> ${JSON.stringify(record)}::text::jsonb
     order by id`;
  return rows.map(({ details }) => details);
}

async function audited(kind: string): Promise<{ action: string }[]> {
  const actions = ["CREATED", "UPDATED", "DELETED"].map((verb) => `${PREFIXES[kind]}_${verb}`);
  return database.db.sql<{ action: string }[]>`
    select action from audit_log where action = any(${actions}) order by id`;
}
