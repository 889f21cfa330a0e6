import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { isPresent, lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import { allErrors, checkLooks, openSignedIn } from "../../support/dashboard/dashboard.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { Receiver, until } from "../../support/network/receiver.ts";

// The queues of all partners, and a partner's pages as an operator sees them.

const world = useWebhookDashboard({ retryDelaysMs: [600_000] });

describe.skipIf(lacks("chromium"))("an operator in a browser", () => {
  test("finds the longest queue and its reason in two clicks, without controls that change anything", async () => {
    const { id } = await world.subscribe({ label: "CRM", webhook_url: receiver.url });
    await world.emit(3);
    const { page, faults } = await visit("/dispatcher");
    const behind = page.getByRole("region", { name: "Backlog by subscription" });
    const row = behind.getByRole("row").filter({ hasText: "CRM" });
    await row.getByText("HTTP 500").waitFor();
    const text = await row.innerText();
    expect(text).toContain("p1");
    expect(text).toMatch(/\b3\b/);
    expect(text).toMatch(/Retry/);
    await behind.getByText("Longest wait").click();
    await page.waitForURL(/order=age/);
    // The rows of the previous order are dimmed until those of the new order have loaded.
    await behind.locator('[aria-busy="true"]').waitFor({ state: "detached" });
    expect(await allErrors(page)).toEqual([]);

    await row.getByRole("link", { name: "CRM" }).click();
    await page.getByRole("heading", { level: 1, name: "CRM" }).waitFor();
    await page.getByText("Viewing p1 (read-only)").waitFor();
    await page.getByText("An event is blocking later events").waitFor();
    await page.getByText("Updates live", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: CHANGES }).count()).toBe(0);
    await until("failures are red", async () => Boolean(await page.evaluate(HAS_RED)));

    await page.getByRole("tab", { name: "Settings" }).click();
    const settings = page.getByRole("region", { name: "Settings" });
    await settings.getByText(receiver.url).waitFor();
    expect(await settings.getByRole("textbox").count()).toBe(0);
    expect(await page.getByRole("button", { name: CHANGES }).count()).toBe(0);

    await page.getByRole("tab", { name: "Overview" }).click();
    await page.getByRole("link", { name: /^Event / }).click();
    await page.getByRole("heading", { level: 2, name: "Attempts" }).waitFor();
    await page.getByText("HTTP 500").first().waitFor();
    expect(new URL(page.url()).pathname).toStartWith(
      `/dashboard/companies/${world.tenants.partners[0].id}/webhooks/${id}/deliveries/`,
    );
    expect(await page.getByRole("button", { name: CHANGES }).count()).toBe(0);
    await page.getByRole("link", { name: /^Deliveries of/ }).click();
    await page.waitForURL(/tab=deliveries/);
    expect(await page.getByRole("button", { name: CHANGES }).count()).toBe(0);

    await page.getByRole("button", { name: "Act as partner" }).click();
    const portal = page.getByRole("dialog").getByRole("link", { name: "Open portal" });
    expect(await portal.getAttribute("href")).toContain("/embed/");
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Leave" }).click();
    await page.getByRole("heading", { level: 1, name: "Companies" }).waitFor();
    expect(faults).toEqual([]);
    await page.close();
  });

  test("reads every page of a partner in any look", async () => {
    const { id } = await world.subscribe({ label: "CRM", webhook_url: receiver.url });
    await world.emit(1);
    const partner = world.tenants.partners[0].id;
    const { page, faults } = await visit(`/companies/${partner}`);
    await page.getByRole("heading", { level: 1, name: "Webhooks of p1" }).waitFor();
    await page.getByRole("link", { name: "CRM" }).waitFor();
    await checkLooks(page, "partner");
    for (const tab of ["", "?tab=deliveries", "?tab=settings"]) {
      await page.goto(`${root}/dashboard/companies/${partner}/webhooks/${id}${tab}`);
      await page.getByRole("heading", { level: 1, name: "CRM" }).waitFor();
      await checkLooks(page, `partner ${tab}`);
    }
    expect(faults).toEqual([]);
    await page.close();
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
    await page.close();
  });

  test("sees an error for a company that is not a partner, and opens partners from the list", async () => {
    const [partner] = world.tenants.partners;
    const { page } = await visit(`/companies/${partner.accounts[0].id}`);
    await page.getByText("This page does not exist").waitFor();
    await page
      .getByRole("navigation", { name: "Main" })
      .getByRole("link", { name: "Companies" })
      .click();
    await page.getByRole("link", { name: "p1", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Webhooks of p1" }).waitFor();
    await page.close();
  });
});

let browser: Awaited<ReturnType<typeof openBrowser>>;

let root: string;

let receiver: Receiver;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  root = world.api.listen();
  browser = await openBrowser();
  receiver = await Receiver.start(() => 500);
});

afterAll(async () => {
  if (!isPresent("chromium")) return;
  await browser.close();
  await receiver.stop();
});

async function visit(path: string, look = {}) {
  return openSignedIn(browser, { root, path, email: world.tenants.superAdmin.email, ...look });
}

/** A chart must have the colours of its legend, with reduced motion, too. */
const HAS_RED = `(() => {
  const canvas = document.querySelector("figure canvas");
  if (canvas === null || canvas.width === 0) return false;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 4)
    if (data[i] > 200 && data[i + 1] < 80 && data[i + 2] < 80 && data[i + 3] === 255) return true;
  return false;
})()`;

/** The labels of all buttons that change something. */
const CHANGES = /^(Test|Resend|Enable|Save|Rotate|Delete|Show the secret|New|Set up)/;
