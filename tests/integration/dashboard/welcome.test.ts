import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import type { Browser } from "playwright-core";

import type { TestApi } from "../../support/api.ts";
import { mailsTo } from "../../support/auth-mails.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import {
  openDashboard,
  openSignedIn,
  seriousFaults,
  serveDashboard,
} from "../../support/dashboard/dashboard.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

describe.skipIf(lacks("chromium"))("the link of an invitation", () => {
  test("sets a first password and signs in; the code does not stay in the address", async () => {
    const email = "invited@p1.test";
    const { page, faults } = await openDashboard(browser, {
      root,
      path: await invitationOf(email),
    });
    const field = page.getByLabel("New password");
    await field.waitFor();
    expect(page.url()).toBe(`${root}/dashboard`);
    await page.getByText(email).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    const set = page.getByRole("button", { name: "Set the password and sign in" });
    await field.fill("password");
    await set.click();
    await page.getByText("too common").waitFor();
    await field.fill("another horse battery staple");
    await set.click();
    await page.getByRole("navigation", { name: "Main" }).waitFor();
    await api.login(email, "another horse battery staple");
    expect(faults).toEqual([]);
    await page.close();
  });

  test("that was used shows an error and a link to the sign-in", async () => {
    const path = await invitationOf("twice@p1.test");
    const code = new URLSearchParams(path.split("#")[1]).get("invitation") ?? "";
    const body = { code, password: "another horse battery staple" };
    expect((await api.call("POST", "/auth/invitation", { body })).status).toBe(200);
    const { page } = await openDashboard(browser, { root, path });
    await page.getByLabel("New password").fill("a third horse battery staple");
    await page.getByRole("button", { name: "Set the password and sign in" }).click();
    await page.getByText("The code is invalid, expired or already used.").waitFor();
    await page.getByRole("button", { name: "Go to the sign-in" }).click();
    await page.getByLabel("Email").waitFor();
    await page.close();
  });
});

describe.skipIf(lacks("chromium"))("the link to a recipient of alerts", () => {
  test("confirms the address by a button, and the settings no longer ask for it", async () => {
    const email = "on-call@elsewhere.test";
    const token = await api.login(tenants.partners[0].owner.email);
    const body = { recipients: [email] };
    expect((await api.call("PATCH", "/partner/alerts", { token, body })).status).toBe(200);
    const owner = await openSignedIn(browser, {
      root,
      path: "/webhooks/alerts",
      email: tenants.partners[0].owner.email,
    });
    await owner.page.getByText("Until one address is confirmed, alerts go to the owners").waitFor();
    expect(await seriousFaults(owner.page)).toEqual([]);
    await owner.page.getByRole("button", { name: "Resend link" }).click();
    await owner.page.getByText("Link sent.").waitFor();

    const { page, faults } = await openDashboard(browser, { root, path: await linkTo(email) });
    await page.getByRole("button", { name: "Confirm the address" }).waitFor();
    expect(page.url()).toBe(`${root}/dashboard`);
    expect(await seriousFaults(page)).toEqual([]);
    await page.getByRole("button", { name: "Confirm the address" }).click();
    await page.getByText(`Alerts will be sent to ${email}.`).waitFor();
    expect(faults).toEqual([]);
    await owner.page.reload();
    await owner.page.getByLabel("Addresses", { exact: true }).waitFor();
    expect(await owner.page.getByText("Waiting for confirmation").count()).toBe(0);
    await page.close();
    await owner.page.close();
  });

  test("that has no code says so", async () => {
    const { page } = await openDashboard(browser, { root, path: "/alert-recipient#code=x" });
    await page.getByRole("button", { name: "Confirm the address" }).click();
    await page.getByText("The code is invalid, expired or already used.").waitFor();
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

/** Returns the path of the invitation link in the mail to a new user. */
async function invitationOf(email: string): Promise<string> {
  const token = await api.login(tenants.superAdmin.email);
  const company_id = tenants.partners[0].id;
  const body = { company_id, email, name: "New", role: "partner_admin" };
  expect((await api.call("POST", "/admin/users", { token, body })).status).toBe(201);
  return linkTo(email);
}

/** Returns the path of the link in the last mail to an address. */
async function linkTo(email: string): Promise<string> {
  const link = /http\S+/.exec((await mailsTo(api.deps, email)).at(-1)?.text ?? "")?.[0] ?? "";
  return link.replace(`${root}/dashboard`, "");
}
