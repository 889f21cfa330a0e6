import { describe, expect, test } from "bun:test";

import { decodeJwt } from "jose";
import type { Page } from "playwright-core";

import { PASSWORD } from "../../support/api.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { signIn } from "../../support/dashboard/dashboard.ts";
import { button, go, heading, inDialog } from "../../support/dashboard/locators.ts";
import { reviewIdOf } from "../../support/factory.ts";
import { lacks } from "../../support/needs.ts";
import { Receiver, until } from "../../support/network/receiver.ts";

// Interruptions of a user's work: a deploy, the end of a session, another tab, the back button, no network.
// Typed text is kept, and every page remains usable.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("a deploy", () => {
  test("keeps a form, which is sent once the server is back", async () => {
    const { id } = await subscribe();
    const { page } = await world.open(`/webhooks/${id}?tab=settings`);
    await page.getByLabel("Label").fill("Half typed");
    const startAgain = await world.stopApi();
    await button(page, "Save 1 change").click();
    await page.getByRole("alert").first().waitFor();
    await page.getByText("Reconnecting…").waitFor();
    expect(await page.getByLabel("Label").inputValue()).toBe("Half typed");
    await startAgain();
    await button(page, "Save 1 change").click();
    await heading(page, "Half typed").waitFor();
    expect(await labelOf(id)).toBe("Half typed");
    await live(page);
  });

  test("that removes a page's chunk reloads the page, and keeps drafts of other pages", async () => {
    const { id } = await subscribe();
    const { page } = await world.open(`/webhooks/${id}?tab=settings`);
    await page.getByLabel("Label").fill("Half typed");
    await page.route("**/*.js", (route) => route.fulfill({ status: 404 }));
    await go(page, "API Keys");
    const reloaded = page.waitForEvent("domcontentloaded");
    await button(page, "Try again").click();
    await reloaded;
    await page.unroute("**/*.js");
    await page.reload();
    await heading(page, "API Keys").waitFor();
    await go(page, "Webhooks");
    await page.getByRole("link", { name: "Settings" }).click();
    await button(page, "Save 1 change").waitFor();
    expect(await page.getByLabel("Label").inputValue()).toBe("Half typed");
    await button(page, "Discard").click();
    await tab(page, "Overview");
    await tab(page, "Settings");
    expect(await page.getByLabel("Label").inputValue()).toBe("Test");
  });

  test("that removes a page's styles reloads the page, still signed in", async () => {
    const { page } = await world.open("/webhooks");
    await page.route("**/keys-*.css", (route) => route.abort());
    await go(page, "API Keys");
    await button(page, "Try again").waitFor();
    await page.unrouteAll();
    const reloaded = page.waitForEvent("domcontentloaded");
    await button(page, "Try again").click();
    await reloaded;
    await heading(page, "API Keys").waitFor();
  });
});

describe.skipIf(lacks("chromium"))("a session that ends", () => {
  test("leaves a half-written response on its page", async () => {
    const { page, id } = await reviewPage();
    await page.getByLabel("Your response").fill("Thank you for");
    await page.getByLabel("Why should it be checked?").fill("Not a cust");
    await page.getByLabel("Add a note").fill("Call her");
    await endSessions();
    await button(page, "Send response").click();
    await signInAgain(page, accountOwner());
    await page.getByLabel("Your response").waitFor();
    const typed = ["Your response", "Why should it be checked?", "Add a note"];
    const found = typed.map((label) => page.getByLabel(label).inputValue());
    expect(await Promise.all(found)).toEqual(["Thank you for", "Not a cust", "Call her"]);
    await button(page, "Send response").click();
    await button(page, "Change response").waitFor();
    expect(new URL(page.url()).pathname).toBe(`/dashboard/reviews/${id}`);
    // A sent response is no draft any more.
    await go(page, "Review sites");
    await page.goBack();
    await button(page, "Change response").click();
    await page.getByLabel("Your response").fill("Something else");
    await button(page, "Cancel").click();
    await button(page, "Change response").click();
    expect(await page.getByLabel("Your response").inputValue()).toBe("Thank you for");
  });

  test("keeps the draft of a dialog, for the next time it is opened", async () => {
    const { page } = await world.open("/keys");
    await newClient(page);
    await page.getByRole("dialog").getByLabel("Name").fill("Back office");
    await page.getByLabel("Redirect URIs").fill("https://office.example/callback");
    await endSessions();
    await inDialog(page, "Create client").click();
    await signInAgain(page, owner());
    await heading(page, "API Keys").waitFor();
    await newClient(page);
    expect(await page.getByLabel("Redirect URIs").inputValue()).toContain("office.example");
    await inDialog(page, "Create client").click();
    await page.getByText("You cannot see it again").waitFor();
    await button(page, "I have stored it").click();
    await newClient(page);
    expect(await page.getByLabel("Redirect URIs").inputValue()).toBe("");
  });

  test("keeps an edit in its dialog, and closing the dialog discards it", async () => {
    const { page } = await world.open("/keys");
    const edit = async () => {
      await button(page, "Actions for Back office").first().click();
      await page.getByRole("menuitem", { name: "Edit" }).click();
    };
    const name = page.getByRole("dialog").getByLabel("Name");
    await edit();
    await name.fill("Front office");
    await endSessions();
    await inDialog(page, "Save").click();
    await signInAgain(page, owner());
    await edit();
    expect(await name.inputValue()).toBe("Front office");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await edit();
    expect(await name.inputValue()).toBe("Back office");
    await page.keyboard.press("Escape");
    await go(page, "Team");
    await button(page, "Invite").click();
    await name.fill("Kim");
    await page.keyboard.press("Escape");
    await button(page, "Invite").click();
    expect(await name.inputValue()).toBe("Kim");
    await inDialog(page, "Cancel").click();
    await button(page, "Invite").click();
    expect(await name.inputValue()).toBe("");
  });

  test("drops drafts for another user, and passwords for everybody", async () => {
    const { page } = await world.open("/users", { email: world.tenants.superAdmin.email });
    page.on("dialog", (dialog) => void dialog.accept());
    await button(page, "New user").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Name" }).fill("Robin");
    await dialog.getByRole("textbox", { name: "Password" }).fill("a long pass phrase of mine");
    await page.evaluate("window.dispatchEvent(new Event('pagehide'))");
    const kept = await page.evaluate<string>("JSON.stringify({...sessionStorage})");
    expect(kept).toContain("Robin");
    expect(kept).not.toContain("pass phrase");
    await page.reload();
    await button(page, "New user").click();
    expect(await dialog.getByRole("textbox", { name: "Name" }).inputValue()).toBe("Robin");
    expect(await dialog.getByRole("textbox", { name: "Password" }).inputValue()).toBe("");
    await endSessions();
    await page.reload();
    await signInAgain(page, owner());
    await page.evaluate("window.dispatchEvent(new Event('pagehide'))");
    expect(await page.evaluate<string>("JSON.stringify({...sessionStorage})")).not.toContain(
      "Robin",
    );
  });
});

describe.skipIf(lacks("chromium"))("two tabs", () => {
  test("show each other's changes, and keep drafts", async () => {
    const { id } = await subscribe();
    const { page } = await world.open(`/webhooks/${id}?tab=settings`);
    const [other] = await Promise.all([
      page.context().waitForEvent("page"),
      page.evaluate("void window.open(location.href, '_blank', 'noopener')"),
    ]);
    await page.getByLabel("Endpoint URL").fill(`${receiver.url}/new`);
    await other.getByLabel("Label").fill("Renamed");
    await button(other, "Save 1 change").click();
    await heading(page, "Renamed").waitFor();
    expect(await page.getByLabel("Endpoint URL").inputValue()).toBe(`${receiver.url}/new`);
    await button(page, "Save 1 change").click();
    await other.getByText(`${receiver.url}/new`).first().waitFor();
    expect(await labelOf(id)).toBe("Renamed");
    await other.close();
  });
});

describe.skipIf(lacks("chromium"))("back and forward", () => {
  test("go through filters, a delivery and a dialog, and leave each page usable", async () => {
    const { id } = await subscribe();
    await world.emit(2);
    await until("delivered", () => receiver.received.length >= 2);
    const { page, faults } = await world.open(`/webhooks/${id}`);
    await tab(page, "Deliveries");
    await page.getByLabel("Time").selectOption("1h");
    await page.waitForURL(/within=1h/);
    const list = page.url();
    const table = page.getByRole("table", { name: "Events" });
    await table.getByRole("link", { name: "review_received" }).first().click();
    await heading(page, "review_received").waitFor();
    const delivery = page.url();
    await page.goBack();
    await table.waitFor();
    expect(page.url()).toBe(list);
    expect(await page.getByLabel("Time").inputValue()).toBe("1h");
    await page.goForward();
    await heading(page, "review_received").waitFor();
    await button(page, "Resend…").click();
    await inDialog(page, "Resend").waitFor();
    await page.goBack();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await button(page, "Resend undelivered…").click();
    await inDialog(page, "Cancel").click();
    await page.goForward();
    expect(page.url()).toBe(delivery);
    await button(page, "Resend…").waitFor();
    await page.goBack();
    await table.waitFor();
    // Changes of the filters replace the history entry, so one step back leaves the list.
    await page.goBack();
    await page.getByText("Success rate (24 h)").waitFor();
    expect(faults).toEqual([]);
  });
});

describe.skipIf(lacks("chromium"))("without a network", () => {
  test("a form shows the error and keeps its text, a list recovers automatically, and a page that failed loads again by itself", async () => {
    const { id } = await subscribe();
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries`, { isFirst: true });
    await live(page);
    await tab(page, "Settings");
    await page.getByLabel("Label").fill("Half typed");
    const network = page.context();
    await network.setOffline(true);
    await button(page, "Save 1 change").click();
    await page.getByRole("alert").first().waitFor();
    await go(page, "Team");
    await button(page, "Try again").waitFor();
    await page.goBack();
    await button(page, "Save 1 change").waitFor();
    expect(await page.getByLabel("Label").inputValue()).toBe("Half typed");
    await tab(page, "Deliveries");
    await page.getByText("Reconnecting…").waitFor();
    await world.emit(1);
    await network.setOffline(false);
    await page.getByRole("table", { name: "Events" }).getByText("review_received").waitFor();
    await live(page);
    await tab(page, "Settings");
    await button(page, "Save 1 change").click();
    await heading(page, "Half typed").waitFor();
    await go(page, "Team");
    await heading(page, "Team").waitFor();
    await network.setOffline(true);
    await go(page, "Audit log");
    await page.getByText("This page loads as soon as the server answers.").waitFor();
    await network.setOffline(false);
    await heading(page, "Audit log").waitFor();
  });
});

const receiver = browserFixture(() => Receiver.start());

const tab = (page: Page, name: string) => page.getByRole("tab", { name }).click();

const live = (page: Page) => page.getByText("Updates live", { exact: true }).waitFor();

const owner = () => world.tenants.partners[0].owner.email;

const accountOwner = () => world.tenants.partners[0].accounts[0].owner.email;

const subscribe = () => world.subscribe({ webhook_url: receiver.url, label: "Test" });

const labelOf = async (id: string) => (await world.ask("GET", `/${id}`)).body["label"];

/** Ends every session except that of the test itself. */
async function endSessions(): Promise<void> {
  const own = String(decodeJwt(world.token).jti);
  await world.database.db.sql`delete from tokens where jti <> ${own}`;
}

async function signInAgain(page: Page, email: string): Promise<void> {
  await page.getByText("You were signed out").waitFor();
  await signIn(page, email, PASSWORD);
}

async function reviewPage(): Promise<{ page: Page; id: number }> {
  await world.emit(1);
  const { db } = world.database;
  const [last] = await db.sql<{ name: string }[]>`
    select external_review_id as name from reviews order by id desc limit 1`;
  const id = await reviewIdOf(db, String(last?.name));
  const { page } = await world.open(`/reviews/${id}`, { email: accountOwner() });
  await page.getByLabel("Your response").waitFor();
  // A read that is still under way when a test ends the session would lead to the sign-in before the test's own action.
  await page.waitForLoadState("networkidle");
  return { page, id };
}

async function newClient(page: Page): Promise<void> {
  await button(page, "Create").click();
  await page.getByRole("menuitem", { name: /^OAuth client/ }).click();
}
