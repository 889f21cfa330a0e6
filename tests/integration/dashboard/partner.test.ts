import { describe, expect, test } from "bun:test";

import { mailsTo } from "../../support/auth-mails.ts";
import { allErrors } from "../../support/dashboard/dashboard.ts";
import {
  confirm,
  go,
  heading,
  navigation,
  rowOf,
  signOut,
} from "../../support/dashboard/locators.ts";
import { useDashboard } from "../../support/dashboard/use-dashboard.ts";
import { lacks } from "../../support/needs.ts";
import { until } from "../../support/network/receiver.ts";
import { addUser } from "../../support/tenants.ts";

// A partner's pages: team, accounts with impersonation of their owners, audit log.

const world = useDashboard();

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
    await rowOf(page, "kim@p1.test").getByText("Invited", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Resend invitation: Kim" }).waitFor();
    expect(await mailsTo(world.api.deps, "kim@p1.test")).toHaveLength(1);
    await page.getByRole("link", { name: "Kim" }).click();
    await heading(page, "Kim").waitFor();
    await page.getByText("Invited", { exact: true }).waitFor();
    await page.getByText("No active sessions, tokens, or single sign-on.").waitFor();
    await page.getByRole("button", { name: "Resend invitation: Kim" }).click();
    await page.getByText("kim@p1.test is invited again").waitFor();
    await page.getByRole("button", { name: "Make owner: Kim" }).click();
    await confirm(page, "Make owner");
    await page.getByRole("button", { name: "Make admin: Kim" }).waitFor();
    await page.getByRole("button", { name: "Deactivate Kim" }).click();
    await confirm(page, "Deactivate");
    await page.getByRole("button", { name: "Activate Kim", exact: true }).click();
    await confirm(page, "Activate");
    await page.getByRole("button", { name: "Make admin: Kim" }).click();
    await confirm(page, "Make admin");
    await page.getByRole("button", { name: "Make owner: Kim" }).waitFor();
    expect(await allErrors(page)).toEqual([]);

    await page.getByRole("link", { name: "Team" }).first().click();
    await rowOf(page, "owner@p1.test").getByRole("link").click();
    await page.getByText("The only active owner.").waitFor();
    expect(await page.getByRole("button", { name: /^(Make|Deactivate)/ }).count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test("sees the team as an admin, who cannot change it", async () => {
    const { page } = await visit("/team", world.tenants.partners[0].admin.email);
    await rowOf(page, "owner@p1.test").waitFor();
    const changes = page.getByRole("button", { name: /^(Invite|Make|Deactivate)/ });
    expect(await changes.count()).toBe(0);
    await rowOf(page, "owner@p1.test").getByRole("link").click();
    await page.getByRole("heading", { name: "Recent activity" }).waitFor();
    expect(await changes.count()).toBe(0);
  });

  test("impersonates the owner of an account, with a banner all the time, and ends it", async () => {
    const [partner] = world.tenants.partners;
    const [account] = partner.accounts;
    const { page, faults } = await visit("/accounts");
    const row = rowOf(page, "p1-a1");
    await row.getByRole("cell", { name: "2", exact: true }).waitFor();
    await row.getByRole("button", { name: "Act as owner of p1-a1" }).click();
    await page.getByRole("dialog").getByRole("textbox", { name: "Reason" }).fill("A call for help");
    expect(await allErrors(page)).toEqual([]);
    await confirm(page, "Act as owner");
    await heading(page, "Reviews").waitFor();
    const banner = page.getByText(
      `You are acting as Name of ${account.owner.email}, owner of p1-a1`,
    );
    await banner.waitFor();
    expect(await allErrors(page)).toEqual([]);
    const personal = navigation(page).getByRole("link", { name: /API Keys|Security|Team access/ });
    expect(await personal.count()).toBe(0);
    await go(page, "Review sites");
    await heading(page, "Review sites").waitFor();
    await banner.waitFor();
    await page.getByRole("button", { name: "End", exact: true }).click();
    await heading(page, "Accounts").waitFor();
    expect(await banner.count()).toBe(0);
    await until("the token has ended", async () => {
      const rows = await world.database.db.sql`select 1 from tokens where kind = 'impersonation'`;
      return rows.length === 0;
    });

    await go(page, "Audit log");
    const entry = page.getByRole("row").filter({ hasText: "was impersonated" }).first();
    expect(await entry.innerText()).toContain(`by Name of ${partner.owner.email}\n`);
    await entry.getByRole("button").first().click();
    await entry.getByText("A call for help").first().waitFor();
    expect(await allErrors(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  test("returns to its own session when the impersonation expires", async () => {
    const { page } = await visit("/accounts");
    await rowOf(page, "p1-a2").getByRole("button", { name: "Act as owner of p1-a2" }).click();
    await confirm(page, "Act as owner");
    await heading(page, "Reviews").waitFor();
    // Waits for open requests, because an answer that arrives after the next statement would belong to the
    // wrong page.
    await page.waitForLoadState("networkidle");
    await world.database.db.sql`delete from tokens where kind = 'impersonation'`;
    // A background request may notice the end before the click.
    const sites = navigation(page).getByRole("link", { name: "Review sites" });
    await sites.click({ timeout: 2_000 }).catch(() => undefined);
    await heading(page, "Webhooks").waitFor();
    expect(await page.getByText("You are acting as").count()).toBe(0);
  });

  test("signs out of both sessions at once", async () => {
    const email = "leaver@p1.test";
    const companyId = world.tenants.partners[0].id;
    const { id } = await addUser(world.database.db, { companyId, role: "partner_owner", email });
    const { page } = await visit("/accounts", email);
    await rowOf(page, "p1-a1").getByRole("button", { name: "Act as owner of p1-a1" }).click();
    await confirm(page, "Act as owner");
    await heading(page, "Reviews").waitFor();
    await signOut(page);
    await page.getByLabel("Email").waitFor();
    await until("both tokens have ended", async () => {
      const rows = await world.database.db.sql`
        select 1 from tokens where user_id = ${id} or impersonator_id = ${id}`;
      return rows.length === 0;
    });
  });

  test("reads its audit log by company and action, in dark and on a phone", async () => {
    const look = { width: 390, colorScheme: "dark" } as const;
    const { page, faults } = await visit("/audit", world.tenants.partners[0].admin.email, look);
    await page.getByRole("row").filter({ hasText: "signed in" }).first().waitFor();
    expect(await allErrors(page)).toEqual([]);
    await page.getByRole("button", { name: "Filters" }).click();
    await page.getByLabel("Company", { exact: true }).selectOption({ label: "p1-a2" });
    await page.waitForURL(/company=/);
    await page.getByText("was impersonated").first().waitFor();
    expect(faults).toEqual([]);
  });
});

async function visit(path: string, email = world.tenants.partners[0].owner.email, look = {}) {
  return world.open(path, { email, ...look });
}
