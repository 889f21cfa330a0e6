import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import type { Browser, Page } from "playwright-core";

import { PASSWORD, type TestApi } from "../../support/api.ts";
import { codeSentTo } from "../../support/auth-mails.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import {
  openDashboard,
  openSignedIn,
  seriousFaults,
  seriousFaultsInSchemes,
  serveDashboard,
  type Look,
} from "../../support/dashboard/dashboard.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addSsoConnection, addTenants, addUser } from "../../support/tenants.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

describe.skipIf(lacks("chromium"))("the security page", () => {
  test("changes the password: the current one, the code from the mail, a new one; this tab stays", async () => {
    const { email } = await freshUser();
    const other = await api.login(email);
    const { page, faults } = await openSecurity(email);
    await button(page, "Change password").click();
    await page.getByText("A new password ends all other sessions").waitFor();
    await page.getByLabel("Current password").fill("wrong");
    await button(page, "Email me a code").click();
    await page.getByText("The password is wrong.").waitFor();
    await page.getByLabel("Current password").fill(PASSWORD);
    await button(page, "Email me a code").click();
    await page.getByLabel("Digit 1 of 6").and(page.locator(":focus")).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await page.keyboard.type(await codeSentTo(api.deps, email));
    await page.getByRole("textbox", { name: "New password" }).fill("another horse battery staple");
    await page.keyboard.press("Enter");
    await page.getByText("Your password is changed.").waitFor();
    await page.getByText("With a new password").waitFor();
    expect(
      await page.getByRole("table", { name: "Sessions" }).locator("tbody").getByRole("row").count(),
    ).toBe(1);
    expect(await isAlive(other)).toBe(false);
    await api.login(email, "another horse battery staple");
    expect(faults).toEqual([]);
    await page.close();
  });

  test("keeps a remembered session through a change of password", async () => {
    const { email } = await freshUser();
    const { page } = await openDashboard(browser, { root, path: "/security" });
    await page.getByLabel("Email").fill(email);
    await button(page, "Continue").click();
    await page.getByLabel("Keep me signed in").check();
    await page.getByRole("textbox", { name: "Password" }).fill(PASSWORD);
    await button(page, "Sign in").click();
    await button(page, "Change password").click();
    await page.getByLabel("Current password").fill(PASSWORD);
    await button(page, "Email me a code").click();
    await page.getByLabel("Digit 1 of 6").and(page.locator(":focus")).waitFor();
    await page.keyboard.type(await codeSentTo(api.deps, email));
    await page.getByRole("textbox", { name: "New password" }).fill("another horse battery staple");
    await button(page, "Set the password").click();
    await page.getByText("Your password is changed.").waitFor();
    await page.reload();
    await page.getByText("With a new password").waitFor();
    await page.close();
  });

  test("shows a lock with its end, and accepts the password after it", async () => {
    const { email } = await freshUser();
    const { page } = await openSecurity(email);
    await button(page, "Change password").click();
    for (let i = 0; i < 5; i++) {
      await page.getByLabel("Current password").fill(`wrong ${i}`);
      const answered = page.waitForResponse("**/change-password");
      await button(page, "Email me a code").click();
      await answered;
    }
    await page.getByLabel("Current password").fill(PASSWORD);
    await button(page, "Email me a code").click();
    await page.getByText(/are locked for 0:0\d/).waitFor();
    await page.getByText("You can try again now.").waitFor();
    await button(page, "Email me a code").click();
    await page.getByLabel("Digit 1 of 6").waitFor();
    await page.close();
  });

  test("ends one session, and then all others; this one is marked and stays", async () => {
    const { email } = await freshUser();
    const tokens = [await api.login(email), await api.login(email), await api.login(email)];
    const { page } = await openSecurity(email);
    const rows = page.getByRole("table", { name: "Sessions" }).locator("tbody").getByRole("row");
    await rows.nth(3).waitFor();
    expect(await rows.filter({ hasText: "This session" }).count()).toBe(1);
    await rows.nth(3).getByRole("button").click();
    await page.getByRole("dialog").getByText("is signed out immediately").waitFor();
    await button(page, "End the session").click();
    await page.getByText("The session is ended.").waitFor();
    expect(await Promise.all(tokens.map(isAlive))).toEqual([false, true, true]);
    await button(page, "End all others").click();
    await page.getByRole("dialog").getByRole("button", { name: "End all others" }).click();
    await page.getByText("Only this session is left.").waitFor();
    expect(await Promise.all(tokens.map(isAlive))).toEqual([false, false, false]);
    await rows.filter({ hasText: "This session" }).waitFor();
    expect(await rows.count()).toBe(1);
    await button(page, "End all others").waitFor({ state: "detached" });
    await page.close();
  });

  test("ends sessions on pages that were not loaded, too", async () => {
    const user = await freshUser();
    const tokens: string[] = [];
    for (let i = 0; i < 24; i++) tokens.push(await api.login(user.email));
    const { page } = await openSecurity(user.email);
    await button(page, "Show older").waitFor();
    await button(page, "End all others").click();
    await page.getByRole("dialog").getByRole("button", { name: "End all others" }).click();
    await page.getByText("Only this session is left.").waitFor();
    expect((await Promise.all(tokens.map(isAlive))).filter(Boolean)).toEqual([]);
    await page.close();
  });

  test("signs out by ending its own session", async () => {
    const { page } = await openSecurity((await freshUser()).email);
    await button(page, "Sign out of this session").click();
    await page.getByText("You are signed out", { exact: true }).waitFor();
    await page.close();
  });

  test("sends users of an SSO-only company to their provider", async () => {
    const user = await freshUser("late.test");
    const { page } = await openSecurity(user.email);
    await addSsoConnection(database.db, {
      companyId: user.companyId,
      domains: ["late.test"],
      passwordLogin: false,
    });
    // The sign-in policy is read when the page opens.
    await page.clock.install({ time: Date.now() + 60_000 });
    await page.getByRole("link", { name: "API Keys" }).click();
    await page.getByRole("heading", { name: "API Keys", level: 1 }).waitFor();
    await page.getByRole("link", { name: "Security" }).click();
    await page.getByText("Change your password there").waitFor();
    expect(await button(page, "Change password").count()).toBe(0);
    // The fake clock applies to the whole context, so the context is closed.
    await page.context().close();
  });

  test("shows user agents as text only", async () => {
    const { email } = await freshUser();
    await api.call("POST", "/login", {
      body: { email, password: PASSWORD },
      headers: { "User-Agent": "<img/src=x/onerror=alert(1)>" },
    });
    const { page, faults } = await openSecurity(email);
    await page.getByText("<img/src=x/onerror=alert(1)>").waitFor();
    expect(await page.locator("img[src=x]").count()).toBe(0);
    expect(faults).toEqual([]);
    await page.close();
  });

  test("axe finds nothing serious in dark and light", async () => {
    const { email } = await freshUser();
    await api.login(email);
    const { page, faults } = await openSecurity(email);
    await button(page, "End all others").waitFor();
    expect(await seriousFaultsInSchemes(page)).toEqual([]);
    await button(page, "Change password").click();
    await page.getByLabel("Current password").waitFor();
    expect(await seriousFaultsInSchemes(page)).toEqual([]);
    await button(page, "End all others").click();
    await page.getByRole("dialog").getByText("is signed out immediately").waitFor();
    expect(await seriousFaultsInSchemes(page)).toEqual([]);
    expect(faults).toEqual([]);
    await page.close();
  });
});

const database = browserFixture(createDatabase);
const tenants = browserFixture(() => addTenants(database.db));

let api: TestApi;

let root: string;

let browser: Browser;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  ({ api, root } = await serveDashboard({ db: database.db, config: { lockScheduleS: [2] } }));
  browser = await openBrowser();
});

afterAll(async () => {
  if (!isPresent("chromium")) return;
  await browser.close();
  await api.stop();
});

let names = 0;

const freshUser = (domain = "p1.test") =>
  addUser(database.db, {
    companyId: tenants.partners[0].id,
    role: "partner_admin",
    email: `person-${++names}@${domain}`,
  });

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

const isAlive = async (token: string) =>
  (await api.call("GET", "/verify-token", { token })).status === 200;

async function openSecurity(email: string, look: Look = {}) {
  const opened = await openSignedIn(browser, { root, path: "/security", email, ...look });
  await opened.page.getByText("This session").waitFor();
  return opened;
}
