import { afterEach, describe, expect, test } from "bun:test";

import { verify } from "@octokit/webhooks-methods";
import type { Page } from "playwright-core";
import { Webhook } from "standardwebhooks";

import { browserFixture } from "../../support/dashboard/browser.ts";
import { runChecks, useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { allErrors, checkLooks } from "../../support/dashboard/dashboard.ts";
import { button, confirm } from "../../support/dashboard/locators.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { Receiver, until } from "../../support/network/receiver.ts";

// A rotation of the signing secret: both signatures, the grace period, and its end.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("the secret of a subscription", () => {
  test("is rotated in steps: a check before, the new secret, a check after, the end of the old one", async () => {
    const { id, secret: old } = await world.subscribe({ webhook_url: receiver.url });
    let deployed = old;
    let isOpen = false;
    receiver.answer = async ({ body, headers }) => {
      if (isOpen) return 200;
      const given = [headers["x-svc-signature"], headers["x-svc-signature-previous"]];
      const valid = given.map((one) => verify(deployed, body, one ?? "sha256=0"));
      return (await Promise.all(valid)).includes(true) ? 200 : 401;
    };
    const { page, faults } = await world.open(`/webhooks/${id}?tab=settings`);
    await button(page, "Rotate the secret…").click();
    await page
      .getByLabel(/^Keep it valid/)
      .and(page.locator(":focus"))
      .waitFor();
    await button(page, "Start the check").click();
    await runChecks(world);
    await page.getByText("No faults found").waitFor();
    await checkLooks(page, "rotation, start");
    await button(page, "Rotate").click();
    await button(page, "Show").click();
    const fresh = await page.getByLabel("New secret").inputValue();
    await page.getByText("Test requests show whether").waitFor();
    await button(page, "Start the check").click();
    await runChecks(world);
    await page.getByText("Your endpoint does not have the new secret yet.").first().waitFor();
    await checkLooks(page, "rotation, not deployed");
    isOpen = true;
    await button(page, "Check again").click();
    await runChecks(world);
    await page.getByText("so no check can tell whether it has the new one.").waitFor();
    isOpen = false;
    deployed = fresh;
    await button(page, "Check again").click();
    await runChecks(world);
    await page.getByText("Your endpoint has the new secret.").waitFor();
    await button(page, "End the old secret now…").click();
    await page.getByText("The check has shown that your endpoint has the new secret.").waitFor();
    await confirm(page, "End it");
    await button(page, "Rotate the secret…").waitFor();
    expect((await world.ask("GET", `/${id}`)).body["previous_secret_expires_at"]).toBeNull();
    expect(faults).toEqual([]);
  });

  test("that rotates shows the signatures of requests and their end, and ends the old one by keyboard", async () => {
    const { id, secret } = await rotated();
    const { page, faults } = await world.open(`/webhooks/${id}?tab=settings`);
    await signatures(page).getByText("signed with the old secret").waitFor();
    await page.getByText(/^It ends by itself .+, in 23 h 59 min\.$/).waitFor();
    const { body } = await world.ask("GET", `/${id}`);
    const exact = rotation(page).locator("time").first();
    expect(await exact.getAttribute("datetime")).toBe(String(body["previous_secret_expires_at"]));
    await world.emit(1);
    await until("the first", () => receiver.received.length === 1);
    expect(receiver.received[0]?.headers["x-svc-signature-previous"]).toBeDefined();

    await button(page, "End the old secret now…").focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "End the old secret" });
    await dialog.getByText("it refuses every request from now on").waitFor();
    expect(await allErrors(page)).toEqual([]);
    // The dialog begins at the button that changes nothing.
    await button(dialog, "Cancel").and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await signatures(page).waitFor({ state: "detached" });
    await rotation(page).and(page.locator(":focus")).waitFor();
    expect((await world.ask("GET", `/${id}`)).body["previous_secret_expires_at"]).toBeNull();

    await world.emit(1);
    await until("the second", () => receiver.received.length === 2);
    const second = receiver.received[1];
    expect(second?.headers["x-svc-signature-previous"]).toBeUndefined();
    const given = second?.headers["x-svc-signature"] ?? "sha256=0";
    expect(await verify(secret, second?.body ?? "", given)).toBe(true);
    await page.evaluate(`history.pushState(null, "", "/dashboard/audit")`);
    await page.getByText("ended the previous secret of").first().waitFor();
    expect(faults).toEqual([]);
  });

  test("is not ended by a cancelled dialog, and a grace period ends automatically", async () => {
    const { id } = await rotated();
    const { page } = await world.open(`/webhooks/${id}?tab=settings`);
    await button(page, "End the old secret now…").click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await button(page, "End the old secret now…").waitFor();
    expect((await world.ask("GET", `/${id}`)).body["previous_secret_expires_at"]).not.toBeNull();
    await world.database.db.sql`
      update webhook_subscriptions set previous_secret_expires_at = now() + interval '4 seconds' where id = ${id}`;
    const { page: later } = await world.open(`/webhooks/${id}?tab=settings`);
    await button(later, "Rotate the secret…").waitFor();
  });

  test("is also shown in the form of Standard Webhooks once the headers are switched on", async () => {
    const { id, secret } = await rotated();
    const { page, faults } = await world.open(`/webhooks/${id}?tab=settings`);
    expect(await signatures(page).getByText("webhook-signature").count()).toBe(0);
    await button(page, "View secret").click();
    await page.getByLabel("New secret", { exact: true }).waitFor();
    expect(await page.getByLabel("New secret for Standard Webhooks").count()).toBe(0);
    await page.getByRole("switch", { name: "Send Standard Webhooks headers" }).click();
    const request = page.waitForRequest((one) => one.method() === "PATCH");
    await button(page, "Save 1 change").click();
    expect((await request).postDataJSON()).toEqual({ standard_webhooks: true });
    await signatures(page).getByText("signed with both secrets").waitFor();
    await button(page, "View secret").click();
    await button(page, "Show").last().click();
    const field = page.getByLabel("New secret for Standard Webhooks");
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
  receiver.answer = () => 200;
});

const rotation = (page: Page) => page.getByRole("region", { name: "Secret", exact: true });

const signatures = (page: Page) => page.getByRole("region", { name: "Signatures sent now" });

const rotated = async () => {
  const { id } = await world.subscribe({ webhook_url: receiver.url });
  const { body } = await world.ask("POST", `/${id}/rotate-secret`, { grace_period_hours: 24 });
  return { id, secret: String(body["secret"]) };
};
