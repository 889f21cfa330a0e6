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
    await page.getByRole("textbox", { name: "Search" }).fill("failed to publish");
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
});

const receiver = browserFixture(() => Receiver.start());

beforeAll(async () => {
  if (!isPresent("chromium")) return;
  await world.subscribe({ webhook_url: receiver.url, events: ["review_received"] });
});
