import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { startApi } from "../../support/api.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Browser, connect, nextStep, signInAtProvider, startProvider } from "../../support/sso.ts";
import { addTenants, addUser, type TestUser } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db, config: { ssoReturnTo: [APP] } }));

describe("single sign-on", () => {
  test("leads from discovery through the provider to an API call with the exchanged token", async () => {
    const end = await walk("ada@corp.test", "ada");
    expect(end.origin + end.pathname).toBe(`${ROOT}/dashboard`);
    const answer = await exchange(end.searchParams.get("code") ?? "");
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      token_type: "Bearer",
      expires_in: 86_400,
      user: { id: ada.id, email: ada.email },
      company: { type: "account" },
      location_count: 2,
    });
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const token = String(answer.body["token"]);
    const reviews = await api.call("GET", "/account/reviews", { token });
    expect(reviews.status).toBe(200);
    // A token from single sign-on may make the dashboard's token, as one from login may (contract 4.18).
    expect((await api.call("POST", "/account/api-token", { token })).status).toBe(201);
    const sessions = await api.call("GET", "/account/sessions", { token });
    expect(sessions.body["data"]).toMatchObject([{ method: "sso", is_current: true }]);
    expect((await audited("AUTH_LOGIN"))[0]).toMatchObject({ actor_id: ada.id });
    expect((await audited("SSO_LINKED"))[0]).toMatchObject({
      actor_id: ada.id,
      details: { connection_id: provider.connection, issuer: provider.issuer },
    });
  });

  test("links once: the second time only the subject decides", async () => {
    const linked = (await audited("SSO_LINKED")).length;
    await database.db.sql`update users set email = 'renamed@corp.test' where id = ${ada.id}`;
    const end = await walk("ada@corp.test", "ada");
    const answer = await exchange(end.searchParams.get("code") ?? "");
    expect(answer.body["user"]).toMatchObject({ id: ada.id, email: "renamed@corp.test" });
    expect(await audited("SSO_LINKED")).toHaveLength(linked);
  });

  test("starts by email as well as by connection", async () => {
    const browser = new Browser(api);
    const start = `${ROOT}/api/v1/auth/sso/redirect?email=ADA@corp.test`;
    const place = new URL(nextStep(await browser.get(start), start));
    expect(place.origin).toBe(provider.issuer);
    expect(place.searchParams.get("login_hint")).toBe("ada@corp.test");
    expect(place.searchParams.get("code_challenge_method")).toBe("S256");
    expect(place.searchParams.get("nonce")).toMatch(/^[\w-]{43}$/);
  });

  test("ends at an allowed URL and keeps its query", async () => {
    const query = `&return_to=${encodeURIComponent(APP)}`;
    const end = await walk("ada@corp.test", "ada", new Browser(api), query);
    expect(end.href).toStartWith("https://app.example/signed-in?from=sso&code=");
  });

  test("lets two tabs of one browser sign in at the same time", async () => {
    const browser = new Browser(api);
    const start = await discovered("ada@corp.test");
    const one = await signInAtProvider(browser, start, "ada");
    const two = await signInAtProvider(browser, start, "ada");
    for (const callback of [one, two])
      expect(nextStep(await browser.get(callback), callback)).toContain("?code=");
  });
});

const APP = "https://app.example/signed-in?from=sso";

type Provider = Awaited<ReturnType<typeof startProvider>>;

const ROOT = "http://localhost:3000";

let ada: TestUser;

let provider: Provider;

beforeAll(async () => {
  const admin = await api.login(tenants.superAdmin.email);
  const [first] = tenants.partners[0].accounts;
  const role = "account_user";
  ada = await addUser(database.db, { companyId: first.id, role, email: "ada@corp.test" });
  provider = await startProvider(
    (issuer) => connect(api, admin, { company_id: first.id, issuer, domains: ["corp.test"] }),
    { ada: { email: "Ada@Corp.test" } },
  );
});

afterAll(() => provider.stop());

async function audited(action: string) {
  const rows = await database.db.sql<{ details: Record<string, unknown>; actor_id: number }[]>`
    select details, actor_id from audit_log where action = ${action} order by id desc`;
  return rows;
}

async function discovered(email: string): Promise<string> {
  const { body } = await api.call("POST", "/auth/discover", { body: { email } });
  return String(body["sso_url"]);
}

/** Runs the flow from discovery to the URL to which the callback redirects. */
async function walk(email: string, login: string, browser = new Browser(api), query = "") {
  const callback = await signInAtProvider(browser, (await discovered(email)) + query, login);
  return new URL(nextStep(await browser.get(callback), callback));
}

const exchange = (code: string, more = "") =>
  api.call("GET", `/auth/sso/exchange?code=${code}${more}`);
