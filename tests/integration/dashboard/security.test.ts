import { describe, expect, test } from "bun:test";

import { PASSWORD } from "../../support/api.ts";
import { codeSentTo } from "../../support/auth-mails.ts";
import { checkLooks, seriousFaults } from "../../support/dashboard/dashboard.ts";
import { button } from "../../support/dashboard/locators.ts";
import { useDashboard } from "../../support/dashboard/use-dashboard.ts";
import { lacks } from "../../support/needs.ts";
import { addSsoConnection, addUser } from "../../support/tenants.ts";

const world = useDashboard();

describe.skipIf(lacks("chromium"))("the security page", () => {
  test("changes the password: the current one, the code from the mail, a new one; this tab stays, also after a reload", async () => {
    const { email } = await freshUser();
    const other = await world.api.login(email);
    const { page, faults } = await openSecurity(email);
    await button(page, "Change password").click();
    await page.getByText("A new password ends all other sessions").waitFor();
    await checkLooks(page, "change password");
    await page.getByLabel("Current password").fill("wrong");
    await button(page, "Email me a code").click();
    await page.getByText("The password is wrong.").waitFor();
    await page.getByLabel("Current password").fill(PASSWORD);
    await button(page, "Email me a code").click();
    await page.getByLabel("Digit 1 of 6").and(page.locator(":focus")).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await page.keyboard.type(await codeSentTo(world.api.deps, email));
    await page.getByRole("textbox", { name: "New password" }).fill("another horse battery staple");
    await page.keyboard.press("Enter");
    await page.getByText("Password changed.").waitFor();
    await page.getByText("With a new password").waitFor();
    expect(
      await page.getByRole("table", { name: "Sessions" }).locator("tbody").getByRole("row").count(),
    ).toBe(1);
    expect(await isAlive(other)).toBe(false);
    await world.api.login(email, "another horse battery staple");
    await page.reload();
    await page.getByText("With a new password").waitFor();
    expect(faults).toEqual([]);
  });

  test("ends one session, and then all others; this one is marked and stays", async () => {
    const { email } = await freshUser();
    const tokens = [
      await world.api.login(email),
      await world.api.login(email),
      await world.api.login(email),
    ];
    const { page } = await openSecurity(email);
    const rows = page.getByRole("table", { name: "Sessions" }).locator("tbody").getByRole("row");
    await rows.nth(3).waitFor();
    expect(await rows.filter({ hasText: "This session" }).count()).toBe(1);
    await rows.nth(3).getByRole("button").click();
    await page.getByRole("dialog").getByText("is signed out immediately").waitFor();
    await button(page, "End the session").click();
    await page.getByText("Session ended.").waitFor();
    expect(await Promise.all(tokens.map(isAlive))).toEqual([false, true, true]);
    await button(page, "End all others").click();
    await page.getByRole("dialog").getByRole("button", { name: "End all others" }).click();
    await page.getByText("All other sessions ended.").waitFor();
    expect(await Promise.all(tokens.map(isAlive))).toEqual([false, false, false]);
    await rows.filter({ hasText: "This session" }).waitFor();
    expect(await rows.count()).toBe(1);
    await button(page, "End all others").waitFor({ state: "detached" });
  });

  test("ends sessions on pages that were not loaded, too", async () => {
    const user = await freshUser();
    const tokens: string[] = [];
    for (let i = 0; i < 24; i++) tokens.push(await world.api.login(user.email));
    const { page } = await openSecurity(user.email);
    await button(page, "Show older").waitFor();
    await button(page, "End all others").click();
    await page.getByRole("dialog").getByRole("button", { name: "End all others" }).click();
    await page.getByText("All other sessions ended.").waitFor();
    expect((await Promise.all(tokens.map(isAlive))).filter(Boolean)).toEqual([]);
  });

  test("signs out by ending its own session", async () => {
    const { page } = await openSecurity((await freshUser()).email);
    await button(page, "Sign out of this session").click();
    await page.getByText("You are signed out", { exact: true }).waitFor();
  });

  test("sends users of an SSO-only company to their provider", async () => {
    const user = await freshUser("late.test");
    const { page } = await openSecurity(user.email);
    await addSsoConnection(world.database.db, {
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
});

let names = 0;

const freshUser = (domain = "p1.test") =>
  addUser(world.database.db, {
    companyId: world.tenants.partners[0].id,
    role: "partner_admin",
    email: `person-${++names}@${domain}`,
  });

const isAlive = async (token: string) =>
  (await world.api.call("GET", "/verify-token", { token })).status === 200;

async function openSecurity(email: string) {
  const opened = await world.open("/security", { email });
  await opened.page.getByText("This session").waitFor();
  return opened;
}
