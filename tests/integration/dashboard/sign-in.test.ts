import { describe, expect, test } from "bun:test";

import type { Page } from "playwright-core";

import type { Role } from "../../../src/http/principal.ts";
import { PASSWORD } from "../../support/api.ts";
import { codeSentTo, mailsTo, otherThan } from "../../support/auth-mails.ts";
import {
  seriousFaults,
  seriousFaultsInSchemes,
  signIn,
} from "../../support/dashboard/dashboard.ts";
import { button, heading, navigation, signOut } from "../../support/dashboard/locators.ts";
import { useDashboard } from "../../support/dashboard/use-dashboard.ts";
import { lacks } from "../../support/needs.ts";
import { addSsoConnection, addUser } from "../../support/tenants.ts";

/** The length of the lock: a busy machine sees its wait count down, and the test waits for its end. */
const LOCK_S = 6;

const world = useDashboard({ config: { lockScheduleS: [LOCK_S], otpCooldownS: 0 } });

describe.skipIf(lacks("chromium"))("the sign-in", () => {
  test("each role starts on its own page, with its own navigation and no other pages", async () => {
    const { superAdmin, partners } = world.tenants;
    const [{ owner, admin, accounts }] = partners;
    const [account] = accounts;
    const own = ["API Keys", "Security", "Documentation"];
    const partner = [
      "Webhooks",
      "Event catalog",
      "Accounts",
      "Team",
      "Team access",
      "Embedding",
      "Audit log",
      ...own,
    ];
    const reviews = ["Reviews", "Review sites", ...own];
    const accountOwner = ["Reviews", "Review sites", "Team access", ...own];
    const operator = [
      "Dispatcher",
      "Inbox",
      "Companies",
      "Stores",
      "Users",
      "Plans",
      "Single sign-on",
      "Services",
      "Providers",
      "Audit log",
      "Audit webhook",
      "Erasures",
      ...own,
    ];
    for (const [user, start, areas, foreign] of [
      [superAdmin, "/dispatcher", operator, "/webhooks"],
      [owner, "/webhooks", partner, "/companies"],
      [admin, "/webhooks", partner, "/reviews"],
      [account.owner, "/reviews", accountOwner, "/webhooks"],
      [account.user, "/reviews", reviews, "/audit"],
      [account.locationUser, "/reviews", reviews, "/users"],
    ] as const) {
      const { page } = await world.open("", { email: null });
      await signIn(page, user.email);
      await page.waitForURL(`${world.root}/dashboard${start}`);
      const links = navigation(page).getByRole("link");
      expect(await links.allInnerTexts()).toEqual(areas);
      await page.evaluate(`history.pushState(null, "", "/dashboard${foreign}")`);
      await page.getByRole("heading", { name: "Page not found" }).waitFor();
      expect(await page.getByText("your role does not allow it").count()).toBe(1);
      await page.close();
    }
  });

  test("names nobody before the first session of a browser, and then the brand of the last one", async () => {
    const { page } = await world.open("", { email: null });
    await page.getByLabel("Email").waitFor();
    expect(await page.title()).toBe("Sign in");
    expect(await page.locator("body").innerText()).not.toMatch(/review ?relay/i);
    await signIn(page, (await freshUser()).email);
    await signOut(page);
    await page.getByText("Brand p1", { exact: true }).waitFor();
    expect(await page.title()).toBe("Sign in · Brand p1");
  });

  test("the keyboard alone is enough, and the requested page opens", async () => {
    const { page, faults } = await world.open("/security?from=mail", { email: null });
    const { email } = await freshUser();
    await page.getByLabel("Email").and(page.locator(":focus")).waitFor();
    await page.keyboard.type(email);
    await page.keyboard.press("Enter");
    await passwordField(page).and(page.locator(":focus")).waitFor();
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press("Enter");
    await heading(page, "Security").waitFor();
    expect(page.url()).toBe(`${world.root}/dashboard/security?from=mail`);
    expect(faults).toEqual([]);
  });

  test("a wrong password is reported without disclosing the account, and the field is ready for another", async () => {
    const words: string[] = [];
    const { page } = await world.open("", { email: null });
    for (const email of [(await freshUser()).email, "nobody@p1.test"]) {
      await toPassword(page, email);
      await tryPassword(page, "wrong");
      words.push(await page.getByRole("alert").innerText());
      await passwordField(page).and(page.locator(":focus")).waitFor();
      expect(await passwordField(page).inputValue()).toBe("");
      await button(page, "Change").click();
    }
    await page.close();
    expect(words[0]).toContain("Wrong email or password");
    expect(words[1]).toBe(String(words[0]));
  });

  test("five wrong passwords lock the account, the wait counts down, and the form is enabled automatically", async () => {
    const { page } = await world.open("", { email: null });
    const { email } = await freshUser();
    await toPassword(page, email);
    for (let i = 0; i < 5; i++) {
      await tryPassword(page, "wrong");
      await page.getByText("Wrong email or password").waitFor();
    }
    await tryPassword(page, PASSWORD);
    await page.getByText("Sign-in is locked").waitFor();
    expect(await passwordField(page).isDisabled()).toBe(true);
    expect(await button(page, "Sign in").isDisabled()).toBe(true);
    await page.getByText(/0:0[1-4]/).waitFor();
    await page.getByText("You can try again now.").waitFor();
    await passwordField(page).and(page.locator(":focus")).waitFor();
    await tryPassword(page, PASSWORD);
    await navigation(page).waitFor();
  });

  test("too many requests are reported with the wait, and the form is enabled after it", async () => {
    const { page } = await world.open("", { email: null });
    await page.route("**/auth/discover", (route) =>
      route.fulfill({
        status: 429,
        headers: { "Retry-After": "2", "Content-Type": "application/json" },
        body: '{"message":"Too many requests.","code":"rate_limited","request_id":"r"}',
      }),
    );
    await page.getByLabel("Email").fill("a@p1.test");
    await button(page, "Continue").click();
    await page.getByText("Too many requests").waitFor();
    expect(await button(page, "Continue").isDisabled()).toBe(true);
    await page.getByText("You can try again now.").waitFor();
    await page.unroute("**/auth/discover");
    await button(page, "Continue").click();
    await passwordField(page).waitFor();
  });

  test("an unreachable server is reported, and nothing typed is lost; a session ends here nevertheless", async () => {
    const { page } = await world.open("", { email: null });
    const { email } = await freshUser();
    await toPassword(page, email);
    await page.route("**/api/v1/login", (route) => route.abort());
    await tryPassword(page, PASSWORD);
    await page.getByText("The server cannot be reached.").waitFor();
    await page.unroute("**/api/v1/login");
    await tryPassword(page, PASSWORD);
    await navigation(page).waitFor();
    await page.route("**/api/v1/logout", (route) => route.abort());
    await signOut(page);
    await page.getByText("You are signed out here").waitFor();
  });

  test("the policy of the domain decides what is offered; an invalid address is reported, and can be changed", async () => {
    const companyId = world.tenants.partners[1].accounts[0].id;
    await addSsoConnection(world.database.db, { companyId, domains: ["both.test"] });
    await addSsoConnection(world.database.db, {
      companyId: world.tenants.partners[1].accounts[1].id,
      domains: ["only.test"],
      passwordLogin: false,
    });
    const { page } = await world.open("", { email: null });
    await page.getByLabel("Email").fill("no address");
    await button(page, "Continue").click();
    await page.getByText("Enter an email address such as").waitFor();
    const sso = button(page, "Continue with single sign-on");
    for (const [email, password, single] of [
      ["a@none.test", 1, 0],
      ["a@both.test", 1, 1],
      ["a@only.test", 0, 1],
    ] as const) {
      await page.getByLabel("Email").fill(email);
      await button(page, "Continue").click();
      await button(page, "Change").waitFor();
      expect([email, await passwordField(page).count(), await sso.count()]).toEqual([
        email,
        password,
        single,
      ]);
      expect(await seriousFaults(page)).toEqual([]);
      await button(page, "Change").click();
    }
  });
});

describe.skipIf(lacks("chromium"))("a session", () => {
  test("stores its token nowhere, unless it is remembered", async () => {
    const lines: string[] = [];
    const urls: string[] = [];
    const { page, faults } = await world.open("", { email: null });
    page.on("console", (message) => lines.push(message.text()));
    page.on("request", (request) => urls.push(request.url()));
    const answered = page.waitForResponse("**/api/v1/login");
    await toPassword(page, (await freshUser()).email);
    await page.getByLabel("Keep me signed in").uncheck();
    await tryPassword(page, PASSWORD);
    await page.getByRole("button", { name: "Account of" }).waitFor();
    const { token } = (await (await answered).json()) as { token: string };
    for (const name of ["API Keys", "Security"]) {
      await page.getByRole("link", { name }).click();
      await heading(page, name).waitFor();
      expect(await traces(page)).not.toContain(token);
    }
    expect(lines.join("\n")).not.toContain(token);
    expect(urls.join("\n")).not.toContain(token);
    expect(faults).toEqual([]);
    await page.reload();
    await page.getByLabel("Email").waitFor();
  });

  test("is revoked at sign-out and leaves nothing behind; the back button does not show it", async () => {
    const user = await freshUser();
    const { page } = await world.open("", { email: null });
    const answered = page.waitForResponse("**/api/v1/login");
    await toPassword(page, user.email);
    await tryPassword(page, PASSWORD);
    const { token } = (await (await answered).json()) as { token: string };
    await page.getByRole("link", { name: "Security" }).click();
    await page.getByText("This session").waitFor();
    // A remembered session is in the storage of its tab.
    for (const text of [token, user.email]) expect(await traces(page)).toContain(text);
    await signOut(page);
    await page.getByText("You are signed out", { exact: true }).waitFor();
    expect(page.url()).toBe(`${world.root}/dashboard`);
    expect((await world.api.call("GET", "/verify-token", { token })).status).toBe(401);
    expect(await traces(page)).not.toContain(token);
    expect(await traces(page)).not.toContain(user.email);
    await page.goBack();
    await page.getByLabel("Email").waitFor();
    expect(await traces(page)).not.toContain(user.email);
    await page.reload();
    await page.getByLabel("Email").waitFor();
  });

  test("shows who its user is now after a reload; once ended elsewhere it shows the sign-in, and continues on the same page", async () => {
    const user = await freshUser();
    const { page } = await world.open("", { email: null });
    await signIn(page, user.email);
    await world.database.db.sql`update users set name = 'Renamed meanwhile' where id = ${user.id}`;
    await page.reload();
    await page.getByRole("button", { name: "Account of Renamed meanwhile" }).waitFor();
    await page.getByRole("link", { name: "Security" }).click();
    await page.getByText("This session").waitFor();
    await world.database.db.sql`delete from tokens where user_id = ${user.id}`;
    await page.getByRole("link", { name: "API Keys" }).click();
    await page.getByText("You were signed out").waitFor();
    await signIn(page, user.email);
    await heading(page, "API Keys").waitFor();
  });
});

describe.skipIf(lacks("chromium"))("a forgotten password", () => {
  test("is reset with a mailed code, the user is signed in, and the mail about it leads to another reset", async () => {
    const { email } = await freshUser();
    const former = await world.api.login(email);
    const { page, faults } = await world.open("", { email: null });
    await toPassword(page, email);
    await button(page, "Forgot your password?").click();
    await button(page, "Email me a code").click();
    const first = page.getByLabel("Digit 1 of 6");
    await first.and(page.locator(":focus")).waitFor();
    expect(await first.getAttribute("autocomplete")).toBe("one-time-code");
    const code = await codeSentTo(world.api.deps, email);
    await page.keyboard.type(otherThan(code));
    await page.getByText("The code is wrong, expired or already used.").waitFor();
    await first.and(page.locator(":focus")).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await paste(page, code);
    const field = page.getByLabel("New password");
    await field.fill("password");
    await button(page, "Set the password and sign in").click();
    await page.getByText("too common").waitFor();
    await field.fill("another horse battery staple");
    await page.getByText("Strong").waitFor();
    await page.getByText("too common").waitFor({ state: "hidden" });
    expect(await seriousFaults(page)).toEqual([]);
    await button(page, "Set the password and sign in").click();
    await navigation(page).waitFor();
    expect((await world.api.call("GET", "/verify-token", { token: former })).status).toBe(401);
    await world.api.login(email, "another horse battery staple");
    const mails = await mailsTo(world.api.deps, email);
    const mail = mails.find(({ kind }) => kind === "password_changed");
    const { pathname, hash } = new URL(/http\S+/.exec(mail?.text ?? "")?.[0] ?? "");
    await page.goto(`${world.root}${pathname}${hash}`);
    await page.getByRole("heading", { name: "Choose a new password" }).waitFor();
    await page.getByText(email).first().waitFor();
    expect(faults).toEqual([]);
  });

  test("is reset by the link of the mail, which works once and leaves no code in the address", async () => {
    const { email } = await freshUser();
    const body = { email, type: "forgot_password" };
    expect((await world.api.call("POST", "/email-otp/resend", { body })).status).toBe(200);
    const [mail] = await mailsTo(world.api.deps, email);
    const { pathname, hash } = new URL(/http\S+/.exec(mail?.text ?? "")?.[0] ?? "");
    const path = `${pathname.replace("/dashboard", "")}${hash}`;
    const { page, faults } = await world.open(path, { email: null });
    const field = page.getByLabel("New password");
    await field.and(page.locator(":focus")).waitFor();
    expect(page.url()).toBe(`${world.root}/dashboard`);
    await page.getByText(`You set the password of ${email}.`).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await field.fill("password");
    await button(page, "Set the password and sign in").click();
    await page.getByText("too common").waitFor();
    await field.fill("another horse battery staple");
    await button(page, "Set the password and sign in").click();
    await navigation(page).waitFor();
    await page.goto(`${world.root}/dashboard${path}`);
    await field.fill("a third horse battery staple");
    await button(page, "Set the password and sign in").click();
    await page.getByText("This link cannot be used any more").waitFor();
    await button(page, "Email me a code").waitFor();
    expect(faults).toEqual([]);
  });

  test("looks the same for an unknown address, which gets no mail", async () => {
    const words: string[] = [];
    for (const email of ["ghost-1@p1.test", (await freshUser()).email]) {
      const { page } = await world.open("", { email: null });
      await toPassword(page, email);
      await button(page, "Forgot your password?").click();
      await button(page, "Email me a code").click();
      await page.getByText("we have sent a 6-digit code").waitFor();
      words.push((await page.getByRole("main").innerText()).replaceAll(email, "it"));
      await page.close();
    }
    expect(words[0]?.replace(/\d+\ss/, "")).toBe(String(words[1]?.replace(/\d+\ss/, "")));
    expect(await mailsTo(world.api.deps, "ghost-1@p1.test")).toEqual([]);
  });

  test("requests another code after a minute at the earliest", async () => {
    const { email } = await freshUser();
    const context = await world.browser.newContext();
    const page = await context.newPage();
    await page.clock.install();
    await page.goto(`${world.root}/dashboard`);
    await toPassword(page, email);
    await button(page, "Forgot your password?").click();
    await button(page, "Email me a code").click();
    await page.getByText(/You can request another code in\s\d+\ss/).waitFor();
    expect(await button(page, "Send another code").count()).toBe(0);
    await page.clock.runFor(61_000);
    await button(page, "Send another code").click();
    await page.getByText(/You can request another code in\s\d+\ss/).waitFor();
    expect((await mailsTo(world.api.deps, email)).length).toBe(2);
    await context.close();
  });
});

/** Pastes all six digits into the first field, as from a mail. */
async function paste(page: Page, text: string): Promise<void> {
  await page.getByLabel("Digit 1 of 6").focus();
  await page.evaluate(`{
    const clipboardData = new DataTransfer();
    clipboardData.setData("text", "${text}");
    const pasted = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
    document.activeElement.dispatchEvent(pasted);
  }`);
}

describe.skipIf(lacks("chromium"))("everybody can use the sign-in", () => {
  test("in dark and light, and on a phone without scrolling sideways", async () => {
    const { page, faults } = await world.open("", { email: null, width: 360 });
    const isWide = () =>
      page.evaluate<boolean>("document.documentElement.scrollWidth > innerWidth");
    const check = async () => {
      await page.setViewportSize({ width: 360, height: 900 });
      expect(await isWide()).toBe(false);
      await page.setViewportSize({ width: 1280, height: 900 });
      expect(await seriousFaultsInSchemes(page)).toEqual([]);
    };
    await page.getByLabel("Email").waitFor();
    await check();
    await toPassword(page, `${"long".repeat(12)}@${"name".repeat(12)}.test`);
    await tryPassword(page, "wrong");
    await page.getByRole("alert").waitFor();
    await check();
    await button(page, "Forgot your password?").click();
    await button(page, "Email me a code").click();
    await page.getByLabel("Digit 1 of 6").waitFor();
    await check();
    expect(faults).toEqual([]);
  });

  test("on a phone the navigation is behind its button, for the keyboard, too", async () => {
    const { page, faults } = await world.open("/keys", { email: null });
    await signIn(page, (await freshUser()).email);
    await page.getByRole("heading", { name: "API Keys" }).and(page.locator(":focus")).waitFor();
    await page.setViewportSize({ width: 360, height: 800 });
    const security = page.getByRole("link", { name: "Security" });
    await security.waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Navigation" }).focus();
    // The search and the user menu follow.
    for (let nth = 1; nth <= 3; nth += 1) await page.keyboard.press("Tab");
    await page
      .getByRole("link", { name: "Which one do I need?" })
      .and(page.locator(":focus"))
      .waitFor();
    await page.getByRole("button", { name: "Navigation" }).press("Enter");
    await security.press("Enter");
    await page
      .getByRole("heading", { name: "Security", level: 1 })
      .and(page.locator(":focus"))
      .waitFor();
    await security.waitFor({ state: "hidden" });
    expect(await seriousFaults(page)).toEqual([]);
    expect(faults).toEqual([]);
  });
});

let names = 0;

const freshUser = (role: Role = "partner_admin") =>
  addUser(world.database.db, {
    companyId: world.tenants.partners[0].id,
    role,
    email: `person-${++names}@p1.test`,
  });

const passwordField = (page: Page) => page.getByRole("textbox", { name: "Password" });

async function toPassword(page: Page, email: string): Promise<void> {
  await page.getByLabel("Email").fill(email);
  await button(page, "Continue").click();
  await passwordField(page).waitFor();
}

async function tryPassword(page: Page, password: string): Promise<void> {
  await passwordField(page).fill(password);
  await button(page, "Sign in").click();
}

/** Returns everything that a script of the page could read, and the visible text. */
const traces = (page: Page) =>
  page.evaluate<string>(
    "JSON.stringify([location.href, document.cookie, {...localStorage}, {...sessionStorage}, document.documentElement.outerHTML])",
  );
