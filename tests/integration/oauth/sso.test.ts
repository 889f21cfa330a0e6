import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import type { Browser, BrowserContext, Page } from "playwright-core";

import { PASSWORD, type TestApi } from "../../support/api.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import { seriousFaults, serveDashboard } from "../../support/dashboard/dashboard.ts";
import { addClient, authorizeParams, formOf, newPkce, postForm } from "../../support/oauth.ts";
import { createDatabase } from "../../support/postgres.ts";
import { connect, endOfTrip, startProvider } from "../../support/sso.ts";
import { addTenants, addUser } from "../../support/tenants.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

// Tests single sign-on at the authorize page, with a complete identity provider.

describe.skipIf(lacks("chromium"))("single sign-on at the authorize page", () => {
  test("lets a person consent, and the client gets tokens of that user", async () => {
    const { context, page, client, pkce } = await visit();
    expect(await seriousFaults(page)).toEqual([]);
    await leave(page);
    await signInAtProvider(page, "ada");
    await page.getByRole("heading", { name: "Allow Dashboards by Acme to act for you?" }).waitFor();
    expect(await page.getByRole("main").innerText()).toContain("ada@corp.test");
    await page.getByRole("button", { name: "Allow" }).click();
    await page.waitForURL(`${CALLBACK}?code=*`);
    const { status, body } = await postForm(api, "/oauth/token", {
      grant_type: "authorization_code",
      code: new URL(page.url()).searchParams.get("code") ?? "",
      redirect_uri: CALLBACK,
      code_verifier: pkce.verifier,
      client_id: client.clientId,
      client_secret: client.secret,
    });
    expect(status).toBe(200);
    const token = String(body["access_token"]);
    const { body: known } = await api.call("GET", "/verify-token", { token });
    expect(known).toMatchObject({ user: { email: "ada@corp.test" } });
    await context.close();
  });

  test("redirects back at once to a first-party client", async () => {
    const { context, page } = await visit({ firstParty: true });
    await leave(page);
    await signInAtProvider(page, "ada");
    await page.waitForURL(`${CALLBACK}?code=*`);
    expect(new URL(page.url()).searchParams.get("state")).toBe("state-1");
    await context.close();
  });

  test("tells an address without a provider so, and a password still signs in", async () => {
    const { context, page } = await visit();
    await leave(page, tenants.partners[0].owner.email);
    expect(await problem(page)).toContain("There is no single sign-on for this address.");
    expect(await page.getByLabel("Email").inputValue()).toBe(tenants.partners[0].owner.email);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("button", { name: "Allow" }).waitFor();
    await context.close();
  });

  test("brings a person whom the provider knows and we do not back to the page", async () => {
    const { context, page } = await visit();
    await leave(page);
    await signInAtProvider(page, "stranger");
    await page.waitForURL(`${root}/oauth/authorize/sso?*`);
    expect(await problem(page)).toBe(REFUSED);
    expect(await seriousFaults(page)).toEqual([]);
    await page.getByRole("button", { name: "Cancel and go back" }).click();
    await page.waitForURL(`${CALLBACK}?error=access_denied*`);
    await context.close();
  });

  test("rejects a person of another partner's accounts like anybody else without access", async () => {
    const { context, page } = await visit({ companyId: tenants.partners[1].id });
    await leave(page);
    await signInAtProvider(page, "ada");
    await page.waitForURL(`${root}/oauth/authorize/sso?*`);
    expect(await problem(page)).toBe(REFUSED);
    await context.close();
  });

  test("ends only in the browser that began it, and only once", async () => {
    const { context, page } = await visit();
    const end = await endOf(page, "ada");
    const other = await visit();
    await other.page.goto(end.href);
    expect(await problem(other.page)).toContain("belongs to another browser");
    await other.context.close();
    await page.goto(end.href);
    await page.getByRole("button", { name: "Allow" }).waitFor();
    await page.goto(end.href);
    expect(await problem(page)).toBe(REFUSED);
    await context.close();
  });

  test("rejects a code of another flow, and a ticket of the form", async () => {
    const theirs = await visit();
    const stolen = (await endOf(theirs.page, "mallory")).searchParams.get("code") ?? "";
    await theirs.context.close();
    const { context, page } = await visit();
    const formTicket = await page.locator("input[name=ticket]").inputValue();
    const place = (ticket: string) =>
      `${root}/oauth/authorize/sso?${formOf({ ticket, code: stolen })}`;
    await page.goto(place(formTicket));
    expect(await problem(page)).toContain("has expired or belongs to another browser");
    await page.goBack();
    await page.getByLabel("Email").waitFor();
    const own = await endOf(page, "ada");
    await page.goto(place(own.searchParams.get("ticket") ?? ""));
    expect(await problem(page)).toBe(REFUSED);
    await context.close();
  });

  test("rejects a code of the authorize page at the dashboard's exchange", async () => {
    const { context, page } = await visit();
    const code = (await endOf(page, "ada")).searchParams.get("code") ?? "";
    expect((await api.call("GET", `/auth/sso/exchange?code=${code}`)).status).toBe(400);
    await context.close();
  });
});

const database = browserFixture(createDatabase);
const tenants = browserFixture(() => addTenants(database.db));

let api: TestApi;

let root: string;

let provider: Awaited<ReturnType<typeof startProvider>>;

let browser: Browser;

const callback = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("Back") });

const CALLBACK = `http://127.0.0.1:${callback.port}/callback`;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  ({ api, root } = await serveDashboard({ db: database.db }));
  const token = await api.login(tenants.superAdmin.email);
  const companyId = tenants.partners[0].accounts[0].id;
  for (const name of ["ada", "mallory"])
    await addUser(database.db, { companyId, role: "account_user", email: `${name}@corp.test` });
  provider = await startProvider(
    (issuer) => connect(api, token, { company_id: companyId, issuer, domains: ["corp.test"] }),
    {
      ada: { email: "ada@corp.test" },
      mallory: { email: "mallory@corp.test" },
      stranger: { email: "stranger@corp.test" },
    },
    { serverRoot: root },
  );
  browser = await openBrowser();
});

afterAll(async () => {
  await callback.stop(true);
  if (!isPresent("chromium")) return;
  await browser.close();
  provider.stop();
  await api.stop();
});

interface Visit {
  /** The partner that owns the client; the partner of the users above if absent. */
  readonly companyId?: number;
  readonly firstParty?: boolean;
}

/** Opens a new browser profile at the page of a client. */
async function visit({ companyId = tenants.partners[0].id, firstParty = false }: Visit = {}) {
  const client = await addClient(database.db, {
    companyId,
    firstParty,
    name: "Dashboards by Acme",
    redirectUris: [CALLBACK],
    scopes: ["reviews:read"],
  });
  const pkce = newPkce();
  const context = await browser.newContext();
  const page = await openPage(context);
  await page.goto(
    `${root}/oauth/authorize?${formOf(authorizeParams(client, pkce, { redirect_uri: CALLBACK }))}`,
  );
  return { context, page, client, pkce };
}

async function openPage(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  return page;
}

async function leave(page: Page, email = "ada@corp.test"): Promise<void> {
  await page.getByLabel("Email").fill(email);
  await page.getByRole("button", { name: "Use single sign-on instead" }).click();
}

async function signInAtProvider(page: Page, login: string): Promise<void> {
  await page.waitForURL(`${provider.issuer}/interaction/**`);
  await page.fill("input[name=login]", login);
  await page.fill("input[name=password]", "any");
  await page.click("button[type=submit]");
  await page.waitForSelector("input[name=prompt][value=consent]", { state: "attached" });
  await page.click("button[type=submit]");
}

/** Returns the URL at which a flow ends, before a browser opens it. */
async function endOf(page: Page, login: string): Promise<URL> {
  await leave(page);
  await page.waitForURL(`${provider.issuer}/interaction/**`);
  return endOfTrip(page, login, (url) => url.startsWith(`${root}/oauth/authorize/sso?`));
}

const problem = (page: Page) => page.getByRole("alert").innerText();

const REFUSED = "Single sign-on failed. Try again, or sign in with your password.";
