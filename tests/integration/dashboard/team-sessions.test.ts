import { describe, expect, test } from "bun:test";

import { allErrors, checkLooks } from "../../support/dashboard/dashboard.ts";
import { button, confirm } from "../../support/dashboard/locators.ts";
import { useDashboard } from "../../support/dashboard/use-dashboard.ts";
import { lacks } from "../../support/needs.ts";
import { addUser } from "../../support/tenants.ts";

const world = useDashboard();

describe.skipIf(lacks("chromium"))("the access of a team", () => {
  test.each([
    ["partner", "partner_admin"],
    ["account", "account_user"],
  ] as const)("an owner of a %s ends a sign-in and a token of a colleague", async (type, role) => {
    const { owner, companyId } = companyOf(type);
    const email = `colleague@${type}.test`;
    await addUser(world.database.db, { companyId, role, email });
    const signIn = await world.api.login(email);
    const other = await world.api.login(email);
    const made = await world.api.call("POST", "/account/personal-access-tokens", {
      token: other,
      body: { name: "Nightly export" },
    });
    const token = String(made.body["access_token"]);
    const { page, faults } = await visit(owner.email);
    const sessions = page.getByRole("table", { name: "Sign-ins of the team" });
    const theirs = sessions.getByRole("row").filter({ hasText: email });
    await theirs.nth(1).waitFor();
    expect(await theirs.count()).toBe(2);
    await sessions.getByText("This session").waitFor();
    await checkLooks(page, `access ${type}`);
    // The newest is the first.
    await theirs.first().getByRole("button").click();
    await page
      .getByRole("dialog")
      .getByText(`${nameOf(email)} is signed out of`)
      .waitFor();
    expect(await allErrors(page)).toEqual([]);
    await confirm(page, "End the session");
    await page.getByText("Session ended.").waitFor();
    expect(await theirs.count()).toBe(1);
    expect(await Promise.all([other, signIn, token].map(isAlive))).toEqual([false, true, true]);
    await button(page, `Revoke the token of ${nameOf(email)}: Nightly export`).click();
    await confirm(page, "Revoke token");
    await page.getByText("Token revoked.").waitFor();
    expect(await isAlive(token)).toBe(false);
    expect(await isAlive(signIn)).toBe(true);
    await page.getByText("Your team has no tokens.").waitFor();
    expect(faults).toEqual([]);
  });

  test("an admin of a partner sees the tokens only, and ends their own", async () => {
    const [, partner] = world.tenants.partners;
    for (const { email } of [partner.owner, partner.admin])
      await world.api.call("POST", "/account/personal-access-tokens", {
        token: await world.api.login(email),
        body: { name: `Of ${email}` },
      });
    const { page } = await visit(partner.admin.email);
    const row = (email: string) => page.getByRole("row").filter({ hasText: `Of ${email}` });
    await row(partner.owner.email).waitFor();
    expect(await row(partner.owner.email).getByRole("button").count()).toBe(0);
    expect(await row(partner.admin.email).getByRole("button").count()).toBe(1);
    expect(await page.getByText("Active sessions of your team").count()).toBe(0);
  });
});

function companyOf(type: "partner" | "account") {
  const [partner] = world.tenants.partners;
  const [account] = partner.accounts;
  return type === "partner"
    ? { owner: partner.owner, companyId: partner.id }
    : { owner: account.owner, companyId: account.id };
}

const visit = (email: string) => world.open("/access", { email });

const nameOf = (email: string) => `Name of ${email}`;

const isAlive = async (token: string) =>
  (await world.api.call("GET", "/verify-token", { token })).status === 200;
