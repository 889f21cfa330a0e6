import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";

import type { Browser, BrowserContext, Page } from "playwright-core";

import { PASSWORD, type TestApi } from "../../support/api.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import { serveDashboard, signIn } from "../../support/dashboard/dashboard.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, addUser } from "../../support/tenants.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

// A session across reloads and across the tabs of a browser.

describe.skipIf(lacks("chromium"))("a remembered session", () => {
  test("survives a reload, and continues in a new tab and after Ctrl-click, without a login or a token in an address", async () => {
    const { email } = await freshUser();
    const page = await open("/security");
    await signIn(page, email);
    await page.reload();
    await heading(page, "Security").waitFor();
    const asked: string[] = [];
    context.on("request", (request) => asked.push(`${request.method()} ${request.url()}`));
    const other = await open("/security");
    await heading(other, "Security").waitFor();
    const popup = context.waitForEvent("page");
    await page.getByRole("link", { name: "API Keys" }).click({ modifiers: ["Control"] });
    await heading(await popup, "API Keys").waitFor();
    expect(asked.filter((one) => /login|eyJ/.test(one))).toEqual([]);
    expect(await shared(page)).not.toContain("eyJ");
    const cookies = await context.cookies();
    expect(cookies.map(({ name }) => name)).toEqual(["rr_browser"]);
    expect(cookies[0]?.value).not.toContain("eyJ");
  });

  test("continues in a new tab when the first one is closed, and ends once all are closed", async () => {
    const page = await open("/security");
    await signIn(page, (await freshUser()).email);
    const other = await open("/security");
    await heading(other, "Security").waitFor();
    await page.close();
    const third = await open("/security");
    await heading(third, "Security").waitFor();
    for (const one of [other, third]) await one.close();
    await signInForm(await open("/security"));
  });

  test("ends in every tab after a sign-out in one", async () => {
    const page = await open("/security");
    await signIn(page, (await freshUser()).email);
    const other = await open("/keys");
    await heading(other, "API Keys").waitFor();
    await signOut(other);
    await page.getByText("You are signed out", { exact: true }).waitFor();
    expect(page.url()).toBe(`${root}/dashboard`);
    await page.reload();
    await signInForm(page);
    await signInForm(await open("/security"));
  });

  test("is not handed to another browser, to another origin of this one, or to a frame", async () => {
    const page = await open("/security");
    await signIn(page, (await freshUser()).email);
    const stranger = await browser.newContext();
    const theirs = await stranger.newPage();
    await theirs.goto(`${root}/dashboard/security`);
    await signInForm(theirs);
    await stranger.close();
    // The same server is another origin under another host name.
    const elsewhere = await context.newPage();
    await elsewhere.goto(`${root.replace("127.0.0.1", "localhost")}/dashboard/security`);
    await signInForm(elsewhere);
    // Removes the document's policy, which forbids framing.
    const framing = await context.newPage();
    await framing.route("**/dashboard/**", async (route) => {
      if (route.request().resourceType() !== "document") return route.fallback();
      const response = await route.fetch();
      const { "content-security-policy": _, ...headers } = response.headers();
      return route.fulfill({ response, headers });
    });
    await framing.goto(`${root}/healthz`);
    await framing.evaluate(
      "document.body.innerHTML = '<iframe src=\"/dashboard/security\"></iframe>'",
    );
    await framing.frameLocator("iframe").getByLabel("Email").waitFor();
  });
});

describe.skipIf(lacks("chromium"))("a session that is not remembered", () => {
  test("belongs to its tab until a reload, and does not affect other tabs", async () => {
    const one = await open("/security");
    await signInHereAlone(one, (await freshUser()).email);
    const other = await open("/security");
    await signIn(other, (await freshUser()).email);
    await signOut(one);
    await other.getByRole("link", { name: "API Keys" }).click();
    await heading(other, "API Keys").waitFor();
  });
});

const database = browserFixture(createDatabase);
const tenants = browserFixture(() => addTenants(database.db));

let api: TestApi;

let root: string;

let browser: Browser;

let context: BrowserContext;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  ({ api, root } = await serveDashboard({ db: database.db }));
  browser = await openBrowser();
});

beforeEach(async () => {
  if (isPresent("chromium")) context = await browser.newContext({ reducedMotion: "reduce" });
});

afterEach(async () => {
  if (isPresent("chromium")) await context.close();
});

afterAll(async () => {
  if (!isPresent("chromium")) return;
  await browser.close();
  await api.stop();
});

let names = 0;

const freshUser = () =>
  addUser(database.db, {
    companyId: tenants.partners[0].id,
    role: "partner_admin",
    email: `person-${++names}@p1.test`,
  });

async function open(path: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${root}/dashboard${path}`);
  return page;
}

const heading = (page: Page, name: string) => page.getByRole("heading", { name, level: 1 });

const signInForm = (page: Page) => page.getByLabel("Email").waitFor();

async function signInHereAlone(page: Page, email: string): Promise<void> {
  await page.getByLabel("Email").fill(email);
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.getByLabel("Keep me signed in").uncheck();
  await page.getByRole("textbox", { name: "Password" }).fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("button", { name: "Account of" }).waitFor();
}

async function signOut(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByText("You are signed out", { exact: true }).waitFor();
}

/**
 * Returns everything that pages of this origin share between tabs, and everything that browsers send
 * automatically.
 */
const shared = async (page: Page) =>
  JSON.stringify([
    await page.evaluate<string>("JSON.stringify({...localStorage})"),
    await context.cookies(),
  ]);
