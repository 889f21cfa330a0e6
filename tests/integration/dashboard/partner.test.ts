import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import type { Browser, Page } from "playwright-core";

import type { TestApi } from "../../support/api.ts";
import { mailsTo } from "../../support/auth-mails.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import { allErrors, openSignedIn, serveDashboard } from "../../support/dashboard/dashboard.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { addTenants, addUser } from "../../support/tenants.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

// A partner's pages: team, accounts with impersonation of their owners, audit log.

describe.skipIf(lacks("chromium"))("a partner in a browser", () => {
  test("invites a user, changes the role, deactivates and activates", async () => {
    const { page, faults } = await visit("/team");
    await page.getByRole("button", { name: "Invite", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Name" }).fill("Kim");
    await dialog.getByRole("textbox", { name: "Email" }).fill("owner@p1.test");
    expect(await allErrors(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Invite" }).click();
    await dialog.getByText("is the address of another user").waitFor();
    await dialog.getByRole("textbox", { name: "Email" }).fill("kim@p1.test");
    await dialog.getByRole("button", { name: "Invite" }).click();
    const kim = rowOf(page, "kim@p1.test");
    await kim.getByText("No password set").waitFor();
    expect(await mailsTo(api.deps, "kim@p1.test")).toHaveLength(1);
    await kim.getByRole("button", { name: "Invite again: Kim" }).click();
    await page.getByText("kim@p1.test is invited again").waitFor();
    await kim.getByRole("button", { name: "Make owner: Kim" }).click();
    await confirm(page, "Make owner");
    await kim.getByText("Partner owner").waitFor();
    await kim.getByRole("button", { name: "Deactivate Kim" }).click();
    await confirm(page, "Deactivate");
    await kim.getByText("Inactive").waitFor();
    await kim.getByRole("button", { name: "Activate Kim" }).click();
    await confirm(page, "Activate");
    await kim.getByRole("button", { name: "Make admin: Kim" }).click();
    await confirm(page, "Make admin");
    await kim.getByText("Partner admin").waitFor();

    const own = rowOf(page, "owner@p1.test");
    await own.getByText("The only active owner").waitFor();
    expect(await own.getByRole("button").allInnerTexts()).toEqual(["Single sign-on"]);
    expect(await allErrors(page)).toEqual([]);
    expect(faults).toEqual([]);
    await page.close();
  });

  test("sees the team as an admin, who cannot change it", async () => {
    const { page } = await visit("/team", tenants.partners[0].admin.email);
    await rowOf(page, "owner@p1.test").waitFor();
    expect(await page.getByRole("button", { name: /^(Invite|Make|Deactivate)/ }).count()).toBe(0);
    await page.close();
  });

  test("impersonates the owner of an account, with a banner all the time, and ends it", async () => {
    const [partner] = tenants.partners;
    const [account] = partner.accounts;
    const { page, faults } = await visit("/accounts");
    const row = rowOf(page, "p1-a1");
    await row.getByText("2 stores").waitFor();
    await row.getByRole("button", { name: "Act as owner of p1-a1" }).click();
    await page.getByRole("dialog").getByRole("textbox", { name: "Reason" }).fill("A call for help");
    expect(await allErrors(page)).toEqual([]);
    await confirm(page, "Act as owner");
    await heading(page, "Reviews");
    const banner = page.getByText(`You act as Name of ${account.owner.email}, owner of p1-a1`);
    await banner.waitFor();
    expect(await allErrors(page)).toEqual([]);
    const navigation = page.getByRole("navigation", { name: "Main" });
    expect(await navigation.getByRole("link", { name: /API Keys|Security/ }).count()).toBe(0);
    await navigation.getByRole("link", { name: "Review sites" }).click();
    await heading(page, "Review sites");
    await banner.waitFor();
    await page.getByRole("button", { name: "End", exact: true }).click();
    await heading(page, "Accounts");
    expect(await banner.count()).toBe(0);
    await until("the token has ended", async () => {
      const rows = await database.db.sql`select 1 from tokens where kind = 'impersonation'`;
      return rows.length === 0;
    });

    await page
      .getByRole("navigation", { name: "Main" })
      .getByRole("link", { name: "Audit log" })
      .click();
    const entry = page.getByRole("row").filter({ hasText: "was impersonated" }).first();
    expect(await entry.innerText()).toContain(`by Name of ${partner.owner.email}, impersonating`);
    await entry.getByRole("button").first().click();
    await entry.getByText("A call for help").waitFor();
    expect(await allErrors(page)).toEqual([]);
    expect(faults).toEqual([]);
    await page.close();
  });

  test("returns to its own session when the impersonation expires", async () => {
    const { page } = await visit("/accounts");
    await rowOf(page, "p1-a2").getByRole("button", { name: "Act as owner of p1-a2" }).click();
    await confirm(page, "Act as owner");
    await heading(page, "Reviews");
    // Waits for open requests, because an answer that arrives after the next statement would belong to the
    // wrong page.
    await page.waitForLoadState("networkidle");
    await database.db.sql`delete from tokens where kind = 'impersonation'`;
    const navigation = page.getByRole("navigation", { name: "Main" });
    // A background request may notice the end before the click.
    const sites = navigation.getByRole("link", { name: "Review sites" });
    await sites.click({ timeout: 2_000 }).catch(() => undefined);
    await heading(page, "Webhooks");
    expect(await page.getByText("You act as").count()).toBe(0);
    await page.close();
  });

  test("signs out of both sessions at once", async () => {
    const email = "leaver@p1.test";
    const companyId = tenants.partners[0].id;
    const { id } = await addUser(database.db, { companyId, role: "partner_owner", email });
    const { page } = await visit("/accounts", email);
    await rowOf(page, "p1-a1").getByRole("button", { name: "Act as owner of p1-a1" }).click();
    await confirm(page, "Act as owner");
    await heading(page, "Reviews");
    await page.getByRole("button", { name: "Account of" }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByLabel("Email").waitFor();
    await until("both tokens have ended", async () => {
      const rows = await database.db.sql`
        select 1 from tokens where user_id = ${id} or impersonator_id = ${id}`;
      return rows.length === 0;
    });
    await page.close();
  });

  test("reads its audit log by company and action, in dark and on a phone", async () => {
    const look = { width: 390, colorScheme: "dark" } as const;
    const { page, faults } = await visit("/audit", tenants.partners[0].admin.email, look);
    await page.getByRole("row").filter({ hasText: "signed in" }).first().waitFor();
    expect(await allErrors(page)).toEqual([]);
    await page.getByRole("button", { name: "Filters" }).click();
    await page.getByLabel("Company", { exact: true }).selectOption({ label: "p1-a2" });
    await page.waitForURL(/company=/);
    await page.getByText("was impersonated").first().waitFor();
    for (const path of ["/team", "/accounts"]) {
      await page.goto(`${root}/dashboard${path}`);
      await page.getByRole("row").first().waitFor();
      expect([path, await allErrors(page)]).toEqual([path, []]);
      expect(
        await page.evaluate(
          "document.documentElement.scrollWidth <= document.documentElement.clientWidth",
        ),
      ).toBe(true);
    }
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

  ({ api, root } = await serveDashboard({ db: database.db }));
  browser = await openBrowser();
});

afterAll(async () => {
  if (!isPresent("chromium")) return;
  await browser.close();
  await api.stop();
});

async function visit(path: string, email = tenants.partners[0].owner.email, look = {}) {
  return openSignedIn(browser, { root, path, email, ...look });
}

const rowOf = (page: Page, text: string) => page.getByRole("row").filter({ hasText: text });

const confirm = (page: Page, verb: string) =>
  page.getByRole("dialog").getByRole("button", { name: verb, exact: true }).click();

const heading = (page: Page, name: string) =>
  page.getByRole("heading", { level: 1, name }).waitFor();
