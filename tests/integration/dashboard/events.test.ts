import { beforeAll, describe, expect, test } from "bun:test";

import { browserFixture } from "../../support/dashboard/browser.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { allErrors, checkLooks } from "../../support/dashboard/dashboard.ts";
import { button, clipboard, heading } from "../../support/dashboard/locators.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { Receiver } from "../../support/network/receiver.ts";

// The event catalog, as the developer of a receiver uses it.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("the catalog of events", () => {
  test("is in the navigation, lists every event and is searched, in the address too", async () => {
    const { page, faults } = await world.open("/webhooks");
    const navigation = page.getByRole("navigation", { name: "Main" });
    await navigation.getByRole("link", { name: "Event catalog" }).click();
    await page.getByText("18 events and the test event", { exact: true }).waitFor();
    await checkLooks(page, "events list");
    await page.getByRole("textbox", { name: "Search" }).fill("failed to publish");
    await page.getByText("1 event found").waitFor();
    expect(page.url()).toContain("q=failed");
    await page.getByRole("textbox", { name: "Search" }).fill("no such words");
    await page.getByText("No matching events").waitFor();
    await page.getByRole("textbox", { name: "Search" }).fill("disconnect_reason");
    await page.getByText("6 events found").waitFor();
    await page.getByRole("link", { name: "response_post_failed" }).click();
    await heading(page, "response_post_failed").waitFor();
    await page.getByRole("link", { name: "Event catalog" }).last().click();
    await heading(page, "Event catalog").waitFor();
    expect(faults).toEqual([]);
  });

  test("shows the fields of each event and a sample that is copied verbatim", async () => {
    const { page, faults } = await world.open("/events/review_updated");
    await page.getByText("metadata.changed").waitFor();
    await checkLooks(page, "events one");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const rate = page.getByRole("row").filter({ hasText: "review.rate" });
    await rate.getByText("integer, 1 to 5").waitFor();
    await rate.getByText("Rating, 1 to 5 stars.").waitFor();
    await button(page, "Copy: review_updated, full body").click();
    const copied = await clipboard(page);
    const { body } = await world.ask("GET", "/events");
    const events = body["events"] as { value: string; example: unknown }[];
    expect(JSON.parse(copied)).toEqual(
      events.find(({ value }) => value === "review_updated")?.example,
    );
    await page.getByText("Minimal", { exact: true }).click();
    await page.getByLabel("review_updated, minimal body", { exact: true }).waitFor();
    expect(faults).toEqual([]);
  });

  test("sends an event as a test to a subscription that filters it out, and shows the answer", async () => {
    const { page, faults } = await world.open("/events/note_added");
    await page.getByText("its event filter excludes it").waitFor();
    await button(page, "Send a test event").click();
    await page.getByText(/^Attempt 1 → HTTP 200 in \d/).waitFor();
    await page.getByText("Delivered", { exact: true }).waitFor();
    const sent = receiver.received.at(-1);
    expect(sent?.headers["x-svc-event"]).toBe("note_added");
    expect(sent?.headers["x-svc-test"]).toBe("1");
    expect(await allErrors(page)).toEqual([]);
    receiver.answer = () => 500;
    await button(page, "Send another").click();
    await page.getByText(/^Attempt 1 → HTTP 500 in \d/).waitFor();
    receiver.answer = () => 200;
    expect(faults).toEqual([]);
  });

  test("sends nothing to a disabled subscription, and explains why", async () => {
    const { sql } = world.database.db;
    await sql`
      update webhook_subscriptions
         set state = 'disabled', disabled_at = now(), disabled_reason = 'consecutive_failures' where id = ${id}`;
    const { page } = await world.open("/events/review_received");
    await page.getByText("The subscription is disabled and sends nothing").waitFor();
    expect(await button(page, "Send a test event").count()).toBe(0);
    await sql`
      update webhook_subscriptions
         set state = 'active', disabled_at = null, disabled_reason = null where id = ${id}`;
  });

  test("is found by Ctrl-K, by keyboard alone, and an unknown event is not found", async () => {
    const { page } = await world.open("/webhooks");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "What are you looking for?" }).waitFor();
    await page.locator("input:focus").waitFor();
    await page.keyboard.type("profanity_detected");
    await page.locator("[data-combobox-selected]", { hasText: "contains profanity" }).waitFor();
    await page.keyboard.press("Enter");
    await heading(page, "profanity_detected").waitFor();
    const { page: other } = await world.open("/events/no_such_event");
    await heading(other, "Page not found").waitFor();
  });
});

const receiver = browserFixture(() => Receiver.start());

let id: string;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  ({ id } = await world.subscribe({ webhook_url: receiver.url, events: ["review_received"] }));
});
