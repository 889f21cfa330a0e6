import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import type { BrowserContext, Page } from "playwright-core";

import { PASSWORD } from "../../support/api.ts";
import { signIn } from "../../support/dashboard/dashboard.ts";
import { heading, signOut } from "../../support/dashboard/locators.ts";
import { useDashboard } from "../../support/dashboard/use-dashboard.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { addUser } from "../../support/tenants.ts";

// A session across reloads and across the tabs of a browser.

const world = useDashboard();

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
    expect(page.url()).toBe(`${world.root}/dashboard`);
    await page.reload();
    await signInForm(page);
    await signInForm(await open("/security"));
  });

  test("is not handed to another browser, to another origin of this one, or to a frame", async () => {
    const page = await open("/security");
    await signIn(page, (await freshUser()).email);
    const stranger = await world.browser.newContext();
    const theirs = await stranger.newPage();
    await theirs.goto(`${world.root}/dashboard/security`);
    await signInForm(theirs);
    await stranger.close();
    // The same server is another origin under another host name.
    const elsewhere = await context.newPage();
    await elsewhere.goto(`${world.root.replace("127.0.0.1", "localhost")}/dashboard/security`);
    await signInForm(elsewhere);
    // Removes the document's policy, which forbids framing.
    const framing = await context.newPage();
    await framing.route("**/dashboard/**", async (route) => {
      if (route.request().resourceType() !== "document") return route.fallback();
      const response = await route.fetch();
      const { "content-security-policy": _, ...headers } = response.headers();
      return route.fulfill({ response, headers });
    });
    await framing.goto(`${world.root}/healthz`);
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
    await one.getByText("You are signed out", { exact: true }).waitFor();
    await other.getByRole("link", { name: "API Keys" }).click();
    await heading(other, "API Keys").waitFor();
  });
});

let context: BrowserContext;

beforeEach(async () => {
  if (isPresent("chromium")) context = await world.browser.newContext({ reducedMotion: "reduce" });
});

afterEach(async () => {
  if (isPresent("chromium")) await context.close();
});

let names = 0;

const freshUser = () =>
  addUser(world.database.db, {
    companyId: world.tenants.partners[0].id,
    role: "partner_admin",
    email: `person-${++names}@p1.test`,
  });

async function open(path: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${world.root}/dashboard${path}`);
  return page;
}

const signInForm = (page: Page) => page.getByLabel("Email").waitFor();

async function signInHereAlone(page: Page, email: string): Promise<void> {
  await page.getByLabel("Email").fill(email);
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.getByLabel("Keep me signed in").uncheck();
  await page.getByRole("textbox", { name: "Password" }).fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("button", { name: "Account of" }).waitFor();
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
