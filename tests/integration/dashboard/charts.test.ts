import { beforeAll, describe, expect, test } from "bun:test";

import type { Locator, Page } from "playwright-core";

import { addAttempt } from "../../support/attempts.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { checkLooks } from "../../support/dashboard/dashboard.ts";
import { button } from "../../support/dashboard/locators.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { until } from "../../support/network/receiver.ts";

// Selecting a period in a chart, by pointer and by keyboard, filters the list below.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("the chart above the deliveries", () => {
  test("filters them by a dragged period, which is in the address, until it is cleared", async () => {
    const { page, faults } = await world.open(`/webhooks/${id}?tab=deliveries&within=24h`);
    await shows(page, 15);
    await button(page, "Chart").click();
    await legend(page, "Delivered 11");
    await legend(page, "Failed 4");
    await drag(page, plot(page), 0.5, 0.99);
    await shows(page, 3);
    await legend(page, "Delivered 3");
    const { searchParams } = new URL(page.url());
    const since = searchParams.get("since") ?? "";
    expect(lengthOf(page.url())).toBeGreaterThan(8 * HOUR_MS);
    expect(searchParams.get("within")).toBeNull();
    await page.reload();
    await shows(page, 3);
    expect(page.url()).toContain(encodeURIComponent(since));
    await button(page, "Clear").click();
    await shows(page, 15);
    expect(page.url()).not.toContain("since=");
    expect(faults).toEqual([]);
  });

  test("zooms into the selected period, repeatedly", async () => {
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries&within=24h`);
    await button(page, "Chart").click();
    await shows(page, 15);
    await drag(page, plot(page), 0.02, 0.5);
    await shows(page, 12);
    const first = page.url();
    await drag(page, plot(page), 0.1, 0.6);
    await until("a shorter period", () => lengthOf(page.url()) < lengthOf(first) * 0.7);
  });

  test("is used by keyboard alone", async () => {
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries&within=24h`);
    await shows(page, 15);
    await button(page, "Chart").click();
    await chart(page).getByText("Select a period").focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await chart(page).getByLabel("From").and(page.locator(":focus")).waitFor();
    for (let i = 0; i < 20; i++) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await shows(page, 3);
    expect(page.url()).toContain("since=");
    await button(page, "Clear period").focus();
    await page.keyboard.press("Enter");
    await shows(page, 15);
  });

  test("stacks by event, with separate bars for the five most frequent ones", async () => {
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries&within=24h`);
    await shows(page, 15);
    await button(page, "Chart").click();
    await chart(page).getByText("By event", { exact: true }).click();
    await legend(page, "review_received 3");
    await legend(page, "2 other events 2");
    expect(page.url()).toContain("stack=event");
    await chart(page).getByText("Show as a table").click();
    const table = page.getByRole("region", { name: "Attempts: table" });
    await table.getByRole("columnheader", { name: "note_added" }).waitFor();
    await page.reload();
    await button(page, "Chart").click();
    await legend(page, "review_received 3");
  });
});

describe.skipIf(lacks("chromium"))("the charts of the overview", () => {
  test("zoom into a period, whose deliveries are one click away", async () => {
    const { page, faults } = await world.open(`/webhooks/${id}`);
    await legend(page, "Delivered 11");
    await plot(page).hover();
    await page.locator("[data-tip]").getByText("Failed 0").waitFor();
    await drag(page, plot(page), 0.5, 0.99);
    await legend(page, "Delivered 3");
    await button(page, "Clear period").click();
    await legend(page, "Delivered 11");
    await drag(page, plot(page), 0.5, 0.99);
    await page.getByRole("link", { name: "Show deliveries" }).click();
    await shows(page, 3);
    expect(faults).toEqual([]);
  });
});

test.skipIf(lacks("chromium"))("the charts have no faults in any look", async () => {
  const { page, faults } = await world.open(`/webhooks/${id}?range=24h`);
  await legend(page, "Delivered 11");
  await plot(page).scrollIntoViewIfNeeded();
  // The colours of the legend, which reduced motion must not take from the chart.
  await until("failures are red", async () => Boolean(await page.evaluate(HAS_RED)));
  await chart(page).getByText("Select a period").click();
  await checkLooks(page, "charts overview");
  const path = `/webhooks/${id}?tab=deliveries&within=24h&stack=event`;
  await page.evaluate(`history.pushState(null, "", "/dashboard${path}")`);
  await button(page, "Chart").click();
  await legend(page, "2 other events 2");
  await checkLooks(page, "charts deliveries");
  expect(faults).toEqual([]);
});

const HOUR_MS = 3_600_000;

let id: string;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  ({ id } = await world.subscribe({ webhook_url: "http://127.0.0.1:9/hook" }));
  const kinds = ["review_received", "note_added", "review_updated", "review_removed"];
  for (let i = 0; i < 12; i++) await attempt(20, kinds[i % 4] ?? "", i % 3 !== 0);
  for (const event of ["response_submitted", "response_updated", "review_flagged"])
    await attempt(2, event, true);
});

let sequence = 0;

async function attempt(hoursAgo: number, event: string, isGood: boolean): Promise<void> {
  const at = new Date(Date.now() - hoursAgo * HOUR_MS + ++sequence);
  const failure = { outcome: "failed", status_code: 410, error_code: "http_status" };
  const fields = {
    sequence,
    event,
    started_at: at,
    recorded_at: at,
    payload_mode: "full",
  } as const;
  await addAttempt(world.database.db, id, { ...fields, ...(!isGood && failure) });
}

/** Returns the length of the period in the address of a page. */
function lengthOf(url: string): number {
  const { searchParams } = new URL(url);
  const at = (name: string) => Date.parse(searchParams.get(name) ?? "");
  return at("until") - at("since");
}

/** Waits until the list has this number of rows, of which only those in view are in the document. */
const shows = (page: Page, count: number) =>
  page.locator(`table[aria-rowcount="${count + 1}"]`).waitFor();

const chart = (page: Page) => page.getByRole("figure").filter({ hasText: "Attempts" }).first();

const legend = (page: Page, text: string) =>
  chart(page).getByRole("listitem").filter({ hasText: text }).waitFor();

/** Drags over a part of the plot; `from` and `to` are fractions of its width. */
async function drag(page: Page, plot: Locator, from: number, to: number): Promise<void> {
  await plot.waitFor();
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  if (box === null) throw new Error("There is no plot.");
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * from, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * ((from + to) / 2), y, { steps: 3 });
  await page.mouse.move(box.x + box.width * to, y, { steps: 3 });
  await page.mouse.up();
  // The legend shows the values under the pointer, so the pointer moves away.
  await page.mouse.move(0, 0);
}

/** The first plot of the chart, which shows the attempts. */
const plot = (page: Page) => chart(page).locator(".u-over").first();

/** Whether a chart has a pixel in the colour of failures. */
const HAS_RED = `(() => {
  const canvas = document.querySelector("figure canvas");
  if (canvas === null || canvas.width === 0) return false;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 4)
    if (data[i] > 200 && data[i + 1] < 80 && data[i + 2] < 80 && data[i + 3] === 255) return true;
  return false;
})()`;
