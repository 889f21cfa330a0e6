import { describe, expect, test } from "bun:test";

import { browserFixture } from "../../support/dashboard/browser.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { checkLooks } from "../../support/dashboard/dashboard.ts";
import { buttonsOnTab, SUBSCRIPTION_BUTTONS } from "../../support/dashboard/locators.ts";
import { lacks } from "../../support/needs.ts";
import { Receiver } from "../../support/network/receiver.ts";

// A partner's pages as an operator sees them.

const world = useWebhookDashboard({ retryDelaysMs: [600_000] });

describe.skipIf(lacks("chromium"))("an operator in a browser", () => {
  test("sees each tab of a subscription and a delivery without the buttons of their partner", async () => {
    const { id } = await world.subscribe({ label: "CRM", webhook_url: receiver.url });
    await world.emit(1);
    const partner = world.tenants.partners[0].id;
    const { page: own } = await world.open(`/webhooks/${id}`);
    const { page, faults } = await visit(`/companies/${partner}/webhooks/${id}`);
    for (const tab of ["Settings", "Overview", "Deliveries"] as const) {
      expect(await buttonsOnTab(own, tab)).toEqual([...SUBSCRIPTION_BUTTONS[tab]]);
      expect([tab, await buttonsOnTab(page, tab)]).toEqual([tab, []]);
      if (tab === "Settings") expect(await page.getByRole("textbox").count()).toBe(0);
    }
    for (const viewed of [own, page]) {
      await viewed.getByRole("link", { name: "review_received" }).click();
      await viewed.getByRole("heading", { level: 2, name: "Attempts" }).waitFor();
    }
    const resend = /^(Resend|Retry now)…$/;
    await own.getByRole("button", { name: resend }).waitFor();
    expect(await page.getByRole("button", { name: resend }).count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test("disables a subscription where it is shown, and enables it, which the partner cannot", async () => {
    const { id } = await world.subscribe({ label: "CRM", webhook_url: receiver.url });
    const { page, faults } = await visit(
      `/companies/${world.tenants.partners[0].id}/webhooks/${id}`,
    );
    await page.getByRole("button", { name: "Disable “CRM” of p1" }).click();
    const dialog = page.getByRole("dialog", { name: "Disable “CRM” of p1?" });
    await dialog.getByLabel("Reason").fill("It answers with a sign-in page.");
    await checkLooks(page, "disable");
    await dialog.getByRole("button", { name: "Disable", exact: true }).click();
    const enable = page.getByRole("button", { name: "Enable “CRM” of p1" });
    await enable.waitFor();

    const { page: own } = await world.open(`/webhooks/${id}`);
    await own.getByText("It answers with a sign-in page. ").waitFor();
    await own.getByText("Only the platform can enable it.").waitFor();
    expect(await own.getByRole("button", { name: /^Enable/ }).count()).toBe(0);

    await enable.click();
    await page.getByRole("dialog").getByRole("button", { name: "Enable", exact: true }).click();
    await page.getByText("Subscription enabled.").waitFor();
    const { body } = await world.ask("GET", `/${id}`);
    expect(body["is_active"]).toBe(true);

    await world.database.db.sql`
      update webhook_subscriptions
         set state = 'disabled', disabled_at = now(), disabled_reason = 'suspended' where id = ${id}`;
    await page.reload();
    await page.getByText("It is enabled automatically when the company is activated.").waitFor();
    expect(await enable.count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test("sees how many events wait for a batch wherever it looks, and no steps of the set-up", async () => {
    const batch = { label: "Nightly", delivery_kind: "batch", batch_interval_hours: 24 };
    const { id } = await world.subscribe({ ...batch, webhook_url: receiver.url });
    await world.emit(3);
    const list = `/companies/${world.tenants.partners[0].id}/webhooks`;
    const { page, faults } = await visit(list);
    const waits = page.getByText(/^3 events wait for the batch at .*\d/);
    await waits.waitFor();
    await page.getByText("Success rate (24 h)").waitFor();
    expect(await page.getByRole("list", { name: "Set-up" }).count()).toBe(0);
    await page.getByRole("link", { name: "Deliveries", exact: true }).click();
    await page.getByText("No deliveries yet").waitFor();
    await waits.waitFor();
    expect(await page.getByText("test event").count()).toBe(0);
    await page.getByRole("tab", { name: "Overview" }).click();
    await waits.waitFor();
    const waiting = page.getByRole("table", { name: "Events that wait for the batch" });
    await waiting.getByText("review_received").nth(2).waitFor();
    // Only the partner sends a batch before its time.
    expect(await page.getByRole("button", { name: "Send the batch now" }).count()).toBe(0);
    await world.ask("POST", `/${id}/disable`);
    await page.goto(new URL(`/dashboard${list}/${id}`, page.url()).href);
    await page.getByText("3 events wait until the subscription is enabled.").waitFor();
    await checkLooks(page, "batch-disabled");
    expect(faults).toEqual([]);
  });
});

const receiver = browserFixture(() => Receiver.start(() => 500));

/** Signs in as the operator and opens a page. */
const visit = (path: string) => world.open(path, { email: world.tenants.superAdmin.email });
