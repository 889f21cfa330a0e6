import { describe, expect, test } from "bun:test";

import { mailsTo } from "../../support/auth-mails.ts";
import { seriousFaults } from "../../support/dashboard/dashboard.ts";
import { navigation } from "../../support/dashboard/locators.ts";
import { useDashboard } from "../../support/dashboard/use-dashboard.ts";
import { lacks } from "../../support/needs.ts";

const world = useDashboard();

describe.skipIf(lacks("chromium"))("the link of an invitation", () => {
  test("sets a first password and signs in; the code does not stay in the address", async () => {
    const email = "invited@p1.test";
    const { page, faults } = await world.open(await invitationOf(email), { email: null });
    const field = page.getByLabel("New password");
    await field.waitFor();
    expect(page.url()).toBe(`${world.root}/dashboard`);
    await page.getByText(email).waitFor();
    await page.getByRole("heading", { name: "Welcome to p1 on Brand p1" }).waitFor();
    await page
      .getByText("Brand p1 support invited you to join p1 on Brand p1 as an admin.")
      .waitFor();
    expect(await page.title()).toEndWith("· Brand p1");
    expect(await seriousFaults(page)).toEqual([]);
    const set = page.getByRole("button", { name: "Set the password and sign in" });
    await field.fill("password");
    await set.click();
    await page.getByText("too common").waitFor();
    await field.fill("another horse battery staple");
    await set.click();
    await navigation(page).waitFor();
    await world.api.login(email, "another horse battery staple");
    expect(faults).toEqual([]);
  });

  test("that was used shows an error and a link to the sign-in", async () => {
    const path = await invitationOf("twice@p1.test");
    const code = new URLSearchParams(path.split("#")[1]).get("invitation") ?? "";
    const body = { code, password: "another horse battery staple" };
    expect((await world.api.call("POST", "/auth/invitation", { body })).status).toBe(200);
    const { page } = await world.open(path, { email: null });
    await page.getByText("This invitation cannot be used any more").waitFor();
    await page.getByRole("button", { name: "Go to the sign-in" }).click();
    await page.getByLabel("Email").waitFor();
  });
});

describe.skipIf(lacks("chromium"))("the link to a recipient of alerts", () => {
  test("confirms the address by a button, and the settings no longer ask for it", async () => {
    const email = "on-call@elsewhere.test";
    const token = await world.api.login(world.tenants.partners[0].owner.email);
    const body = { recipients: [email] };
    expect((await world.api.call("PATCH", "/partner/alerts", { token, body })).status).toBe(200);
    const owner = await world.open("/webhooks/alerts", {
      email: world.tenants.partners[0].owner.email,
    });
    await owner.page.getByText("Waiting for confirmation").waitFor();
    await owner.page.getByText("Until one address is confirmed, alerts go to the owners").waitFor();
    expect(await seriousFaults(owner.page)).toEqual([]);
    await owner.page.getByRole("button", { name: "Resend link" }).click();
    await owner.page.getByText("Link sent.").waitFor();

    const { page, faults } = await world.open(await linkTo(email), { email: null });
    await page.getByRole("button", { name: "Confirm the address" }).waitFor();
    expect(page.url()).toBe(`${world.root}/dashboard`);
    expect(await seriousFaults(page)).toEqual([]);
    await page.getByRole("button", { name: "Confirm the address" }).click();
    await page.getByText(`Alerts will be sent to ${email}.`).waitFor();
    expect(faults).toEqual([]);
    await owner.page.reload();
    await owner.page.getByLabel("Addresses", { exact: true }).waitFor();
    expect(await owner.page.getByText("Waiting for confirmation").count()).toBe(0);
  });

  test("that has no code says so", async () => {
    const { page } = await world.open("/alert-recipient#code=x", { email: null });
    await page.getByRole("button", { name: "Confirm the address" }).click();
    await page.getByText("The code is invalid, expired or already used.").waitFor();
  });
});

/** Returns the path of the invitation link in the mail to a new user. */
async function invitationOf(email: string): Promise<string> {
  const token = await world.api.login(world.tenants.superAdmin.email);
  const company_id = world.tenants.partners[0].id;
  const body = { company_id, email, name: "New", role: "partner_admin" };
  expect((await world.api.call("POST", "/admin/users", { token, body })).status).toBe(201);
  return linkTo(email);
}

/** Returns the path of the link in the last mail to an address. */
async function linkTo(email: string): Promise<string> {
  const link = /http\S+/.exec((await mailsTo(world.api.deps, email)).at(-1)?.text ?? "")?.[0] ?? "";
  return link.replace(`${world.root}/dashboard`, "");
}
