import { beforeAll, describe, expect, test } from "bun:test";

import type { Page } from "playwright-core";

import { PASSWORD } from "../../support/api.ts";
import { codeSentTo, mailsTo } from "../../support/auth-mails.ts";
import { createFakeClock } from "../../support/clock.ts";
import { checkLooks } from "../../support/dashboard/dashboard.ts";
import { button, signOut } from "../../support/dashboard/locators.ts";
import { useDashboard } from "../../support/dashboard/use-dashboard.ts";
import { appCode, type AppHolder, withApp, wrongCode } from "../../support/factors.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { addUser } from "../../support/tenants.ts";

const clock = createFakeClock();
/** The length of the lock of codes: long enough to be visible, short enough for a test to wait for it. */
const LOCK_S = 4;
const world = useDashboard({
  clock,
  config: { lockScheduleS: [LOCK_S], otpCooldownS: 0 },
  host: "localhost",
});

describe.skipIf(lacks("chromium"))("the second step of a sign-in", () => {
  test("takes a code of the app by keyboard alone, and shows a wrong one at its field", async () => {
    const holder = await appHolder();
    const { page, faults } = await world.open("/keys", { email: null });
    await page.getByLabel("Email").fill(holder.user.email);
    await page.keyboard.press("Enter");
    await passwordField(page).fill(PASSWORD);
    await page.keyboard.press("Enter");
    const field = page.getByLabel("Code from your authenticator app");
    await field.and(page.locator(":focus")).waitFor();
    await page.getByText(`Signing in as ${holder.user.email}`).waitFor();
    expect(await field.getAttribute("autocomplete")).toBe("one-time-code");
    expect(await field.getAttribute("inputmode")).toBe("numeric");
    await page.keyboard.type(wrongCode(holder, clock));
    await page.getByText("The code is wrong, has expired or was used before.").waitFor();
    await field.and(page.locator("[aria-invalid=true]:focus")).waitFor();
    await checkLooks(page, "factor code");
    await page.keyboard.type(codeOf(holder));
    await page.getByRole("heading", { name: "API Keys", level: 1 }).waitFor();
    expect(faults).toEqual([]);
  });

  test("goes back to the password after five wrong codes, and then shows the lock with its end", async () => {
    const holder = await appHolder();
    const { page } = await world.open("", { email: null });
    await toSecondStep(page, holder.user.email);
    const field = page.getByLabel("Code from your authenticator app");
    for (let i = 0; i < 5; i++) {
      const answered = page.waitForResponse("**/login/second-factor");
      await field.fill(wrongCode(holder, clock));
      await answered;
      await page.getByText("The code is wrong").waitFor();
    }
    await field.fill(appCode(holder.secret, clock));
    await page.getByText("You are not signed in yet").waitFor();
    await passwordField(page).fill(PASSWORD);
    await button(page, "Sign in").click();
    await field.fill(appCode(holder.secret, clock, 1));
    await page.getByText(/Codes are locked for 0:0\d/).waitFor();
    expect(await field.isDisabled()).toBe(true);
    await checkLooks(page, "factor locked");
    await page.getByText("You can try again now.").waitFor();
    clock.advance(LOCK_S * 1_000);
    await field.fill(codeOf(holder));
    await isIn(page);
  });

  test("takes a recovery code once", async () => {
    const holder = await appHolder();
    const [first = ""] = holder.recoveryCodes;
    const { page } = await world.open("", { email: null });
    await toSecondStep(page, holder.user.email);
    await button(page, "Use a recovery code").click();
    await page.getByLabel("Recovery code").fill(` ${first.toUpperCase().replaceAll("-", " ")}`);
    await page.keyboard.press("Enter");
    await isIn(page);
    await signOut(page);
    await toSecondStep(page, holder.user.email);
    await button(page, "Use a recovery code").click();
    await page.getByLabel("Recovery code").fill(first);
    await button(page, "Use the recovery code").click();
    await page.getByText("The code is wrong, has expired or was used before.").waitFor();
    await checkLooks(page, "factor recovery code");
    await button(page, "Use the authenticator app instead").click();
    await page.getByLabel("Code from your authenticator app").fill(codeOf(holder));
    await isIn(page);
  });

  test("follows a new password, which is set by a mailed code", async () => {
    const holder = await appHolder();
    const { email } = holder.user;
    const { page } = await world.open("", { email: null });
    await page.getByLabel("Email").fill(email);
    await button(page, "Continue").click();
    await button(page, "Forgot your password?").click();
    await button(page, "Email me a code").click();
    await page.getByLabel("Digit 1 of 6").and(page.locator(":focus")).waitFor();
    await page.keyboard.type(await codeSentTo(world.api.deps, email));
    await page.getByLabel("New password").fill("another horse battery staple");
    await button(page, "Set the password and sign in").click();
    await page.getByLabel("Code from your authenticator app").fill(codeOf(holder));
    await isIn(page);
  });
});

describe.skipIf(lacks("chromium"))("a required second factor", () => {
  test("is set up with an app after an invitation; its recovery codes are shown, then the pages", async () => {
    const email = "invited@p2.test";
    const { page, faults } = await world.open(await invitationOf(email), { email: null });
    await page.getByLabel("New password").fill(PASSWORD);
    await button(page, "Set the password and sign in").click();
    await page.getByRole("heading", { name: "Set up two-step verification" }).waitFor();
    await checkLooks(page, "factor enrolment");
    await button(page, "Authenticator app").click();
    const secret = await shownSecret(page);
    await checkLooks(page, "factor enrolment app");
    const field = page.getByLabel("Code shown in the app");
    await field.fill(wrongCode({ secret }, clock));
    await button(page, "Add the app").click();
    await page.getByText("The code is wrong, or the key is older than 15 minutes.").waitFor();
    await button(page, "Start again with a new key").click();
    await page.getByText(grouped(secret)).waitFor({ state: "detached" });
    const next = await shownSecret(page);
    await field.fill(appCode(next, clock));
    await button(page, "Add the app").click();
    const codes = page.getByRole("list", { name: "Recovery codes" }).getByRole("listitem");
    await codes.first().waitFor();
    expect(await codes.count()).toBe(10);
    await checkLooks(page, "factor enrolment codes");
    const saved = page.waitForEvent("download");
    await button(page, "Save as text").click();
    const stream = await (await saved).createReadStream();
    const text = await new Response(stream).text();
    expect(text.trim().split("\n")).toEqual(await codes.allInnerTexts());
    await button(page, "I have stored them, continue").click();
    await isIn(page);
    expect(faults).toEqual([]);
  });

  test("is set up with a passkey at the sign-in, which then signs in", async () => {
    const { email } = await freshUser("partner_admin", 1);
    const { page, faults } = await world.open("", { email: null });
    await addAuthenticator(page);
    await toSecondStep(page, email);
    await button(page, "Passkey").click();
    await checkLooks(page, "factor enrolment passkey");
    await page.getByLabel("Name").fill("Work laptop");
    await button(page, "Create the passkey").click();
    await button(page, "I have stored them, continue").click();
    await isIn(page);
    await signOut(page);
    await toSecondStep(page, email);
    await checkLooks(page, "factor passkey");
    await button(page, "Use your passkey").click();
    await isIn(page);
    await page.getByRole("link", { name: "Security" }).click();
    await page.getByText("Your company requires it.").waitFor();
    await rows(page).filter({ hasText: "Work laptop" }).getByRole("button").click();
    await confirm(page, "Remove");
    await page.getByText("Your company requires a second factor; add another one first.").waitFor();
    expect(faults).toEqual([]);
  });
});

describe.skipIf(lacks("chromium"))("the security page", () => {
  test("adds an app and a passkey, makes new recovery codes, and removes factors", async () => {
    const { email } = await freshUser();
    const { page, faults } = await world.open("/security", { email: null });
    await addAuthenticator(page);
    await toPassword(page, email);
    await page.getByText("Without it, anyone who knows your password can sign in.").waitFor();
    await checkLooks(page, "factor security none");
    await button(page, "Add authenticator app").click();
    const secret = await shownSecret(page);
    await checkLooks(page, "factor security app");
    await page.getByLabel("Code shown in the app").fill(appCode(secret, clock));
    await page.keyboard.press("Enter");
    await button(page, "I have stored them").click();
    await rows(page).filter({ hasText: "Authenticator app" }).waitFor();
    await page.getByText("10 recovery codes left").waitFor();
    expect(await button(page, "Add authenticator app").count()).toBe(0);
    await button(page, "Add passkey").click();
    await page.getByLabel("Name").fill("Blue key");
    await page.keyboard.press("Enter");
    await rows(page).filter({ hasText: "Blue key" }).waitFor();
    await checkLooks(page, "factor security two");
    await button(page, "Create new codes").click();
    await confirm(page, "Create new codes");
    const codes = page.getByRole("list", { name: "Recovery codes" }).getByRole("listitem");
    await codes.first().waitFor();
    expect(await codes.count()).toBe(10);
    await button(page, "I have stored them").click();
    for (const name of ["Authenticator app", "Blue key"]) {
      await button(page, `Remove ${name}`).click();
      await confirm(page, "Remove");
      await page.getByText(`${name} removed.`).waitFor();
    }
    expect(await rows(page).count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test("warns of three recovery codes or fewer", async () => {
    const holder = await appHolder();
    const { id } = holder.user;
    await world.database.db.sql`delete from recovery_codes where user_id = ${id} and code_hash in
      (select code_hash from recovery_codes where user_id = ${id} limit 6)`;
    const { page } = await world.open("/security", { email: null });
    await toSecondStep(page, holder.user.email);
    await page.getByLabel("Code from your authenticator app").fill(codeOf(holder));
    await page.getByText("4 recovery codes left").waitFor();
    expect(await page.getByText("before you run out").count()).toBe(0);
    await world.database.db.sql`delete from recovery_codes where user_id = ${id} and code_hash in
      (select code_hash from recovery_codes where user_id = ${id} limit 1)`;
    await page.reload();
    await page.getByText("3 recovery codes left").waitFor();
    await page.getByText("before you run out").waitFor();
    await checkLooks(page, "factor security few codes");
  });

  test("asks for the second factor after a change of the password", async () => {
    const holder = await appHolder();
    const { email } = holder.user;
    const { page } = await world.open("/security", { email: null });
    await toSecondStep(page, email);
    await page.getByLabel("Code from your authenticator app").fill(codeOf(holder));
    await button(page, "Change password").click();
    await page.getByLabel("Current password").fill(PASSWORD);
    await button(page, "Email me a code").click();
    await page.getByLabel("Digit 1 of 6").and(page.locator(":focus")).waitFor();
    await page.keyboard.type(await codeSentTo(world.api.deps, email));
    await page.getByRole("textbox", { name: "New password" }).fill("another horse battery staple");
    await button(page, "Set the password").click();
    await page.getByLabel("Code from your authenticator app").fill(codeOf(holder));
    await page.getByRole("heading", { name: "Security", level: 1 }).waitFor();
    await page.getByText("With a new password").waitFor();
  });
});

describe.skipIf(lacks("chromium"))("a request that demands a proof", () => {
  test("is repeated after the proof; without one it fails with a sentence, and the dialog below stays", async () => {
    const holder = await appHolder();
    const { page, faults } = await world.open("/security", { email: null });
    await toSecondStep(page, holder.user.email);
    await page.getByLabel("Code from your authenticator app").fill(codeOf(holder));
    await button(page, "Create new codes").click();
    clock.advance(STALE_MS);
    await confirm(page, "Create new codes");
    const asked = page.getByRole("dialog", { name: "Confirm that it is you" });
    await asked.getByLabel("Code from your authenticator app").waitFor();
    await checkLooks(page, "factor step-up");
    await page.keyboard.press("Escape");
    await asked.waitFor({ state: "detached" });
    await page.getByText("You did not confirm your identity.").waitFor();
    await confirm(page, "Create new codes");
    await asked.getByLabel("Code from your authenticator app").fill(codeOf(holder));
    await page.getByRole("list", { name: "Recovery codes" }).waitFor();
    await button(page, "I have stored them").click();
    // The proof counts for ten minutes.
    await button(page, "Remove Authenticator app").click();
    await confirm(page, "Remove");
    await page.getByText("Authenticator app removed.").waitFor();
    expect(faults).toEqual([]);
  });

  test("takes a passkey, and a recovery code instead of it", async () => {
    const { email, id } = await freshUser();
    const { page, faults } = await world.open("/security", { email: null });
    await addAuthenticator(page);
    await toPassword(page, email);
    await button(page, "Add passkey").click();
    await page.getByLabel("Name").fill("Blue key");
    await page.keyboard.press("Enter");
    const codes = page.getByRole("list", { name: "Recovery codes" }).getByRole("listitem");
    await codes.first().waitFor();
    const [, code = ""] = await codes.allInnerTexts();
    await button(page, "I have stored them").click();
    const asked = page.getByRole("dialog", { name: "Confirm that it is you" });
    clock.advance(STALE_MS);
    await button(page, "Create new codes").click();
    await confirm(page, "Create new codes");
    await button(page, "Use a recovery code").click();
    const field = asked.getByLabel("Recovery code");
    await field.fill("0000-0000-0000-0000");
    await button(page, "Use the recovery code").click();
    await asked.getByText("The code is wrong, has expired or was used before.").waitFor();
    await checkLooks(page, "factor step-up recovery code");
    await field.fill(code);
    await button(page, "Use the recovery code").click();
    await codes.first().waitFor();
    await button(page, "I have stored them").click();
    clock.advance(STALE_MS);
    await button(page, "Remove Blue key").click();
    await confirm(page, "Remove");
    await checkLooks(page, "factor step-up passkey");
    await asked.getByRole("button", { name: "Use your passkey" }).click();
    await page.getByText("Blue key removed.").waitFor();
    const used = await world.database.db.sql`select details from audit_log
      where actor_id = ${id} and action in ('RECOVERY_CODE_USED', 'SECOND_FACTOR_FAILED') order by id`;
    expect(used.map(({ details }) => details.left ?? details.method)).toEqual(["recovery_code", 9]);
    expect(faults).toEqual([]);
  });

  test("of a form with an address that receives data keeps what was typed", async () => {
    const requires = (is: boolean) =>
      world.database.db.sql`update companies set require_second_factor = ${is}
        where id = ${world.tenants.partners[1].id}`;
    await requires(false);
    const holder = await withApp({ api: world.api, clock }, await freshUser("partner_owner", 1));
    const body = { label: "One", webhook_url: `${world.root}/one`, delivery_kind: "immediate" };
    const made = await world.api.call("POST", "/partner/webhooks", { token: holder.token, body });
    await requires(true);
    const forms = [
      ["/webhooks/alerts", "Alert URL", /^Save/],
      [`/webhooks/${String(made.body["id"])}?tab=settings`, "Endpoint URL", /^Save 1/],
    ] as const;
    const { page } = await world.open("/security", { email: null });
    await toSecondStep(page, holder.user.email);
    await page.getByLabel("Code from your authenticator app").fill(codeOf(holder));
    await isIn(page);
    const asked = page.getByRole("dialog", { name: "Confirm that it is you" });
    for (const [path, label, save] of forms) {
      // The moved clock ends the waits of requests that are under way, so that the page may have faults.
      clock.advance(STALE_MS);
      await page.goto(`${world.root}/dashboard${path}`);
      const url = `${world.root}/typed${path.length}`;
      await page.getByLabel(label).fill(url);
      await page.getByRole("button", { name: save }).click();
      await asked.getByLabel("Code from your authenticator app").waitFor();
      await page.keyboard.press("Escape");
      await page.getByText("You did not confirm your identity.").waitFor();
      expect(await page.getByLabel(label).inputValue()).toBe(url);
      await page.getByRole("button", { name: save }).click();
      await asked.getByLabel("Code from your authenticator app").fill(codeOf(holder));
      await page.getByText("Saved.").waitFor();
      expect(await page.getByLabel(label).inputValue()).toBe(url);
    }
  });

  test("leads a user without a factor to the sign-in, which leads back", async () => {
    const { email } = await freshUser();
    const { page } = await world.open("/security", { email: null });
    await toPassword(page, email);
    await button(page, "Add authenticator app").waitFor();
    clock.advance(STALE_MS);
    await button(page, "Add authenticator app").click();
    await page.getByText("You signed in more than ten minutes ago.").waitFor();
    await checkLooks(page, "factor step-up without factor");
    await button(page, "Sign in again").click();
    await page.getByText("You then return to the same page.").waitFor();
    await toPassword(page, email);
    await button(page, "Add authenticator app").click();
    await shownSecret(page);
  });
});

describe.skipIf(lacks("chromium"))("the requirement of a second factor", () => {
  test("is set by an owner who has a factor; then a token is made after a proof", async () => {
    const { owner } = world.tenants.partners[0].accounts[0];
    const { page, faults } = await world.open("/access", { email: owner.email });
    const requires = page.getByRole("switch", { name: "Require two-step verification" });
    await requires.press("Space");
    await confirm(page, "Require it");
    await page.getByText("Add a second factor to your own account first.").waitFor();
    await checkLooks(page, "factor requirement");
    // Both move the clock, which would end the waits of requests that are under way.
    const holder = await withApp({ api: world.api, clock }, owner);
    const code = codeOf(holder);
    await confirm(page, "Require it");
    await page.getByText("Two-step verification required.").waitFor();
    expect(await requires.isChecked()).toBe(true);
    await page.getByRole("link", { name: "API Keys" }).click();
    await button(page, "Manage token").click();
    await button(page, "Generate token").click();
    const asked = page.getByRole("dialog", { name: "Confirm that it is you" });
    await asked.getByLabel("Code from your authenticator app").fill(code);
    await button(page, "Regenerate").waitFor();
    await page.getByRole("link", { name: "Team access" }).click();
    await requires.click();
    await confirm(page, "Stop requiring it");
    await page.getByText("Two-step verification no longer required.").waitFor();
    expect(await requires.isChecked()).toBe(false);
    expect(faults).toEqual([]);
  });

  test("is set by an operator, who also resets the factors of a user who lost them", async () => {
    const holder = await appHolder();
    const { email } = holder.user;
    const { page, faults } = await world.open("/companies?tab=accounts", {
      email: world.tenants.superAdmin.email,
    });
    await page.getByRole("link", { name: "p2-a1" }).click();
    await button(page, "Require two-step: p2-a1").click();
    await page.getByText("set one up at their next sign-in").waitFor();
    await confirm(page, "Require two-step");
    await page.getByText("Required of all users of this company.").waitFor();
    await checkLooks(page, "factor company");
    await button(page, "Stop requiring two-step: p2-a1").click();
    await confirm(page, "Stop requiring two-step");
    await page.getByText("Not required. Users may still add").waitFor();
    await page.goto(`${world.root}/dashboard/users/${holder.user.id}`);
    await page
      .getByRole("table", { name: "Second factors" })
      .getByText("Authenticator app")
      .first()
      .waitFor();
    await button(page, "Reset second factors").click();
    await page.getByText(`the recovery codes of ${email} are removed`).waitFor();
    await checkLooks(page, "factor reset");
    await confirm(page, "Reset second factors");
    await page.getByText(`Second factors of Name of ${email} removed.`).waitFor();
    expect((await world.api.call("GET", "/verify-token", { token: holder.token })).status).toBe(
      401,
    );
    await world.api.login(email);
    expect(faults).toEqual([]);
  });
});

/** A little more than the time for which a proof counts. */
const STALE_MS = 601_000;

beforeAll(async () => {
  if (!isPresent("chromium")) return;
  await world.database.db.sql`update companies set require_second_factor = true
    where id = ${world.tenants.partners[1].id}`;
});

let names = 0;

/** Adds a user of the first partner, or of the second, which requires a factor. */
const freshUser = (role: "partner_admin" | "partner_owner" = "partner_admin", nth: 0 | 1 = 0) =>
  addUser(world.database.db, {
    companyId: world.tenants.partners[nth].id,
    role,
    email: `person-${++names}@p${nth + 1}.test`,
  });

const appHolder = async () => withApp({ api: world.api, clock }, await freshUser());

/** Returns a code that was not used yet. Each call moves the clock by a step, because a code works once. */
function codeOf(holder: AppHolder): string {
  clock.advance(30_000);
  return appCode(holder.secret, clock);
}

const passwordField = (page: Page) => page.getByRole("textbox", { name: "Password" });

const rows = (page: Page) =>
  page.getByRole("table", { name: "Second factors" }).locator("tbody").getByRole("row");

const confirm = (page: Page, verb: string) =>
  page.getByRole("dialog").last().getByRole("button", { name: verb, exact: true }).click();

const isIn = (page: Page) => page.getByRole("button", { name: "Account of" }).waitFor();

async function toPassword(page: Page, email: string): Promise<void> {
  await page.getByLabel("Email").fill(email);
  await button(page, "Continue").click();
  await passwordField(page).fill(PASSWORD);
  await button(page, "Sign in").click();
}

async function toSecondStep(page: Page, email: string): Promise<void> {
  await toPassword(page, email);
  await page
    .getByRole("heading", { name: /^(Confirm that it is you|Set up two-step verification)$/ })
    .waitFor();
}

async function invitationOf(email: string): Promise<string> {
  const token = await world.api.login(world.tenants.superAdmin.email);
  const body = {
    email,
    name: "Kim",
    role: "partner_admin",
    company_id: world.tenants.partners[1].id,
  };
  await world.api.call("POST", "/admin/users", { token, body });
  const link = /http\S+/.exec((await mailsTo(world.api.deps, email)).at(-1)?.text ?? "")?.[0] ?? "";
  return link.replace(`${world.root}/dashboard`, "");
}

/** Reads the key of the app that the page shows beside its QR code. */
async function shownSecret(page: Page): Promise<string> {
  await page.getByRole("img", { name: "QR code for your authenticator app" }).waitFor();
  const text = await page.getByText(/^([A-Z2-7]{4} ){7}[A-Z2-7]{4}$/).innerText();
  return text.replaceAll(" ", "");
}

const grouped = (secret: string) => secret.match(/.{4}/g)?.join(" ") ?? "";

/** Gives the page an authenticator that verifies its user, as that of a laptop does. */
async function addAuthenticator(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("WebAuthn.enable");
  await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}
