import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import type { BrowserContext, Page } from "playwright-core";

import { PASSWORD } from "../../support/api.ts";
import { seriousFaults } from "../../support/dashboard/dashboard.ts";
import { button, navigation, signOut } from "../../support/dashboard/locators.ts";
import { useDashboard } from "../../support/dashboard/use-dashboard.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { connect, endOfTrip, startProvider } from "../../support/sso.ts";
import { addUser } from "../../support/tenants.ts";

// Single sign-on through a real identity provider with login pages.

const world = useDashboard();

describe.skipIf(lacks("chromium"))("single sign-on", () => {
  test("returns the user to the requested page, with a code that is bound to this tab", async () => {
    const context = await world.browser.newContext();
    const { page } = await visit(context, "/security?from=mail");
    const [begun] = await Promise.all([page.waitForRequest("**/auth/sso/redirect?*"), leave(page)]);
    const asked = new URL(begun.url()).searchParams;
    expect(asked.get("code_challenge")).toMatch(/^[\w-]{43}$/);
    expect(asked.get("code_challenge_method")).toBe("S256");
    const exchanged = page.waitForRequest("**/auth/sso/exchange?*");
    await signInAtProvider(page, "ada");
    expect(new URL((await exchanged).url()).searchParams.get("code_verifier")).toMatch(
      /^[\w-]{43}$/,
    );
    await page.getByRole("heading", { name: "Security", level: 1 }).waitFor();
    expect(page.url()).toBe(`${world.root}/dashboard/security?from=mail`);
    await page.getByText("With single sign-on").waitFor();
    expect(await page.evaluate<string>("JSON.stringify({...sessionStorage})")).toBe("{}");
    // A reload signs out, because remember-me was off.
    await page.reload();
    await page.getByLabel("Email").waitFor();
    await context.close();
  });

  test("shows no notice after the sign-out of its session", async () => {
    const context = await world.browser.newContext();
    const { page } = await visit(context);
    await leave(page);
    await signInAtProvider(page, "ada");
    await navigation(page).waitFor();
    const exchanges: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/auth/sso/exchange")) exchanges.push(request.url());
    });
    await signOut(page);
    await page.getByText("You are signed out", { exact: true }).waitFor();
    expect(await page.getByLabel("Email").inputValue()).toBe("");
    expect(exchanges).toEqual([]);
    await context.close();
  });

  test("keeps the session over a reload if remember-me was set before the flow", async () => {
    const context = await world.browser.newContext();
    const { page } = await visit(context);
    await leave(page, { remember: true });
    await signInAtProvider(page, "ada");
    await navigation(page).waitFor();
    await page.reload();
    await navigation(page).waitFor();
    expect(page.url()).not.toContain("code=");
    await context.close();
  });

  test("that is denied for the provider's user is explained, and can be tried again", async () => {
    const context = await world.browser.newContext();
    const { page } = await visit(context, "/keys");
    await leave(page);
    await signInAtProvider(page, "stranger");
    await page.getByText("Single sign-on did not work").waitFor();
    expect(page.url()).toBe(`${world.root}/dashboard/keys`);
    expect(await page.getByLabel("Email").inputValue()).toBe("ada@corp.test");
    expect(await seriousFaults(page)).toEqual([]);
    await button(page, "Continue").click();
    await page.getByRole("textbox", { name: "Password" }).fill(PASSWORD);
    await button(page, "Sign in").click();
    await page.getByRole("heading", { name: "API Keys", level: 1 }).waitFor();
    await context.close();
  });

  test("with a foreign code signs nobody in, and explains why", async () => {
    const code = await codeOf("mallory");
    const context = await world.browser.newContext();
    const { page } = await visit(context, `?code=${code}`);
    await page.getByText("Nobody was signed in").waitFor();
    expect(page.url()).toBe(`${world.root}/dashboard`);
    expect(await navigation(page).count()).toBe(0);
    await context.close();
  });

  test("with a code of another flow signs nobody in", async () => {
    const code = await codeOf("mallory");
    const context = await world.browser.newContext();
    const { page } = await visit(context);
    await leave(page);
    await page.goto(`${world.root}/dashboard?code=${code}`);
    await page.getByText("Single sign-on did not work").waitFor();
    expect(await navigation(page).count()).toBe(0);
    // The verifier of the earlier flow was removed, so the code is not accepted.
    await page.goto(`${world.root}/dashboard?code=${code}`);
    await page.getByText("Nobody was signed in").waitFor();
    await context.close();
  });

  test("does not replace an existing session", async () => {
    const code = await codeOf("mallory");
    const context = await world.browser.newContext();
    const { page } = await visit(context);
    await leave(page, { remember: true });
    await signInAtProvider(page, "ada");
    await navigation(page).waitFor();
    await page.goto(`${world.root}/dashboard?code=${code}`);
    await page.getByRole("button", { name: "Account of Name of ada@corp.test" }).waitFor();
    expect(page.url()).not.toContain("code=");
    await context.close();
  });
});

let provider: Awaited<ReturnType<typeof startProvider>>;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  const { superAdmin, partners } = world.tenants;
  const token = await world.api.login(superAdmin.email);
  const companyId = partners[0].id;
  await addUser(world.database.db, { companyId, role: "partner_admin", email: "ada@corp.test" });
  await addUser(world.database.db, {
    companyId,
    role: "partner_admin",
    email: "mallory@corp.test",
  });
  provider = await startProvider(
    (issuer) =>
      connect(world.api, token, { company_id: companyId, issuer, domains: ["corp.test"] }),
    {
      ada: { email: "ada@corp.test" },
      mallory: { email: "mallory@corp.test" },
      stranger: { email: "stranger@corp.test" },
    },
    { serverRoot: world.root },
  );
});

afterAll(() => {
  if (isPresent("chromium")) provider.stop();
});

async function visit(context: BrowserContext, path = ""): Promise<{ page: Page; urls: string[] }> {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const urls: string[] = [];
  page.on("framenavigated", (frame) => void urls.push(frame.url()));
  await page.goto(`${world.root}/dashboard${path}`);
  return { page, urls };
}

/** Starts an SSO flow and waits for the provider's first page. */
async function leave(page: Page, { remember = false } = {}): Promise<void> {
  await page.getByLabel("Email").fill("ada@corp.test");
  await button(page, "Continue").click();
  await page.getByLabel("Keep me signed in").setChecked(remember);
  await button(page, "Continue with single sign-on").click();
  await page.waitForURL(`${provider.issuer}/interaction/**`);
}

async function signInAtProvider(page: Page, login: string): Promise<void> {
  await page.fill("input[name=login]", login);
  await page.fill("input[name=password]", "any");
  await page.click("button[type=submit]");
  await page.waitForSelector("input[name=prompt][value=consent]", { state: "attached" });
  await page.click("button[type=submit]");
}

/** Returns a valid code of an SSO flow that began outside of this tab. */
async function codeOf(login: string): Promise<string> {
  const context = await world.browser.newContext();
  const page = await context.newPage();
  await page.goto(`${world.root}/api/v1/auth/sso/redirect?email=${login}@corp.test`);
  const end = await endOfTrip(page, login, (url) => url.startsWith(`${world.root}/dashboard?`));
  await context.close();
  return end.searchParams.get("code") ?? "";
}
