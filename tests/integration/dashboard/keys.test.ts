import { describe, expect, test } from "bun:test";

import type { Page } from "playwright-core";

import { PASSWORD } from "../../support/api.ts";
import { codeSentTo } from "../../support/auth-mails.ts";
import { checkLooks, seriousFaults } from "../../support/dashboard/dashboard.ts";
import { button, inDialog } from "../../support/dashboard/locators.ts";
import { useDashboard } from "../../support/dashboard/use-dashboard.ts";
import { lacks } from "../../support/needs.ts";
import { credentialsOf, postForm } from "../../support/oauth.ts";
import { addUser } from "../../support/tenants.ts";

const world = useDashboard();

describe.skipIf(lacks("chromium"))("the personal access token", () => {
  test("is generated, shown on request, copied and deleted, and then stops at once", async () => {
    const { page, faults } = await openKeys((await freshUser()).email);
    await page.getByText("You have not generated one yet.").waitFor();
    expect(await keyRow(page, PERSONAL).count()).toBe(0);
    await button(page, "Manage token").click();
    await page.getByText("This token never expires and can do everything").waitFor();
    await checkLooks(page, "personal token");
    await button(page, "Generate token").click();
    await button(page, "Copy").waitFor();
    expect(await texts(page)).not.toContain("eyJ");
    const token = await shownSecret(page, "Token");
    expect(await texts(page)).toContain(token);
    expect(await statusOf(token)).toBe(200);
    expect(await copied(page)).toBe(token);
    await button(page, "Hide").click();

    await button(page, "Regenerate").click();
    await page.getByRole("dialog").getByText("everything that uses it").waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await inDialog(page, "Cancel").click();
    expect(await statusOf(token)).toBe(200);

    await button(page, "Delete").click();
    await inDialog(page, "Delete").click();
    await page.getByText("You have not generated one yet.").waitFor();
    expect(await statusOf(token)).toBe(401);
    expect(await texts(page)).not.toContain("eyJ");
    expect(faults).toEqual([]);
  });

  test("is read only on request, because each read is in the audit log", async () => {
    const { email } = await freshUser();
    const token = await world.api.login(email);
    await world.api.call("POST", "/account/api-token", { token });
    const { page } = await openKeys(email);
    const looks = async () => {
      const [row] = await world.database.db.sql<{ count: number }[]>`
        select count(*)::int as count from audit_log a join users u on u.id = a.actor_id
        where a.action = 'TOKEN_VIEWED' and u.email = ${email}`;
      return row?.count;
    };
    await keyRow(page, PERSONAL).waitFor();
    // Another tab deletes it, and later generates one.
    await world.api.call("DELETE", "/account/api-token", { token });
    await button(page, "Manage token").click();
    await button(page, "Show").click();
    await button(page, "Generate token").waitFor();
    await world.api.call("POST", "/account/api-token", { token });
    await button(page, "Generate token").click();
    await button(page, "Show").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    expect(await looks()).toBe(0);
    expect(await copied(page)).toStartWith("eyJ");
    expect(await looks()).toBe(1);
    // The token that was copied is shown without another request.
    expect(await shownSecret(page, "Token")).toStartWith("eyJ");
    expect(await looks()).toBe(1);
  });

  test("is denied, with a reason, after a sign-in by a new password", async () => {
    const { email } = await freshUser();
    const { page } = await world.open("/keys", { email: null });
    await page.getByLabel("Email").fill(email);
    await button(page, "Continue").click();
    await button(page, "Forgot your password?").click();
    await button(page, "Email me a code").click();
    await page.getByLabel("Digit 1 of 6").and(page.locator(":focus")).waitFor();
    await page.keyboard.type(await codeSentTo(world.api.deps, email));
    await page.getByRole("textbox", { name: "New password" }).fill("another horse battery staple");
    await button(page, "Set the password and sign in").click();
    await generate(page);
    await page.getByText("Sign in again to manage the token").waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await page.getByRole("alert").getByRole("button", { name: "Sign out" }).click();
    await page.getByText("You are signed out", { exact: true }).waitFor();
  });
});

describe.skipIf(lacks("chromium"))("API tokens for a day", () => {
  test("are created by keyboard with a name and scopes, shown once, listed and deleted", async () => {
    const { page, faults } = await openKeys((await freshUser()).email);
    await button(page, "Create").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("menuitem", { name: /^24-hour token/ }).press("Enter");
    await page.getByLabel("Name").and(page.locator(":focus")).waitFor();
    await page.keyboard.type("<b>Nightly</b> import");
    for (let i = 0; i < 2; i++) await page.keyboard.press("Tab");
    await page.getByLabel("Read reviews").and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Space");
    await page.getByText("Choose at least one scope.").waitFor();
    expect(await inDialog(page, "Create token").isDisabled()).toBe(true);
    for (let i = 0; i < 2; i++) await page.keyboard.press("Tab");
    await page.getByLabel("Read webhooks and deliveries").and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Space");
    await page.keyboard.press("Enter");
    await page.getByText("You cannot see it again").waitFor();
    expect(await texts(page)).not.toContain("eyJ");
    await checkLooks(page, "token secret");
    const token = await shownSecret(page, "API token");
    expect(token).toStartWith("eyJ");
    expect(await texts(page)).toContain(token);
    expect(await statusOf(token, "/partner/webhooks")).toBe(200);
    expect(await statusOf(token, "/account/sessions")).toBe(403);
    // Escape or a click outside must not close the dialog, because the secret would be lost.
    await page.keyboard.press("Escape");
    await page.mouse.click(5, 5);
    await button(page, "I have stored it").click();
    await page.getByText("You cannot see it again").waitFor({ state: "detached" });
    expect(await texts(page)).not.toContain("eyJ");

    const row = keyRow(page, "Nightly");
    expect(await row.innerText()).toContain("<b>Nightly</b> import");
    expect(await row.innerText()).toContain("webhooks:read");
    await row.getByRole("button").click();
    await inDialog(page, "Delete").click();
    await row.waitFor({ state: "detached" });
    expect(await statusOf(token, "/partner/webhooks")).toBe(401);
    expect(faults).toEqual([]);
  });
});

describe.skipIf(lacks("chromium"))("integrations", () => {
  test("are made, changed and deleted by an owner, with a token of their own; an admin sees them", async () => {
    const { owner, admin } = world.tenants.partners[1];
    const { page, faults } = await openKeys(owner.email);
    await create(page, "Integration");
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Name" }).and(page.locator(":focus")).waitFor();
    await page.keyboard.type("CRM");
    await dialog.getByLabel("Read reviews").uncheck();
    await dialog.getByLabel("Read webhooks and deliveries").check();
    await checkLooks(page, "new integration");
    await inDialog(page, "Create integration").click();
    await dialog.getByText("This token never expires").waitFor();
    await inDialog(page, "Generate token").click();
    await inDialog(page, "Copy").waitFor();
    const token = await shownSecret(page, "Token");
    await checkLooks(page, "integration token");
    expect(await statusOf(token, "/partner/webhooks")).toBe(200);
    expect(await statusOf(token, "/partner/users")).toBe(403);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });

    const row = keyRow(page, "CRM");
    expect(await row.innerText()).toContain("webhooks:read");
    const act = async (action: string) => {
      await button(page, "Actions for CRM").click();
      await page.getByRole("menuitem", { name: action }).click();
    };
    await act("Edit");
    await dialog.getByLabel("Read reviews").check();
    await dialog.getByText("Regenerate the token afterwards").waitFor();
    await inDialog(page, "Save").click();
    await row.getByText("webhooks:read, reviews:read").waitFor();

    const { page: theirs } = await openKeys(admin.email);
    await keyRow(theirs, "CRM").waitFor();
    expect(await button(theirs, "Actions for CRM").count()).toBe(0);

    await act("Manage token");
    expect(await shownSecret(page, "Token")).toBe(token);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await act("Delete");
    await inDialog(page, "Delete integration").click();
    await row.waitFor({ state: "detached" });
    expect(await statusOf(token, "/partner/webhooks")).toBe(401);
    expect(faults).toEqual([]);
  });
});

describe.skipIf(lacks("chromium"))("OAuth clients", () => {
  test("a super-admin creates one whose secret works at /oauth/token, rotates it and deletes it", async () => {
    const { page, faults } = await openKeys(world.tenants.superAdmin.email);
    await create(page, "OAuth client");
    await page.getByLabel("Name").fill("Back office");
    await page.getByLabel("Redirect URIs").fill("https://office.test/cb");
    await page.getByLabel("Full access").check();
    await page.getByLabel("Password").check();
    await page.getByLabel("First-party").check();
    await inDialog(page, "Create client").click();
    await page.getByText("You cannot see it again").waitFor();
    const secret = await shownSecret(page, "client_secret");
    expect(await copied(page)).toBe(secret);
    const clientId = await page.getByRole("dialog").locator("code").innerText();
    await button(page, "I have stored it").click();
    const grant = (client_secret: string) =>
      postForm(world.api, "/oauth/token", {
        grant_type: "password",
        username: world.tenants.partners[0].owner.email,
        password: PASSWORD,
        ...credentialsOf({ clientId, secret: client_secret }),
      });
    const granted = await grant(secret);
    expect(granted.status).toBe(200);
    const token = String(granted.body["access_token"]);

    await button(page, "Actions for Back office").click();
    await page.getByRole("menuitem", { name: "Rotate secret" }).click();
    await page.getByRole("dialog").getByText("stops working immediately").waitFor();
    await inDialog(page, "Rotate secret").click();
    await page.getByText("You cannot see it again").waitFor();
    const next = await shownSecret(page, "client_secret");
    await button(page, "I have stored it").click();
    expect((await grant(secret)).status).toBe(401);
    expect((await grant(next)).status).toBe(200);
    expect(await statusOf(token)).toBe(200);

    await button(page, "Actions for Back office").click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByRole("dialog").getByText("all its tokens are revoked").waitFor();
    await inDialog(page, "Delete client").click();
    await page.getByText("Client deleted").waitFor();
    expect(await statusOf(token)).toBe(401);
    expect(faults).toEqual([]);
  });

  test("a partner creates and edits its own; errors are shown at their fields", async () => {
    const { page } = await openKeys((await freshUser()).email);
    await create(page, "OAuth client");
    expect(await page.getByLabel("First-party").count()).toBe(0);
    expect(await page.getByLabel("Password").count()).toBe(0);
    await page.getByLabel("Name").fill("Acme <script>alert(1)</script>");
    await page.getByLabel("Redirect URIs").fill("https://acme.test/cb\n\nhttp://acme.test/cb");
    await inDialog(page, "Create client").click();
    await page.getByText(/^http:\/\/acme\.test\/cb /).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await page.getByLabel("Redirect URIs").fill("https://acme.test/cb");
    await page.getByLabel("In a browser or on a phone").check();
    await inDialog(page, "Create client").click();
    const row = keyRow(page, "Acme");
    await row.waitFor();
    expect(await row.innerText()).toContain("Acme <script>alert(1)</script>");
    expect(await row.innerText()).toContain("Public");

    await row.getByRole("button", { name: /^Actions for/ }).click();
    expect(await page.getByRole("menuitem", { name: "Rotate secret" }).count()).toBe(0);
    await page.getByRole("menuitem", { name: "Edit" }).click();
    expect(await page.getByLabel("Redirect URIs").inputValue()).toBe("https://acme.test/cb");
    await page.getByLabel("Name").fill("Acme app");
    await page.getByLabel("Read webhooks and deliveries").check();
    await inDialog(page, "Save").click();
    await page.getByText("Client updated.").waitFor();
    await row.getByText("reviews:read, webhooks:read").waitFor();
    await row.getByText("Acme app", { exact: true }).waitFor();
  });
});

let names = 0;

const freshUser = () =>
  addUser(world.database.db, {
    companyId: world.tenants.partners[0].id,
    role: "partner_admin",
    email: `person-${++names}@p1.test`,
  });

const PERSONAL = "Personal access token";

/** Generates the personal access token as contract 3.2 words it: API Keys, Manage token, Generate token. */
async function generate(page: Page): Promise<void> {
  await button(page, "Manage token").click();
  await button(page, "Generate token").click();
}

/** Opens the form for a kind of key. */
async function create(page: Page, kind: string): Promise<void> {
  await button(page, "Create").click();
  await page.getByRole("menuitem", { name: new RegExp(`^${kind}`) }).click();
}

const keyRow = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });

const statusOf = async (token: string, path = "/verify-token") =>
  (await world.api.call("GET", path, { token })).status;

/** The markup of a page and what its fields contain. */
const texts = (page: Page) =>
  page.evaluate<string>(
    "document.documentElement.outerHTML + [...document.querySelectorAll('input')].map(({ value }) => value)",
  );

async function openKeys(email: string) {
  const opened = await world.open("/keys", { email });
  const { page } = opened;
  await page
    .context()
    .grantPermissions(["clipboard-read", "clipboard-write"], { origin: world.root });
  await page.getByRole("heading", { name: "API Keys", level: 1 }).waitFor();
  return opened;
}

/** Reveals a masked field and returns its value. */
async function shownSecret(page: Page, label: string): Promise<string> {
  const field = page.getByRole("textbox", { name: label, exact: true });
  expect(await field.inputValue()).toMatch(/^•+$/);
  await button(page, "Show").click();
  await button(page, "Hide").waitFor();
  return field.inputValue();
}

async function copied(page: Page): Promise<string> {
  await button(page, "Copy").click();
  await button(page, "Copied").waitFor();
  return page.evaluate<string>("navigator.clipboard.readText()");
}
