import { describe, expect, test } from "bun:test";

import type { Page } from "playwright-core";

import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { fits, seriousFaults } from "../../support/dashboard/dashboard.ts";
import { lacks } from "../../support/needs.ts";
import { Receiver } from "../../support/network/receiver.ts";

// The dispatcher page, with a real dispatcher that is started, blocked and stopped.

const world = useWebhookDashboard({ retryDelaysMs: [600_000], isDispatching: false });

describe.skipIf(lacks("chromium"))("the dispatcher in a browser", () => {
  test("is shown live: missing, running, with a blocked head, with a disabled subscription, and recovered", async () => {
    const receiver = await Receiver.start(() => 500);
    const id = await subscribe(receiver.url, "CRM <b>bold</b>");
    const { page, faults } = await openOverview();
    await page.getByText("No dispatcher is running: nothing is delivered").waitFor();
    await page.getByText("Updates live", { exact: true }).waitFor();

    const stop = world.startDispatcher();
    try {
      await page.getByText("No problems").waitFor();
      await panel(page, "Dispatchers").getByText("64 shards").waitFor();
      await world.emit(3);
      const blocked = panel(page, "Blocking events").getByRole("row").filter({ hasText: "p1" });
      await blocked.getByText("2 of 4").waitFor();
      expect(await blocked.innerText()).toContain("review_received");
      await blocked.getByTitle(id).waitFor();
      await page.getByText("1 subscription waits for the retry of a failed event.").waitFor();
      expect(await seriousFaults(page)).toEqual([]);
      await blocked.getByRole("button", { name: "Disable the subscription of p1" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Reason").fill("The endpoint answers with a sign-in page.");
      await dialog.getByRole("button", { name: "Disable", exact: true }).click();
      await page.getByText("Subscription disabled.").waitFor();
      const { body } = await world.ask("GET", `/${id}`);
      expect(body["disabled_note"]).toBe("The endpoint answers with a sign-in page.");
      const operated = `/admin/partners/${world.tenants.partners[0].id}/webhooks/${id}`;
      const operator = await world.api.login(world.tenants.superAdmin.email);
      await world.api.call("DELETE", `${operated}?reason=Done`, { token: operator });
      await page.getByText("No problems").waitFor();

      // A 410 is a permanent failure at once; the twentieth in a row disables the subscription.
      receiver.answer = () => 410;
      const gone = await subscribe(receiver.url, "Gone <b>bold</b>");
      await world.emit(20);
      const disabled = panel(page, "Disabled subscriptions").getByRole("row");
      await disabled.getByText("Gone <b>bold</b>").waitFor();
      expect(await disabled.last().innerText()).toContain("Too many consecutive failures (20)");
      await disabled.getByTitle(gone).waitFor();
      expect(await page.locator("#content b").count()).toBe(0);

      await page.getByText("Show as text").click();
      await page.getByText(/^Shard 63: dispatcher A, nothing queued$/).waitFor();
      await page.emulateMedia({ colorScheme: "dark" });
      await page.setViewportSize({ width: 360, height: 900 });
      expect(await fits(page)).toBe(true);
      expect(await seriousFaults(page)).toEqual([]);
    } finally {
      await stop();
      await receiver.stop();
    }
    await page.getByText("No dispatcher is running: nothing is delivered").waitFor();
    expect(faults).toEqual([]);
  });

  test("marks its state as old while the server is down, and recovers automatically", async () => {
    const { page } = await openOverview();
    await page.getByText("Updates live", { exact: true }).waitFor();
    const startAgain = await world.stopApi();
    await page.getByText(/^Not live: data is \d+ s old\./).waitFor();
    // The last known state stays visible.
    await panel(page, "Shards").waitFor();
    await startAgain();
    await page.getByText("Updates live", { exact: true }).waitFor({ timeout: 60_000 });
  });
});

/** Creates a subscription, and leaves the others of the partner. */
async function subscribe(url: string, label: string): Promise<string> {
  const body = { label, webhook_url: url, delivery_kind: "immediate" };
  const made = await world.ask("POST", "", body);
  if (made.status !== 201) throw new Error(made.text);
  return String(made.body["id"]);
}

const openOverview = () => world.open("/dispatcher", { email: world.tenants.superAdmin.email });

const panel = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
