import { beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";

import { fingerprint } from "../../../src/lib/secrets.ts";
import { providerSecretsChunk } from "../../../src/tenants/actions/stores.ts";
import { everyPage, PASSWORD, startApi, type Answer } from "../../support/api.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));

describe("partners and accounts", () => {
  test("are created with their branding, plan and stores, and audited", async () => {
    const partner = await post("/partners", {
      name: "New Agency",
      primary_color: "#ABCDEF",
      logo_url: "https://agency.example/logo.svg",
      white_label: { brand_name: "Agency Reviews", domain: "reviews.agency.example" },
    });
    expect(partner.status).toBe(201);
    expect(partner.body).toMatchObject({
      name: "New Agency",
      is_active: true,
      primary_color: "#ABCDEF",
      white_label: {
        enabled: true,
        brand_name: "Agency Reviews",
        domain: "reviews.agency.example",
      },
    });
    const plan_id = await planId();
    const account = await post("/accounts", {
      name: "New Shop",
      partner_id: idOf(partner),
      plan_id,
      stores: ["North", "South"],
    });
    expect(account.status).toBe(201);
    expect(account.body).toMatchObject({
      partner_id: idOf(partner),
      plan: { id: plan_id, name: "Growth" },
      primary_color: "#ABCDEF",
      store_ids: [expect.any(Number), expect.any(Number)],
    });
    expect((await audited("COMPANY_CREATED")).slice(-2)).toEqual([
      { company_id: idOf(partner), type: "partner", actor: tenants.superAdmin.id },
      { company_id: idOf(account), type: "account", actor: tenants.superAdmin.id },
    ]);
  });

  test("refuse an account as the partner of an account", async () => {
    const [one] = tenants.partners;
    const nested = { name: "x", partner_id: one.accounts[0].id, plan_id: await planId() };
    expect(fieldsOf(await post("/accounts", nested))).toEqual([422, ["partner_id"]]);
  });

  test("are listed newest first, page by page, and filtered", async () => {
    const pages = await everyPage<{ id: number }>(api, "/admin/partners?limit=1", root);
    const ids = pages.flat().map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => b - a));
    expect(ids).toEqual(expect.arrayContaining(tenants.partners.map(({ id }) => id)));
    const [one] = tenants.partners;
    const accounts = await get(`/accounts?partner_id=${one.id}&is_active=true`);
    expect((accounts.body["data"] as { id: number }[]).map(({ id }) => id)).toEqual(
      one.accounts.map(({ id }) => id).toReversed(),
    );
  });
});

test("companies are found by a part of their name, and accounts contain their partner and stores", async () => {
  const [, two] = tenants.partners;
  const named = async (path: string) => (await get(path)).body["data"];
  expect(await named("/partners?name=P2")).toEqual([expect.objectContaining({ id: two.id })]);
  const [account] = two.accounts;
  expect(await named("/accounts?name=p2-A1")).toEqual([
    expect.objectContaining({
      id: account.id,
      partner_name: "p2",
      store_ids: account.storeIds,
      stores: [
        { id: account.storeIds[0], name: "p2-a1 east" },
        { id: account.storeIds[1], name: "p2-a1 west" },
      ],
    }),
  ]);
  for (const name of ["%25", "_", "nobody"])
    expect(await named(`/accounts?name=${name}`)).toEqual([]);
});

test("a company of any type is shown with its name; a missing one is a 404", async () => {
  const { superAdmin, partners } = tenants;
  const platform = superAdmin.companyId;
  expect((await get(`/companies/${platform}`)).body).toEqual({
    id: platform,
    type: "platform",
    name: "Platform",
  });
  const { id } = partners[0].accounts[0];
  expect((await get(`/companies/${id}`)).body).toEqual({ id, type: "account", name: "p1-a1" });
  for (const missing of ["0", "x", "2147483647"])
    expect((await get(`/companies/${missing}`)).status).toBe(404);
});

describe("deactivating", () => {
  test("an account revokes the tokens of its users at once and permanently, and no others", async () => {
    const [, two] = tenants.partners;
    const [shut, open] = two.accounts;
    const token = await api.login(shut.owner.email);
    const other = await api.login(open.owner.email);
    const refresh = await tokensOf([shut.id]);
    const { status, body } = await post(`/accounts/${shut.id}/deactivate`);
    expect([status, body["is_active"]]).toEqual([200, false]);
    expect(await verify(token)).toBe(401);
    expect(await verify(other)).toBe(200);
    expect(await tokensOf([shut.id])).toBe(0);
    const login = { email: shut.owner.email, password: PASSWORD };
    expect((await api.call("POST", "/login", { body: login })).status).toBe(401);
    expect((await audited("COMPANY_DEACTIVATED")).at(-1)).toEqual({
      company_id: shut.id,
      type: "account",
      revoked: refresh,
      actor: tenants.superAdmin.id,
    });
    expect((await post(`/accounts/${shut.id}/activate`)).body["is_active"]).toBe(true);
    expect(await verify(token)).toBe(401);
    expect(await verify(await api.login(shut.owner.email))).toBe(200);
  });

  test("an account while its users sign in leaves no valid token, also after activation", async () => {
    const [, two] = tenants.partners;
    const [account] = two.accounts;
    const login = { email: account.owner.email, password: PASSWORD };
    for (let round = 0; round < 3; round++) {
      const [answers] = await Promise.all([
        Promise.all(Array.from({ length: 4 }, () => api.call("POST", "/login", { body: login }))),
        post(`/accounts/${account.id}/deactivate`),
      ]);
      const issued = answers.flatMap(({ status, body }) =>
        status === 200 ? [String(body["token"])] : [],
      );
      const dead = issued.map(() => 401);
      expect(await Promise.all(issued.map(verify))).toEqual(dead);
      await post(`/accounts/${account.id}/activate`);
      expect(await Promise.all(issued.map(verify))).toEqual(dead);
    }
  });

  test("again changes nothing and is not audited", async () => {
    const [, two] = tenants.partners;
    const before = (await audited("COMPANY_ACTIVATED")).length;
    expect((await post(`/partners/${two.id}/activate`)).status).toBe(200);
    expect(await audited("COMPANY_ACTIVATED")).toHaveLength(before);
    // The path of the other company type does not find it.
    expect((await post(`/accounts/${two.id}/deactivate`)).status).toBe(404);
  });
});

describe("providers", () => {
  const report = (slug: string, secret: string, timestamp?: number) => {
    const raw = `{"events":[]}`;
    const content = timestamp === undefined ? raw : `${timestamp}.${raw}`;
    const digest = createHmac("sha256", secret).update(content).digest("hex");
    const timed = timestamp !== undefined && { "X-Provider-Timestamp": String(timestamp) };
    return api.call("POST", `/providers/${slug}/events`, {
      body: raw,
      headers: { "X-Provider-Signature": `sha256=${digest}`, ...timed },
    });
  };
  const shownOf = ({ secret, ...provider }: Answer["body"]) => [String(secret), provider] as const;

  test("show their secret once, at creation; without a grace period the rotated one ends at once", async () => {
    const made = await post("/providers", { slug: "google", name: "Google" });
    expect(made.status).toBe(201);
    const secret = String(made.body["secret"]);
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
    // A valid signature is followed by the validation of fields.
    expect((await report("google", secret)).status).toBe(422);
    const rotated = await post(`/providers/${idOf(made)}/secret`, { grace_period_hours: 0 });
    const [current, provider] = shownOf(rotated.body);
    expect(provider).toEqual({
      id: idOf(made),
      slug: "google",
      name: "Google",
      requires_timestamp: false,
      secret_fingerprint: fingerprint(current),
      previous_secret_expires_at: null,
      last_refused_at: null,
    });
    expect(rotated.headers.get("cache-control")).toBe("no-store");
    expect((await report("google", secret)).status).toBe(401);
    expect((await report("google", current)).status).toBe(422);
    const list = await get("/providers");
    expect(list.body["data"]).toEqual([{ ...provider, last_refused_at: expect.any(String) }]);
    expect((await audited("PROVIDER_SECRET_ROTATED")).at(-1)).toEqual({
      provider: "google",
      grace_period_hours: 0,
      actor: tenants.superAdmin.id,
    });
  });

  test("keep the previous secret for 24 hours or as asked, and only one; maintenance then removes it", async () => {
    const made = await post("/providers", { slug: "grace", name: "Grace" });
    const path = `/providers/${idOf(made)}/secret`;
    const [first] = shownOf(made.body);
    const [second, shown] = shownOf((await post(path)).body);
    const hours =
      (Date.parse(String(shown["previous_secret_expires_at"])) - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(23.9);
    expect(hours).toBeLessThan(24.1);
    expect(shown["secret_fingerprint"]).toBe(fingerprint(second));
    for (const secret of [first, second]) expect((await report("grace", secret)).status).toBe(422);
    const [stored] = await database.db.sql<{ sealed: string }[]>`
      select sealed_previous_secret as sealed from review_sites where slug = 'grace'`;
    expect(api.deps.box.open(stored?.sealed ?? "", "provider:grace")).toBe(first);

    const [third] = shownOf((await post(path, { grace_period_hours: 168 })).body);
    expect((await report("grace", first)).status).toBe(401);
    for (const secret of [second, third]) expect((await report("grace", secret)).status).toBe(422);
    expect(await providerSecretsChunk({ db: database.db })).toEqual({ rows: 0 });
    await database.db.sql`
      update review_sites set previous_secret_expires_at = now() - interval '1 second' where slug = 'grace'`;
    expect(await providerSecretsChunk({ db: database.db })).toEqual({ rows: 1 });
    expect((await report("grace", second)).status).toBe(401);
    expect((await report("grace", third)).status).toBe(422);
    expect((await get(`/providers/${idOf(made)}`)).body["previous_secret_expires_at"]).toBeNull();

    for (const outside of [-1, 169, 1.5, "24"])
      expect(fieldsOf(await post(path, { grace_period_hours: outside }))).toEqual([
        422,
        ["grace_period_hours"],
      ]);
    expect((await report("grace", third)).status).toBe(422);
  });

  test("rotated twice at once leave one of the two new secrets current and the other valid", async () => {
    const made = await post("/providers", { slug: "twice", name: "Twice" });
    const path = `/providers/${idOf(made)}/secret`;
    const rotated = await Promise.all([post(path), post(path)]);
    for (const { body } of rotated)
      expect((await report("twice", String(body["secret"]))).status).toBe(422);
    expect((await report("twice", String(made.body["secret"]))).status).toBe(401);
  });

  test("refuse a missing timestamp when they require it", async () => {
    const made = await post("/providers", { slug: "timed", name: "Timed" });
    const [secret] = shownOf(made.body);
    const nowS = () => Math.floor(Date.now() / 1000);
    const statuses = async () => [
      (await report("timed", secret)).status,
      (await report("timed", secret, nowS())).status,
    ];
    expect(await statuses()).toEqual([422, 422]);
    const changed = await api.call("PATCH", `/admin/providers/${idOf(made)}`, {
      token: root,
      body: { requires_timestamp: true },
    });
    expect([changed.status, changed.body["requires_timestamp"]]).toEqual([200, true]);
    expect(await statuses()).toEqual([401, 422]);
  });

  test("have a unique slug that is valid in paths", async () => {
    const bad = ["", "Google", "a/b", "-a", "x".repeat(65), "google"];
    for (const slug of bad)
      expect(fieldsOf(await post("/providers", { slug, name: "x" }))).toEqual([422, ["slug"]]);
  });
});

let root = "";

beforeAll(async () => {
  root = await api.login(tenants.superAdmin.email);
});

const get = (path: string) => api.call("GET", `/admin${path}`, { token: root });

const post = (path: string, body?: unknown): Promise<Answer> =>
  api.call("POST", `/admin${path}`, { token: root, body });

const idOf = ({ body, text }: Answer): number => {
  if (body["id"] === undefined) throw new Error(`No id: ${text}`);
  return Number(body["id"]);
};

const fieldsOf = ({ status, body }: Answer) => [
  status,
  Object.keys(body["errors"] ?? {}).toSorted(),
];

const verify = async (token: string) => (await api.call("GET", "/verify-token", { token })).status;

async function audited(action: string): Promise<Record<string, unknown>[]> {
  const rows = await database.db.sql<{ details: Record<string, unknown>; actor: number }[]>`
    select details - 'token' as details, actor_id as actor from audit_log
     where action = ${action} order by id`;
  return rows.map(({ details, actor }) => ({ ...details, actor }));
}

async function tokensOf(companyIds: readonly number[]): Promise<number> {
  const [row] = await database.db.sql<{ n: number }[]>`
    select count(*)::int as n from tokens t join users u on u.id = t.user_id
     where u.company_id = any(${[...companyIds]}::int[])`;
  return row?.n ?? 0;
}

async function planId(): Promise<number> {
  const [row] = await database.db.sql<{ id: number }[]>`select min(id) as id from plans`;
  return row?.id ?? 0;
}
