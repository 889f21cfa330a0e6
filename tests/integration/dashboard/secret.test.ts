import { afterEach, describe, expect, test } from "bun:test";

import { verify } from "@octokit/webhooks-methods";
import type { Page } from "playwright-core";
import { Webhook } from "standardwebhooks";

import { browserFixture } from "../../support/dashboard/browser.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { allErrors, checkLooks } from "../../support/dashboard/dashboard.ts";
import { button } from "../../support/dashboard/locators.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { Receiver, until } from "../../support/network/receiver.ts";

// A rotation of the signing secret: both signatures, the grace period, and its end.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("the secret of a subscription", () => {
  test("shows which secret signs which header and until when, and ends the old one by keyboard", async () => {
    const { id, secret } = await rotated();
    const { page, faults } = await world.open(`/webhooks/${id}?tab=settings`);
    await signatures(page)
      .getByText(/signed with the previous secret, until .+, in 23 h 59 min/)
      .waitFor();
    await checkLooks(page, "secret");
    const { body } = await world.ask("GET", `/${id}`);
    const exact = signatures(page).locator("time").first();
    expect(await exact.getAttribute("datetime")).toBe(String(body["previous_secret_expires_at"]));
    await world.emit(1);
    await until("the first", () => receiver.received.length === 1);
    expect(receiver.received[0]?.headers["x-svc-signature-previous"]).toBeDefined();

    await button(page, "Revoke the previous secret now …").focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Revoke the previous secret" });
    await dialog.getByText("rejects all of them").waitFor();
    expect(await allErrors(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Revoke" }).focus();
    await page.keyboard.press("Enter");
    await signatures(page).getByText("not sent").waitFor();
    await signatures(page).and(page.locator(":focus")).waitFor();
    expect(await button(page, "Revoke the previous secret now …").count()).toBe(0);
    expect((await world.ask("GET", `/${id}`)).body["previous_secret_expires_at"]).toBeNull();

    await world.emit(1);
    await until("the second", () => receiver.received.length === 2);
    const second = receiver.received[1];
    expect(second?.headers["x-svc-signature-previous"]).toBeUndefined();
    const given = second?.headers["x-svc-signature"] ?? "sha256=0";
    expect(await verify(secret, second?.body ?? "", given)).toBe(true);
    await page.evaluate(`history.pushState(null, "", "/dashboard/audit")`);
    await page.getByText("expired a subscription's previous secret").first().waitFor();
    expect(faults).toEqual([]);
  });

  test("is not ended by a cancelled dialog, and a grace period ends automatically", async () => {
    const { id } = await rotated();
    const { page } = await world.open(`/webhooks/${id}?tab=settings`);
    await button(page, "Revoke the previous secret now …").click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await button(page, "Revoke the previous secret now …").waitFor();
    expect((await world.ask("GET", `/${id}`)).body["previous_secret_expires_at"]).not.toBeNull();
    await world.database.db.sql`
      update webhook_subscriptions set previous_secret_expires_at = now() + interval '4 seconds' where id = ${id}`;
    const { page: later } = await world.open(`/webhooks/${id}?tab=settings`);
    await signatures(later).getByText("not sent").waitFor();
  });

  test("is also shown in the form of Standard Webhooks once the headers are switched on", async () => {
    const { id, secret } = await rotated();
    const { page, faults } = await world.open(`/webhooks/${id}?tab=settings`);
    expect(await signatures(page).getByText("webhook-signature").count()).toBe(0);
    await button(page, "View secret").click();
    await page.getByLabel("Secret", { exact: true }).waitFor();
    expect(await page.getByLabel("Secret for Standard Webhooks").count()).toBe(0);
    await page.getByRole("switch", { name: "Send Standard Webhooks headers" }).click();
    const request = page.waitForRequest((one) => one.method() === "PATCH");
    await button(page, "Save 1 change").click();
    expect((await request).postDataJSON()).toEqual({ standard_webhooks: true });
    await signatures(page).getByText("signed with both secrets").waitFor();
    await button(page, "View secret").click();
    await button(page, "Show").last().click();
    const field = page.getByLabel("Secret for Standard Webhooks");
    expect(await field.inputValue()).toBe(`whsec_${btoa(secret)}`);
    expect(await allErrors(page)).toEqual([]);

    await world.emit(1);
    await until("the event", () => receiver.received.length === 1);
    const { headers = {}, body = "" } = receiver.received[0] ?? {};
    expect(() => new Webhook(`whsec_${btoa(secret)}`).verify(body, { ...headers })).not.toThrow();
    expect(faults).toEqual([]);
  });
});

const receiver = browserFixture(() => Receiver.start());

afterEach(async () => {
  if (!isPresent("chromium")) return;
  receiver.received.length = 0;
});

const signatures = (page: Page) => page.getByRole("region", { name: "Signatures sent now" });

const rotated = async () => {
  const { id } = await world.subscribe({ webhook_url: receiver.url });
  const { body } = await world.ask("POST", `/${id}/rotate-secret`, { grace_period_hours: 24 });
  return { id, secret: String(body["secret"]) };
};
