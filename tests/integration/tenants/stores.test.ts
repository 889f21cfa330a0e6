import { beforeAll, describe, expect, test } from "bun:test";

import { everyPage, startApi, type Answer } from "../../support/api.ts";
import { addProvider, created, report } from "../../support/factory.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));

describe("plans", () => {
  test("are created with their features, listed, and counted and listed by the accounts with them", async () => {
    const made = await post("/plans", { name: "Everything", features: ["reviews", "flags"] });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      id: expect.any(Number),
      name: "Everything",
      features: ["reviews", "flags"],
      accounts: 0,
    });
    expect((await get("/plans")).body["data"]).toContainEqual(made.body);
    const plan_id = Number(made.body["id"]);
    const account = { name: name(), partner_id: tenants.partners[0].id, plan_id };
    expect((await post("/accounts", account)).status).toBe(201);
    const used = { ...made.body, accounts: 1 };
    expect((await get("/plans")).body["data"]).toContainEqual(used);
    expect((await get(`/plans/${plan_id}`)).body).toEqual(used);
    const { body } = await get(`/accounts?plan_id=${plan_id}`);
    expect(body["data"]).toEqual([expect.objectContaining({ name: account.name })]);
  });

  test("are listed page by page, the newest first", async () => {
    for (let i = 0; i < 3; i++) await post("/plans", { name: name() });
    const pages = await everyPage<{ id: number }>(api, "/admin/plans?limit=2", root);
    const ids = pages.flat().map(({ id }) => id);
    expect(pages.length).toBeGreaterThan(1);
    expect(ids).toEqual(ids.toSorted((a, b) => b - a));
  });

  test("have at most 100 different features with valid names", async () => {
    const many = (length: number) => Array.from({ length }, (_, i) => `f${i}`);
    expect((await post("/plans", { name: name(), features: many(100) })).status).toBe(201);
    for (const features of [many(101), ["a", "a"], ["A b"]])
      expect((await post("/plans", { name: name(), features })).status).toBe(422);
  });
});

describe("stores", () => {
  test("are created for an account, and listed with the newest first", async () => {
    const [{ id: partner, accounts }] = tenants.partners;
    const account = accounts[0].id;
    const made = [];
    for (let i = 0; i < 3; i++) made.push(await newStore());
    const path = `/admin/stores?limit=2&account_id=${account}`;
    const rows = (await everyPage<{ id: number }>(api, path, root)).flat();
    expect(rows.slice(0, 3).map(({ id }) => id)).toEqual(made.toReversed());
    expect(rows[0]).toMatchObject({ account_id: account, partner_id: partner });
  });

  test("are listed for their partner, and for no other", async () => {
    const [one, two] = tenants.partners;
    const store = await newStore();
    const [own, foreign] = await Promise.all([
      api.login(one.owner.email),
      api.login(two.owner.email),
    ]);
    const seen = async (token: string, query = "") =>
      (
        await everyPage<{ id: number; partner_id: number }>(
          api,
          `/partner/stores?limit=2${query}`,
          token,
        )
      ).flat();
    const rows = await seen(own);
    expect(rows[0]).toMatchObject({ id: store });
    expect(new Set(rows.map((row) => row.partner_id))).toEqual(new Set([one.id]));
    expect((await seen(foreign)).every((row) => row.partner_id === two.id)).toBe(true);
    const ofOthers = `&account_id=${one.accounts[0].id}`;
    expect(await seen(own, ofOthers)).toContainEqual(expect.objectContaining({ id: store }));
    expect(await seen(foreign, ofOthers)).toEqual([]);
  });

  test("are found by a part of their name", async () => {
    const store = await newStore();
    const { body } = await get(`/stores/${store}`);
    const part = String(body["name"]).slice(1).toUpperCase();
    const found = (await get(`/stores?q=${encodeURIComponent(part)}`)).body["data"];
    expect(found).toContainEqual(body);
    expect((await get("/stores?q=no+store+has+this+name")).body["data"]).toEqual([]);
  });

  test("need an existing account", async () => {
    expect(
      errorsOf(await post("/stores", { account_id: tenants.partners[0].id, name: "x" })),
    ).toEqual([422, { account_id: ["is not an account"] }]);
  });
});

describe("a store's connection to a review site", () => {
  test("can be named by the provider's events from then on", async () => {
    const provider = await addProvider(database.db, api.deps.box, "stores-provider");
    const { body } = await get("/providers");
    const rows = body["data"] as { id: number; slug: string }[];
    const row = rows.find(({ slug }) => slug === provider.slug);
    const store_id = await newStore();
    const made = await post("/store-review-sites", { store_id, provider_id: row?.id });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      id: expect.any(Number),
      store_id,
      account_id: tenants.partners[0].accounts[0].id,
      partner_id: tenants.partners[0].id,
      provider: provider.slug,
      pull: { connected: true, error_code: null },
      post: { connected: true, error_code: null },
      external_id: null,
      updated_at: expect.any(String),
    });
    const listed = await get(`/store-review-sites?store_id=${store_id}`);
    expect(listed.body["data"]).toEqual([made.body]);
    expect((await get(`/stores/${store_id}`)).body).toMatchObject({ review_sites: [made.body] });
    const { body: stores } = await get(`/stores?account_id=${Number(made.body["account_id"])}`);
    expect(stores["data"]).toContainEqual(expect.objectContaining({ review_sites: [made.body] }));
    const event = created(Number(made.body["id"]), crypto.randomUUID());
    const lastReviewAt = async () => {
      const shown = (await get(`/stores/${store_id}`)).body["review_sites"];
      return (shown as { last_review_at: string | null }[]).map((one) => one.last_review_at);
    };
    expect(await lastReviewAt()).toEqual([null]);
    expect(await report(api, provider, [event])).toMatchObject({ accepted: 1 });
    expect(await lastReviewAt()).toEqual([expect.any(String)]);
  });

  test("is created once, also by two concurrent requests", async () => {
    const link = { store_id: await newStore(), provider_id: await newProvider() };
    const answers = await Promise.all([
      post("/store-review-sites", link),
      post("/store-review-sites", link),
    ]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 422]);
    expect(errorsOf(await post("/store-review-sites", link))).toEqual([
      422,
      { provider_id: ["is already connected to this store"] },
    ]);
  });

  test("reports both a missing store and a missing provider", async () => {
    const answer = await post("/store-review-sites", { store_id: 999_999, provider_id: 999_999 });
    expect(errorsOf(answer)).toEqual([
      422,
      { store_id: ["is not a store"], provider_id: ["is not a provider"] },
    ]);
  });
});

test("creations are audited, with ids alone", async () => {
  const store = await newStore();
  await post("/store-review-sites", { store_id: store, provider_id: await newProvider() });
  const rows = await database.db.sql<{ action: string; details: object }[]>`
    select action, details from audit_log
     where action in ('STORE_CREATED', 'STORE_REVIEW_SITE_CREATED') order by id desc limit 2`;
  expect(rows.map(({ action }) => action)).toEqual(["STORE_REVIEW_SITE_CREATED", "STORE_CREATED"]);
  expect(rows[1]?.details).toEqual({
    store_id: store,
    company_id: tenants.partners[0].accounts[0].id,
    token: { jti: expect.any(String), kind: "access", client_id: null },
  });
});

let root = "";

beforeAll(async () => {
  root = await api.login(tenants.superAdmin.email);
});

const post = (path: string, body: unknown, token = root): Promise<Answer> =>
  api.call("POST", `/admin${path}`, { token, body });

const get = (path: string): Promise<Answer> => api.call("GET", `/admin${path}`, { token: root });

const errorsOf = ({ status, body }: Answer) => [status, body["errors"]];

const name = () => `Made ${crypto.randomUUID()}`;

async function newStore(): Promise<number> {
  const [{ accounts }] = tenants.partners;
  const { body } = await post("/stores", { account_id: accounts[0].id, name: name() });
  return Number(body["id"]);
}

async function newProvider(): Promise<number> {
  const { body } = await post("/providers", { slug: `p${crypto.randomUUID()}`, name: "Site" });
  return Number(body["id"]);
}
