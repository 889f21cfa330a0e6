import { afterEach, describe, expect, test } from "bun:test";

import { decodeJwt } from "jose";
import type { Page } from "playwright-core";

import { isPresent, lacks } from "../../support/needs.ts";
import { allErrors, held, signIn } from "../../support/dashboard/dashboard.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

// Failures around the pages and the state that survives them: chunks that do not load and expired sessions.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("a page that failed to load", () => {
  test("can be loaded again, and the other pages stay usable", async () => {
    const { page } = await world.open("/webhooks");
    const restore = await withoutScripts(page);
    await go(page, "API Keys");
    await button(page, "Try again").waitFor();
    await go(page, "Webhooks");
    await heading(page, "Webhooks").waitFor();
    await restore();
    await go(page, "API Keys");
    await heading(page, "API Keys").waitFor();
    // Without its styles, a page is reloaded without a sign-out.
    await page.route("**/audit-*.css", (route) => route.abort());
    await go(page, "Audit log");
    await button(page, "Try again").waitFor();
    await page.unrouteAll();
    const reloaded = page.waitForEvent("domcontentloaded");
    await button(page, "Try again").click();
    await reloaded;
    await heading(page, "Audit log").waitFor();
  });
});

describe.skipIf(lacks("chromium"))("typed text", () => {
  test("is kept across tabs, pages and an expired session", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open(`/webhooks/${id}?tab=settings`);
    await page.getByLabel("Label").fill("Half typed");
    await page.getByRole("tab", { name: "Overview" }).click();
    await page.getByRole("tab", { name: "Settings" }).click();
    expect(await page.getByLabel("Label").inputValue()).toBe("Half typed");
    await world.database.db
      .sql`delete from tokens where jti <> ${String(decodeJwt(world.token).jti)}`;
    await button(page, "Save 1 change").click();
    await signIn(page, world.tenants.partners[0].owner.email);
    await button(page, "Save 1 change").waitFor();
    expect(await page.getByLabel("Label").inputValue()).toBe("Half typed");
    await button(page, "Discard").click();
    await page.getByRole("tab", { name: "Overview" }).click();
    await page.getByRole("tab", { name: "Settings" }).click();
    expect(await page.getByLabel("Label").inputValue()).toBe("Test");
  });

  test("in the event filter is applied with Enter", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open("/webhooks");
    const release = await held(page, "**/partner/webhooks/events");
    await page.goto(`${page.url()}/${id}?tab=deliveries`);
    await button(page, "More filters").click();
    const field = page.getByRole("combobox", { name: "Event", exact: true });
    await field.waitFor();
    expect(await field.isDisabled()).toBe(true);
    release();
    await field.click();
    await page.keyboard.type("profan");
    await page.keyboard.press("Enter");
    await until("the filter", () => page.url().includes("event=profanity_detected"));
  });
});

describe.skipIf(lacks("chromium"))("a disabled subscription", () => {
  test("explains at test, recover and redeliver that it must be enabled first", async () => {
    const id = await disabled();
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries`);
    await page.getByRole("button", { name: "Test", exact: true }).click();
    await page.getByText("is disabled and sends nothing").waitFor();
    expect(await allErrors(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await button(page, "Resend all …").click();
    await page.getByText("is disabled and sends nothing").waitFor();
    expect(
      await page.getByRole("dialog").getByRole("button", { name: "Resend" }).isDisabled(),
    ).toBe(true);
    expect(await allErrors(page)).toEqual([]);
  });

  test("shows the test right after the enabling, and offers one if none was sent", async () => {
    const id = await disabled();
    const { page } = await world.open(`/webhooks/${id}`);
    await button(page, "Enable …").click();
    await page.getByRole("dialog").getByRole("button", { name: "Enable" }).click();
    await page.getByText("Your endpoint accepted the test event").waitFor();
    await page.keyboard.press("Escape");
    const other = await disabled();
    await page.evaluate(`history.pushState(null, "", "/dashboard/webhooks/${other}")`);
    await button(page, "Enable …").click();
    await page.getByLabel("Send a test event first").uncheck();
    await page.getByRole("dialog").getByRole("button", { name: "Enable" }).click();
    await button(page, "Send a test event").click();
    await page.getByText("Your endpoint accepted the test event").waitFor();
  });
});

const receiver = browserFixture(() => Receiver.start());

afterEach(async () => {
  if (!isPresent("chromium")) return;
  receiver.answer = () => 200;
});

const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name });

const go = (page: Page, name: string) =>
  page.getByRole("navigation").getByRole("link", { name, exact: true }).click();

const heading = (page: Page, name: string) => page.getByRole("heading", { name, level: 1 });

/** Blocks all scripts. Returns a function that allows them again. */
async function withoutScripts(page: Page): Promise<() => Promise<void>> {
  await page.route("**/*.js", (route) => route.abort());
  return () => page.unroute("**/*.js");
}

const disabled = async (): Promise<string> => {
  const { id } = await world.subscribe({ webhook_url: receiver.url });
  await world.database.db.sql`
    update webhook_subscriptions set state = 'disabled', disabled_at = now(), disabled_reason = 'consecutive_failures'
     where id = ${id}`;
  return id;
};
