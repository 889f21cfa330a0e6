import { describe, expect, test } from "bun:test";

import type { Page } from "playwright-core";

import { checkLooks, seriousFaultsInSchemes } from "../../support/dashboard/dashboard.ts";
import { confirm, go, heading, rowOf } from "../../support/dashboard/locators.ts";
import { useDashboard } from "../../support/dashboard/use-dashboard.ts";
import { lacks } from "../../support/needs.ts";
import { addSsoConnection } from "../../support/tenants.ts";

// The operator's pages: companies, users, providers, single sign-on, audit log.

const world = useDashboard({ lookupTxt: async () => [] });

describe.skipIf(lacks("chromium"))("the operator in a browser", () => {
  test("creates a partner, an account and its users, who then sign in", async () => {
    const { page, faults } = await visit("/companies");
    await page.getByRole("button", { name: "New partner" }).click();
    await page.getByRole("dialog").getByText("White label").waitFor();
    await checkLooks(page, "new partner");
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Create partner" }).click();
    // The error is shown at its field, which gets the focus.
    await dialog.getByText("This is required.").first().waitFor();
    expect(await page.evaluate("document.activeElement.getAttribute('aria-invalid')")).toBe("true");
    await dialog.getByRole("textbox", { name: "Name" }).fill("Fresh Agency");
    await dialog.getByRole("switch", { name: "White label" }).click();
    await dialog.getByRole("textbox", { name: "Brand name" }).fill("Fresh Reviews");
    await dialog.getByRole("textbox", { name: "Domain" }).fill("p1.test");
    await dialog.getByRole("button", { name: "Create partner" }).click();
    await dialog.getByText("is the domain of another partner").waitFor();
    await dialog.getByRole("textbox", { name: "Domain" }).fill("fresh.example");
    await dialog.getByRole("button", { name: "Create partner" }).click();
    // The page of the new partner opens, where its first owner is invited.
    await heading(page, "Fresh Agency").waitFor();
    await page.getByRole("heading", { name: "No users yet" }).waitFor();
    await page.getByRole("tab", { name: "Details" }).click();
    await page.getByText("Fresh Reviews at fresh.example").waitFor();

    await go(page, "Companies");
    await page.getByRole("tab", { name: "Accounts" }).click();
    await page.getByRole("button", { name: "New account" }).click();
    await dialog.getByRole("textbox", { name: "Name" }).fill("Fresh Bakery");
    await dialog.getByLabel("Stores").fill("Harbour\nStation\n");
    await dialog.getByText("2 stores").waitFor();
    await dialog.getByRole("button", { name: "Create account" }).click();
    await dialog.getByText("Choose a partner.").waitFor();
    await choose(page, "Partner", "Fresh Agency");
    const missing = dialog.getByText("Choose a plan.", { exact: true });
    await missing.waitFor();
    await dialog.getByLabel("Plan").selectOption({ label: "Growth" });
    await missing.waitFor({ state: "hidden" });
    await dialog.getByRole("button", { name: "Create account" }).click();
    await page.getByText("Account of Fresh Agency").waitFor();

    await go(page, "Users");
    await createUser(page, { name: "Lou", email: "lou@fresh.example", role: "Location user" });
    await choose(page, "Account", "Fresh Bakery");
    await dialog.getByRole("button", { name: "Create user" }).click();
    await dialog.getByText("is required for a location user").waitFor();
    await dialog.getByRole("combobox", { name: "Stores" }).click();
    await page.getByRole("option", { name: "Station" }).click();
    await page.keyboard.press("Escape");
    await dialog.getByRole("button", { name: "Create user" }).click();
    await rowOf(page, "lou@fresh.example").getByText("Location user").waitFor();
    expect(faults).toEqual([]);
    await page.close();

    const email = "lou@fresh.example";
    const lou = await world.open("", { email, password: NEW_PASSWORD });
    await lou.page.getByRole("heading", { level: 1, name: "Reviews" }).waitFor();
  });

  test("edits, deactivates and unlocks a user on the user's page, and cannot remove the last super-admin", async () => {
    const { page, faults } = await visit("/users");
    await createUser(page, { name: "Sam", email: "sam@p1.test", role: "Partner admin" });
    await choose(page, "Partner", "p1");
    await page.getByRole("dialog").getByRole("button", { name: "Create user" }).click();
    await rowOf(page, "sam@p1.test").getByRole("link", { name: "Sam" }).click();
    await heading(page, "Sam").waitFor();
    expect((await login("sam@p1.test")).status).toBe(200);

    await page.getByRole("button", { name: "Edit" }).click();
    const dialog = page.getByRole("dialog");
    const name = dialog.getByRole("textbox", { name: "Name" });
    await name.and(page.locator(":focus")).waitFor();
    await name.fill("Samira");
    await dialog.getByRole("textbox", { name: "Email" }).fill("owner@p1.test");
    await dialog.getByText("signs the user out everywhere").waitFor();
    await dialog.getByLabel("Role").selectOption({ label: "Partner owner" });
    await dialog.getByRole("textbox", { name: "External ID" }).fill("crm-9");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("is the address of another user").waitFor();
    await checkLooks(page, "edit user");
    await dialog.getByRole("textbox", { name: "Email" }).fill("sam@p1.test");
    await dialog.getByRole("button", { name: "Save" }).click();
    await heading(page, "Samira").waitFor();
    await page.getByText("crm-9").waitFor();
    await page.getByText("Partner owner at p1").waitFor();

    // The sign-in above is still there, because the address did not change.
    const sessions = page.getByRole("table", { name: "Sessions" });
    await sessions.getByRole("button", { name: /^End the session of/ }).click();
    await confirm(page, "End the session");
    await page.getByText("Not signed in anywhere").waitFor();

    await page.getByRole("button", { name: "Deactivate Samira" }).click();
    await confirm(page, "Deactivate");
    await page.getByRole("button", { name: "Activate Samira", exact: true }).waitFor();
    expect((await login("sam@p1.test")).status).toBe(401);
    await page.getByRole("button", { name: "Activate Samira", exact: true }).click();
    await confirm(page, "Activate");
    await page.getByRole("button", { name: "Deactivate Samira" }).waitFor();

    for (let i = 0; i < 6; i++) await login("sam@p1.test", "wrong");
    await go(page, "Users");
    await page.getByRole("textbox", { name: "Name or email" }).fill("AM@p1.t");
    await page.waitForURL("**/users?q=AM%40p1.t");
    const sam = rowOf(page, "sam@p1.test");
    await sam.getByText("Locked").waitFor();
    expect(await sam.innerText()).toContain("until ");
    await sam.getByRole("link", { name: "Samira" }).click();
    await page.getByRole("button", { name: "Unlock Samira" }).click();
    await page
      .getByText("Locked after wrong passwords", { exact: true })
      .waitFor({ state: "detached" });
    expect((await login("sam@p1.test")).status).toBe(200);

    // The dialog shows the person as text, opens no list, and leaves the address when it closes.
    await page.getByRole("link", { name: "erase this person" }).click();
    await dialog.getByText("sam@p1.test").waitFor();
    expect(await page.getByRole("listbox").count()).toBe(0);
    await checkLooks(page, "erase user");
    await dialog.getByText("Tick the box first.").waitFor();
    await dialog.getByLabel(/cannot be undone/).check();
    await dialog.getByRole("button", { name: "Erase" }).click();
    await rowOf(page, "A user").waitFor();
    expect(new URL(page.url()).search).toBe("");
    await page.goBack();
    await page.getByRole("heading", { name: /^Erased user \d/ }).waitFor();
    expect(await page.getByRole("button", { name: /Edit|ctivate/ }).count()).toBe(0);
    await checkLooks(page, "erased user");

    await go(page, "Users");
    await page.getByLabel("Role").selectOption({ label: "Super-admin" });
    const { email } = world.tenants.superAdmin;
    await rowOf(page, email).getByRole("link").click();
    await page.getByRole("button", { name: /^Deactivate/ }).click();
    await dialog.getByText("This is you").waitFor();
    await confirm(page, "Deactivate");
    await dialog.getByText("The last active super-admin cannot be deactivated.").waitFor();
    await dialog.getByText("Make another user a super-admin first").waitFor();
    expect(faults).toEqual([]);
  });

  test("edits a company, and deactivates an account, whose users are signed out", async () => {
    const [, two] = world.tenants.partners;
    const token = await world.api.login(two.accounts[0].owner.email);
    const { page, faults } = await visit(`/companies?tab=accounts&partner=${two.id}&name=A1`);
    await rowOf(page, "p2-a1").waitFor();
    expect(await page.getByRole("row").count()).toBe(2);
    await page.getByRole("link", { name: "p2-a1" }).click();
    await heading(page, "p2-a1").waitFor();
    await page.getByRole("button", { name: "Deactivate p2-a1" }).click();
    await page.getByRole("dialog").getByText("All users of the account are signed out").waitFor();
    await confirm(page, "Deactivate");
    await page.getByRole("button", { name: "Activate p2-a1", exact: true }).waitFor();
    expect((await world.api.call("GET", "/verify-token", { token })).status).toBe(401);
    await page.getByRole("button", { name: "Activate p2-a1", exact: true }).click();
    await confirm(page, "Activate");
    await page.getByRole("button", { name: "Deactivate p2-a1" }).waitFor();
    await page.getByRole("tab", { name: "Stores" }).click();
    await page.getByRole("link", { name: "p2-a1 east" }).waitFor();

    await page.getByRole("link", { name: "p2", exact: true }).click();
    await heading(page, "p2").waitFor();
    await page.getByRole("button", { name: "Edit" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Logo" }).fill("http://p2.test/logo.png");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("must be an https URL").waitFor();
    await dialog.getByRole("textbox", { name: "Logo" }).fill("https://p2.test/logo.png");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("https://p2.test/logo.png").waitFor();
    expect(faults).toEqual([]);
  });

  test("sees on a company's page and in the list that its deletion is scheduled", async () => {
    const token = await world.api.login(world.tenants.superAdmin.email);
    const named = { name: "Leaving" };
    const made = await world.api.call("POST", "/admin/partners", { token, body: named });
    const path = `/admin/partners/${String(made.body["id"])}`;
    await world.api.call("POST", `${path}/deactivate`, { token });
    const { page } = await visit(`/companies/${String(made.body["id"])}`);
    await page.getByText("can be deleted for good").waitFor();
    const asked = await world.api.call("POST", `${path}/deletion`, { token, body: named });
    expect(asked.status).toBe(202);
    await page.reload();
    await page.getByText("Its deletion begins in 30 days").waitFor();
    await page.getByRole("link", { name: "Show or cancel it" }).click();
    await rowOf(page, "Leaving").getByText("Scheduled").waitFor();
    await rowOf(page, "Leaving").getByRole("button", { name: "Cancel the deletion" }).click();
    await confirm(page, "Cancel the deletion");
    await page.getByText("No company is scheduled for deletion").waitFor();
    await page.goBack();
    await page.getByText("can be deleted for good").waitFor();
  });

  test("creates a provider and rotates its secret, each shown once", async () => {
    const { page } = await visit("/providers");
    await page.getByRole("button", { name: "New provider" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Name" }).fill("Trustworthy Één");
    // The slug follows the name until somebody edits it.
    expect(await dialog.getByRole("textbox", { name: "Slug" }).inputValue()).toBe(
      "trustworthy-een",
    );
    await dialog.getByRole("textbox", { name: "Slug" }).fill("Not A Slug");
    await dialog.getByRole("textbox", { name: "Name" }).fill("Trustworthy");
    await dialog.getByRole("button", { name: "Create provider" }).click();
    await dialog.getByText("must be 1 to 64 of a-z").waitFor();
    await dialog.getByRole("textbox", { name: "Slug" }).fill("trustworthy");
    await dialog.getByRole("button", { name: "Create provider" }).click();
    const readSecret = async () => {
      const shown = page.getByRole("dialog", { name: "The secret of Trustworthy" });
      const field = shown.getByRole("textbox", { name: "Secret" });
      await field.waitFor();
      expect(await field.inputValue()).toMatch(/^•+$/);
      await shown.getByRole("button", { name: "Show" }).click();
      const secret = await field.inputValue();
      await shown.getByRole("button", { name: "I have stored it" }).click();
      await shown.waitFor({ state: "detached" });
      return secret;
    };
    const first = await readSecret();
    await page.getByRole("button", { name: "More actions for Trustworthy" }).click();
    await page.getByRole("menuitem", { name: "Rotate secret" }).click();
    await confirm(page, "Rotate secret");
    const second = await readSecret();
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    expect(second).not.toBe(first);
    expect(await page.content()).not.toContain(second);
  });

  test("connects a company with its identity provider, edits the connection, and deletes it", async () => {
    const { page, faults } = await visit("/sso");
    await page.getByRole("button", { name: "New connection" }).first().click();
    const dialog = page.getByRole("dialog");
    await choose(page, "Company", "p1-a1");
    await dialog.getByRole("textbox", { name: "Issuer" }).fill("https://10.0.0.1/");
    await dialog.getByRole("textbox", { name: "Client ID" }).fill("reviews");
    await dialog.getByRole("textbox", { name: "Client secret" }).fill("hush");
    const domains = dialog.getByRole("combobox", { name: "Email domains" });
    for (const domain of ["corp.example", "nonsense"]) {
      await domains.fill(domain);
      await page.keyboard.press("Enter");
    }
    await dialog.getByRole("button", { name: "Create connection" }).click();
    await dialog.getByText("number 2 must be a domain such as example.com").waitFor();
    await domains.press("Backspace");
    await dialog.getByRole("textbox", { name: "Issuer" }).fill("http://127.0.0.1:9/idp");
    await dialog.getByRole("button", { name: "Create connection" }).click();
    await page.getByRole("heading", { name: "Single sign-on of p1-a1" }).waitFor();
    const redirect = await page.getByText("/auth/sso/callback/").innerText();
    expect(redirect).toStartWith(`${world.root}/api/v1/auth/sso/callback/`);

    const domain = page.getByRole("region", { name: "corp.example" });
    await domain.getByText("_reviewrelay.corp.example").waitFor();
    await domain.getByRole("button", { name: "Verify corp.example" }).click();
    await domain.getByText("corp.example has no TXT record").waitFor();
    await page.getByText("Not created: invite each user first").waitFor();

    await page.getByRole("button", { name: "Edit" }).click();
    await dialog.getByRole("switch", { name: "Allow passwords" }).click();
    await dialog.getByRole("switch", { name: "Trust unverified addresses" }).click();
    await dialog.getByRole("switch", { name: "Create users at their first sign-in" }).click();
    await dialog.getByLabel("Role of new users").selectOption({ label: "Location user" });
    await dialog.getByRole("combobox", { name: "Stores of new users" }).click();
    await page.getByRole("option", { name: "p1-a1 east" }).click();
    await page.keyboard.press("Escape");
    await checkLooks(page, "edit single sign-on");
    await dialog.getByRole("button", { name: "Save changes" }).click();
    await page.getByText("Not accepted: only single sign-on").waitFor();
    await page.getByText("Created at their first sign-in as Location user").waitFor();
    const [row] = await world.database.db.sql`
      select trust_email, new_user_role, new_user_store_ids from sso_connections`;
    const [east] = world.tenants.partners[0].accounts[0].storeIds;
    expect(row).toEqual({
      trust_email: true,
      new_user_role: "location_user",
      new_user_store_ids: [east],
    });
    const discover = async () =>
      (await world.api.call("POST", "/auth/discover", { body: { email: "a@corp.example" } })).body;
    expect(await discover()).toMatchObject({ password: false, sso: true });
    await page.getByRole("button", { name: /^Deactivate/ }).click();
    await confirm(page, "Deactivate");
    await page.getByText("Inactive", { exact: true }).waitFor();
    expect(await discover()).toMatchObject({ password: true, sso: false });
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await confirm(page, "Delete connection");
    await page.getByRole("heading", { name: "No SSO connection yet" }).waitFor();
    expect(faults).toEqual([]);
  });

  test("unlinks a user from an identity provider, as an owner does for the team", async () => {
    const [{ id: companyId, owner, admin }] = world.tenants.partners;
    const connectionId = await addSsoConnection(world.database.db, {
      companyId,
      domains: ["p1.test"],
    });
    const link = () => world.database.db.sql`
      insert into sso_identities (issuer, subject, user_id, connection_id, linked_at)
      values ('https://idp.example', 'the-subject', ${admin.id}, ${connectionId}, now())`;
    for (const [at, email, none] of [
      [`/users/${admin.id}`, world.tenants.superAdmin.email, "Never used"],
      [`/team/${admin.id}`, owner.email, /\bNo .*single sign-on\.$/],
    ] as const) {
      await link();
      const { page, faults } = await visit(at, email);
      await page.getByText("the-subject").waitFor();
      expect(await seriousFaultsInSchemes(page)).toEqual([]);
      await page.getByRole("button", { name: "Unlink https://idp.example" }).click();
      const question = page.getByRole("dialog", { name: /^Unlink / });
      await question.getByText("end immediately").waitFor();
      await question.getByRole("button", { name: "Unlink", exact: true }).click();
      await page.getByText(none).waitFor();
      expect(await world.database.db.sql`select from sso_identities`).toHaveLength(0);
      expect(faults).toEqual([]);
      await page.close();
    }
  });

  test("reads and filters the audit log", async () => {
    const [one] = world.tenants.partners;
    const [account] = one.accounts;
    const partner = await world.api.login(one.owner.email);
    const asked = await world.api.call("POST", "/partner/account-owner/token", {
      token: partner,
      body: { account_id: account.id, reason: "Ticket 7" },
      headers: { "X-Request-Id": "ticket-7" },
    });
    expect(asked.status).toBe(201);
    const { page, faults } = await visit("/audit");
    const line = entries(page).getByRole("row").filter({ hasText: "was impersonated" }).first();
    await line.getByText(`by Name of ${one.owner.email}`, { exact: true }).waitFor();
    await line.getByRole("button").click();
    for (const part of ["Was impersonated", "Ticket 7", "ticket-7", account.owner.email])
      await line.getByText(part).first().waitFor();
    await line.getByRole("button", { name: "Copy the request ID" }).waitFor();
    await checkLooks(page, "audit entry");

    const action = page.getByRole("combobox", { name: "Action" });
    await action.focus();
    await page.keyboard.type("viewed the secret of a subscription");
    await page.locator("[data-combobox-selected]").waitFor();
    await action.press("Enter");
    await page.waitForURL("**/audit?action=WEBHOOK_SECRET_SHOWN");
    await page.getByRole("combobox", { name: "Action" }).fill("Signed");
    await page.getByRole("option", { name: "Signed in", exact: true }).click();
    await page.waitForURL("**/audit?action=AUTH_LOGIN");
    await line.waitFor({ state: "detached" });
    await page.getByRole("textbox", { name: "User" }).fill("nobody@nowhere.test");
    await page.keyboard.press("Enter");
    await page.getByText("No user has this email.").waitFor();
    await page.getByRole("textbox", { name: "User" }).fill(one.owner.email);
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/audit?action=AUTH_LOGIN&actor=${one.owner.id}`);
    // The previous entries stay until the answer arrives.
    await entries(page)
      .getByText(world.tenants.superAdmin.email)
      .first()
      .waitFor({ state: "detached" });
    const lines = await entries(page).getByRole("row").allInnerTexts();
    for (const text of lines)
      expect(text.trim()).toMatch(new RegExp(`^Name of ${one.owner.email} \\(.+\\) signed in`));
    await page.getByRole("button", { name: "Export" }).click();
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: "CSV" }).click(),
    ]);
    const [head = "", ...rows] = (await Bun.file(await saved.path()).text()).trim().split("\r\n");
    expect(head).toStartWith("id,at,action,actor_id,actor_name,");
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) expect(row).toContain(`,AUTH_LOGIN,${one.owner.id},`);
    await page.getByLabel("Time", { exact: true }).selectOption("From … to …");
    await page.getByLabel("From").fill("2099-01-01T00:00");
    await page.getByRole("heading", { name: "No matching entries" }).waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await line.waitFor();
    expect(faults).toEqual([]);
  });

  test("tests the audit webhook, and reads of the answer although newer entries wait", async () => {
    const { sql } = world.database.db;
    const token = await world.api.login(world.tenants.superAdmin.email);
    const body = { url: "https://siem.example/audit" };
    const set = await world.api.call("PUT", "/admin/audit-webhook", { token, body });
    expect(set.status).toBe(200);
    const { page, faults } = await visit("/audit-webhook");
    await page.getByRole("button", { name: "Send test" }).click();
    await page.getByText("Sending the test…").waitFor();
    // What a dispatcher saves once a full POST was accepted.
    const accepted = (until: string) => sql`
      update audit_webhooks set delivered_at = clock_timestamp(), after_id = (
        select max(id) from audit_log where action = ${until}
      )`;
    await accepted("AUDIT_WEBHOOK_SET");
    await page.getByText("The next entry is from").waitFor();
    expect(await page.getByText("Test accepted").count()).toBe(0);
    await sql`insert into audit_log (at, action, details) values (now() + interval '1 s', 'AUTH_LOGOUT', '{}')`;
    await accepted("AUDIT_WEBHOOK_TESTED");
    await page.getByText("Test accepted").waitFor();
    await page.getByText("The next entry is from").waitFor();
    await checkLooks(page, "audit webhook");
    expect(faults).toEqual([]);
  });

  test("reads the audit log with the dates of the browser's locale, and with each user's name", async () => {
    const [{ id, owner, admin }] = world.tenants.partners;
    await world.database.db.sql`
      insert into audit_log (at, action, actor_id, company_id, request_id, details)
      values ('2026-03-04T12:00:00Z', 'USER_DEACTIVATED', ${owner.id}, ${id}, 'german', ${`{"user_id": ${admin.id}}`})`;
    const { page } = await visit("/audit?until=2026-03-05T00:00:00Z", undefined, {
      locale: "de-DE",
    });
    const row = entries(page).getByRole("row").first();
    await row.getByRole("button").first().click();
    await row.getByText("4. März 2026").first().waitFor();
    await row.getByText(`deactivated Name of ${admin.email}`).waitFor();
    await entries(page).getByText(`, ${owner.email} (user ${owner.id})`).waitFor();
  });
});

/** Signs in and opens a page, by default as the operator. */
async function visit(path: string, email = world.tenants.superAdmin.email, look = {}) {
  return world.open(path, { email, ...look });
}

const choose = async (page: Page, label: string, option: string) => {
  const field = page.getByRole("dialog").getByRole("combobox", { name: label });
  await field.fill(option);
  await page.getByRole("option", { name: option, exact: true }).click();
};

const entries = (page: Page) =>
  page.getByRole("table", { name: "Entries, newest first" }).locator("tbody");

async function createUser(page: Page, user: Record<"name" | "email" | "role", string>) {
  await page.getByRole("button", { name: "New user" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Name" }).fill(user.name);
  await dialog.getByRole("textbox", { name: "Email" }).fill(user.email);
  await dialog.getByLabel("Role").selectOption({ label: user.role });
  await dialog.getByRole("textbox", { name: "Password" }).fill("a long pass phrase of mine");
}

const NEW_PASSWORD = "a long pass phrase of mine";

const login = (email: string, password = NEW_PASSWORD) =>
  world.api.call("POST", "/login", { body: { email, password } });
