import { afterEach, describe, expect, test } from "bun:test";

import { browserFixture } from "../../support/dashboard/browser.ts";
import { runChecks, useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { allErrors, checkLooks, seriousFaults } from "../../support/dashboard/dashboard.ts";
import { button, confirm, inDialog } from "../../support/dashboard/locators.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { Receiver, until } from "../../support/network/receiver.ts";

// The pages of subscriptions with a real API, dispatcher and endpoint.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("a new subscription", () => {
  test("is created by keyboard alone", async () => {
    await world.clear();
    const { page } = await world.open("/webhooks/new");
    const { keyboard } = page;
    const tabTo = async (name: string) => {
      for (let i = 0; i < 30; i++) {
        await keyboard.press("Tab");
        const label = await page.evaluate<string>(
          `(({ labels, textContent, tagName }) =>
            tagName === "BODY" ? "" : (labels?.[0]?.textContent ?? "") + textContent)(document.activeElement)`,
        );
        if (label.includes(name)) return;
      }
      throw new Error(`No Tab leads to ${name}.`);
    };
    await page.getByLabel("Endpoint URL").and(page.locator(":focus")).waitFor();
    await keyboard.type(receiver.url);
    await tabTo("Immediate");
    await keyboard.press("ArrowDown");
    await tabTo("Interval");
    await keyboard.press("Enter");
    await page.getByRole("option", { name: "Every hour" }).waitFor();
    const chosen = page.locator("[role=option][data-combobox-selected]");
    await until("the first of the list", async () => {
      await keyboard.press("ArrowUp");
      return (await chosen.allTextContents())[0] === "Every hour";
    });
    await keyboard.press("Enter");
    await tabTo("Continue");
    await keyboard.press("Enter");
    // The first field of the step has the focus, so Enter goes on.
    await page
      .getByRole("switch", { name: "Send Standard Webhooks headers" })
      .and(page.locator(":focus"))
      .waitFor();
    await keyboard.press("Enter");
    await button(page, "Send a test event").waitFor();
    await tabTo("Send a test event");
    await keyboard.press("Enter");
    await page.getByText("Delivered", { exact: true }).waitFor();
    const { body } = await world.ask("GET", "");
    expect(body["data"]).toMatchObject([
      { delivery_kind: "batch", batch_interval_hours: 1, label: "127.0.0.1" },
    ]);
  });

  test("keeps a test event that is sent as early as possible while the page loads slowly", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open("/webhooks");
    const sent = page.waitForRequest(/\/test$/);
    await page.route(`**/partner/webhooks/${id}`, async (route) => {
      await Promise.race([sent, Bun.sleep(500)]);
      await route.continue();
    });
    await page.goto(new URL(`/dashboard/webhooks/new?id=${id}`, page.url()).href);
    await button(page, "Send a test event").click();
    await page.getByText(receiver.url, { exact: true }).waitFor();
    await page.getByText("Delivered", { exact: true }).waitFor();
  });

  test("shows errors of the URL at its field: certain ones at once, others from the server", async () => {
    await world.clear();
    const { page } = await world.open("/webhooks/new");
    const url = page.getByLabel("Endpoint URL");
    await url.fill("example.com/hook");
    await page.getByText("Enter the whole address").waitFor();
    expect(await button(page, "Continue").isDisabled()).toBe(true);
    await url.fill("http://169.254.169.254/latest");
    await page.getByText("This address is not public.").waitFor();
    await button(page, "Continue").click();
    await button(page, "Create subscription").click();
    await page.getByText("must resolve to a public address", { exact: false }).first().waitFor();
    expect(await url.getAttribute("aria-invalid")).toBe("true");
    await url.and(page.locator(":focus")).waitFor();
  });

  test("offers no kind with a taken slot, and shows the subscription in it", async () => {
    await world.subscribe({ webhook_url: receiver.url, label: "First" });
    const { page } = await world.open("/webhooks/new");
    await page.getByText("Already used by “First”").waitFor();
    expect(await page.getByRole("radio", { name: "Immediate" }).isDisabled()).toBe(true);
    expect(await page.getByRole("radio", { name: "Batch" }).isChecked()).toBe(true);
  });

  test("selects events by category and by search, and gets headers", async () => {
    await world.clear();
    const { page } = await world.open("/webhooks/new");
    await page.getByLabel("Endpoint URL").fill(receiver.url);
    await button(page, "Add a header").click();
    await page.getByLabel("Name of header 1").fill("X-Api-Key");
    await page.getByLabel("Value of header 1").fill("first");
    await button(page, "Continue").click();
    await page.getByLabel("Only some events").check();
    for (const category of ["Review", "Response", "Posting"])
      await page.getByLabel(`All ${category} events`, { exact: true }).uncheck();
    await page.getByLabel("Search events").fill("collection");
    await page.getByText("4 events of 18 selected, 2 found").waitFor();
    await page.getByRole("checkbox", { name: /^review_pull_connected/ }).uncheck();
    await page.getByLabel("Minimal").check();
    await button(page, "Create subscription").click();
    await page.getByText("Store the secret").waitFor();
    const { body } = await world.ask("GET", "");
    expect(body["data"]).toMatchObject([
      {
        header_names: ["X-Api-Key"],
        payload_mode: "minimal",
        events: [
          "review_pull_disconnected",
          "response_post_connected",
          "response_post_disconnected",
        ],
      },
    ]);
  });
});

describe.skipIf(lacks("chromium"))("the report of a check", () => {
  test("names each fault with what to change, and stays when its dialog is opened again", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open(`/webhooks/${id}`);
    await button(page, "Check endpoint").click();
    await button(page, "Start the check").and(page.locator(":focus")).click();
    await page.getByText("The check starts in a moment").waitFor();
    await runChecks(world);
    const dialog = page.getByRole("dialog");
    // The receiver accepts everything.
    await dialog.getByText("2 faults found").waitFor();
    await dialog
      .getByRole("list", { name: "To change" })
      .getByText("accepts a body that does not match its signature")
      .waitFor();
    await dialog.getByRole("list", { name: "Passed" }).getByText("A valid delivery").waitFor();
    await checkLooks(page, "check report");
    await page.keyboard.press("Escape");
    await button(page, "Check endpoint").click();
    await dialog.getByText("2 faults found").waitFor();
  });
});

describe.skipIf(lacks("chromium"))("a subscription", () => {
  test("is disabled by hand in its settings, until it is enabled again", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open(`/webhooks/${id}?tab=settings`);
    await button(page, "Disable…").click();
    await confirm(page, "Disable");
    await page.getByText("Disabled: nothing is sent").waitFor();
    expect((await world.ask("GET", `/${id}`)).body).toMatchObject({ disabled_reason: "manual" });
    expect(await button(page, "Disable…").count()).toBe(0);
  });

  test("is enabled without its held events and without a test, if that is selected; then it offers a test", async () => {
    const id = await disabled();
    await world.emit(1);
    const { page } = await world.open(`/webhooks/${id}`);
    await button(page, "Enable…").click();
    await page.getByLabel("Skip the 1 held event").check();
    await page.getByLabel("Send a test event first").uncheck();
    await confirm(page, "Enable");
    await page.getByText("Disabled: nothing is sent").waitFor({ state: "detached" });
    expect((await world.ask("GET", `/${id}/health`)).body).toMatchObject({ pending: 0, held: 0 });
    expect(receiver.received).toHaveLength(0);
    await button(page, "Send a test event").click();
    await page.getByText("Your endpoint accepted the test event").waitFor();
  });

  test("that is disabled offers no test, and a resend leads to the button that enables it, if there is one", async () => {
    const id = await disabled();
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries`);
    await button(page, "Resend undelivered…").click();
    await page.getByText("is disabled and sends nothing").waitFor();
    expect(await inDialog(page, "Resend").isDisabled()).toBe(true);
    expect(await allErrors(page)).toEqual([]);
    await page.getByRole("dialog").getByRole("link", { name: "Enable it first." }).click();
    await button(page, "Enable…").waitFor();
    expect(await button(page, "Test").count()).toBe(0);
    await world.database.db.sql`
      update webhook_subscriptions set disabled_reason = 'operator', disabled_note = 'Abuse' where id = ${id}`;
    await page.goto(`${page.url()}?tab=deliveries`);
    await button(page, "Resend undelivered…").click();
    await page.getByRole("dialog").getByText("Only the platform can enable it.").waitFor();
    expect(await page.getByRole("dialog").getByRole("link").count()).toBe(0);
    // Its owner may delete only what the platform has not disabled, and the next test begins with a delete.
    await world.database.db.sql`
      update webhook_subscriptions set disabled_reason = 'manual', disabled_note = null where id = ${id}`;
  });

  test("of a batch lists the events that wait, and sends them before their time", async () => {
    await world.clear();
    const batch = { delivery_kind: "batch", batch_interval_hours: 24 };
    const { id } = await world.subscribe({ ...batch, webhook_url: receiver.url });
    await world.emit(12);
    const { page, faults } = await world.open(`/webhooks/${id}`);
    const waiting = page.getByRole("table", { name: "Events that wait for the batch" });
    await waiting.getByText("review_received").first().waitFor();
    expect(await waiting.getByText("review_received").count()).toBe(10);
    await page.getByText("The newest 10 of them are shown.").waitFor();
    await checkLooks(page, "batch-waiting");
    await button(page, "Send the batch now").click();
    await until("the POSTs", () => receiver.received.length === 12);
    await waiting.waitFor({ state: "detached" });
    expect(faults).toEqual([]);
  });

  test("saves each section of its settings on its own, and only what has changed", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open(`/webhooks/${id}?tab=settings`);
    const delivery = page.getByRole("region", { name: "Delivery" });
    expect(await button(delivery, "Save").isDisabled()).toBe(true);
    await page.getByLabel("Label").fill("Renamed");
    await page.getByLabel("Strict per review").check();
    await page.getByRole("switch", { name: "Send sequence headers" }).click();
    expect(await page.getByText("Not saved").count()).toBe(2);
    const request = page.waitForRequest((one) => one.method() === "PATCH");
    await button(delivery, "Save 2 changes").click();
    const sent = (await request).postDataJSON();
    expect(sent).toEqual({ ordering: "review", sequence_headers: true });
    await delivery.and(page.locator(":focus")).waitFor();
    expect(await page.getByLabel("Label").inputValue()).toBe("Renamed");
    await button(page, "Save 1 change").click();
    await page.getByRole("heading", { name: "Renamed", level: 1 }).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
  });

  test("gets headers of its own, whose values are entered again for another URL", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open(`/webhooks/${id}?tab=settings`);
    const headers = page.getByRole("region", { name: "Your own headers" });
    await button(headers, "Add a header").click();
    await page.getByLabel("Name of header 1").and(page.locator(":focus")).fill("Host");
    await page.getByLabel("Value of header 1").fill("first");
    await button(headers, "Save 1 change").click();
    await headers.getByText("must not have Host, which is reserved").waitFor();
    await page.getByLabel("Name of header 1").and(page.locator(":focus")).fill("X-Api-Key");
    await button(headers, "Save 1 change").click();
    await headers.getByText("value hidden").waitFor();
    expect((await world.ask("GET", `/${id}`)).body["header_names"]).toEqual(["X-Api-Key"]);

    const endpoint = page.getByRole("region", { name: "Endpoint" });
    await page.getByLabel("Endpoint URL").fill(`${receiver.url}/new`);
    await endpoint.getByText("do not move to another URL").waitFor();
    expect(await button(endpoint, "Save 1 change").isDisabled()).toBe(true);
    await page.getByLabel("Value of header 1").fill("second");
    expect(await allErrors(page)).toEqual([]);
    await button(endpoint, "Save 2 changes").click();
    await button(page, "Send a test event").and(page.locator(":focus")).click();
    await page.getByText("Delivered", { exact: true }).waitFor();
    expect(receiver.received[0]?.headers["x-api-key"]).toBe("second");

    await page.getByLabel("Endpoint URL").fill(receiver.url);
    await page.getByLabel("Send no headers of your own").check();
    const request = page.waitForRequest((one) => one.method() === "PATCH");
    await button(endpoint, "Save 2 changes").click();
    expect((await request).postDataJSON()).toEqual({ webhook_url: receiver.url, headers: null });
    await button(headers, "Add a header").waitFor();
  });

  test("keeps edited fields while others change elsewhere, and shows an error at its field", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open(`/webhooks/${id}?tab=settings`);
    await page.getByLabel("Endpoint URL").fill("https://127.0.0.1.nip.invalid@evil.test/");
    await page.getByText("Remove the user name").waitFor();
    await page.getByLabel("Endpoint URL").fill("http://[::ffff:10.0.0.1]/");
    await world.ask("PATCH", `/${id}`, { label: "Changed elsewhere" });
    await page.getByRole("heading", { name: "Changed elsewhere" }).waitFor();
    expect(await page.getByLabel("Label").inputValue()).toBe("Changed elsewhere");
    await button(page, "Save 1 change").click();
    await page.getByText("The URL must").waitFor();
    expect(await page.getByLabel("Endpoint URL").getAttribute("aria-invalid")).toBe("true");
  });

  test("is deleted only once its label is typed", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url, label: "Old one" });
    const { page } = await world.open(`/webhooks/${id}?tab=settings`);
    await button(page, "Delete the subscription…").click();
    await page.getByText("0 queued events").waitFor();
    expect(await button(page, "Delete permanently").isDisabled()).toBe(true);
    await page.getByLabel("Type Old one to confirm").fill("Old one");
    await button(page, "Delete permanently").click();
    await page.getByText("Set up your first webhook").waitFor();
    expect((await world.ask("GET", `/${id}`)).status).toBe(404);
  });
});

const receiver = browserFixture(() => Receiver.start());

afterEach(async () => {
  if (!isPresent("chromium")) return;
  receiver.answer = () => 200;
  receiver.received.length = 0;
});

/** Creates a subscription that is disabled after too many failures. */
async function disabled(): Promise<string> {
  const { id } = await world.subscribe({ webhook_url: receiver.url });
  await world.database.db.sql`
    update webhook_subscriptions
       set state = 'disabled', disabled_at = now(), disabled_reason = 'consecutive_failures' where id = ${id}`;
  return id;
}
