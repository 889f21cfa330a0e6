import { afterEach, describe, expect, test } from "bun:test";

import type { Page } from "playwright-core";

import { addAttempt } from "../../support/attempts.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { checkLooks } from "../../support/dashboard/dashboard.ts";
import { button, confirm, inDialog } from "../../support/dashboard/locators.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { Receiver, until } from "../../support/network/receiver.ts";

// The list of deliveries and the page of one delivery.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("the filters of deliveries", () => {
  test("are visible from 768 pixels on, and below that a button for them is", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries`);
    const state = page.getByRole("combobox", { name: "State" });
    const more = button(page, "Filters");
    for (const [width, isWide] of [
      [1920, true],
      [768, true],
      [767, false],
      [320, false],
    ] as const) {
      await page.setViewportSize({ width, height: 900 });
      await (isWide ? state : more).waitFor();
      await (isWide ? more : state).waitFor({ state: "hidden" });
      if (!isWide) await more.click();
      await state.waitFor();
      expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBe(width);
      if (!isWide) await more.click();
    }
  });
});

describe.skipIf(lacks("chromium"))("the list of deliveries", () => {
  test("shows at least 10 events at 1280 × 800 and 6 at 390 × 844", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    await world.emit(15);
    await world.settled(id, 15);
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries`);
    for (const [width, height, least] of [
      [1280, 800, 10],
      [390, 844, 6],
    ] as const) {
      await page.setViewportSize({ width, height });
      await page.evaluate("scrollTo(0, 0)");
      await shows(page, 15);
      const ends = await page.evaluate<number[]>(
        `[...document.querySelectorAll("tr")].map((row) => row.getBoundingClientRect().bottom)`,
      );
      expect(ends.slice(1).filter((end) => end <= height).length).toBeGreaterThanOrEqual(least);
      // The head of the table stays in view.
      await page.mouse.move(width / 2, height / 2);
      await page.mouse.wheel(0, 400);
      await until("scrolled", async () => (await page.evaluate<number>("scrollY")) > 0);
      if (width > 1000) expect(await rows(page).first().isVisible()).toBe(true);
    }
  });

  test("shows new events automatically at its top, and never moves rows further down", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    await world.emit(40);
    await world.settled(id, 40);
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries`);
    await page.getByText("Updates live", { exact: true }).waitFor();
    await has(page, 40);
    await world.emit(1);
    await has(page, 41);
    await page.mouse.move(600, 600);
    await page.mouse.wheel(0, 900);
    await until("scrolled", async () => (await page.evaluate<number>("scrollY")) > 800);
    const read = page.getByText((await rows(page).nth(20).locator("code").textContent()) ?? "-");
    const before = await read.boundingBox();
    await world.emit(3);
    await button(page, "Show new deliveries").waitFor();
    expect(await read.boundingBox()).toEqual(before);
    await button(page, "Show new deliveries").click();
    await has(page, 44);
    await button(page, "Show new deliveries").waitFor({ state: "detached" });
  });

  test("shows what happened between its first read and the start of the stream", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open("/webhooks");
    const missed = Promise.withResolvers<void>();
    await page.route("**/stream", async (route) => {
      await missed.promise;
      await route.continue();
    });
    await page.getByRole("link", { name: "Deliveries" }).click();
    await page.getByText("No deliveries yet").waitFor();
    await world.emit(1);
    await world.settled(id, 1);
    missed.resolve();
    await shows(page, 1);
  });

  test("reports an interrupted stream, offers to reload, and catches up automatically", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    await world.emit(1);
    await world.settled(id, 1);
    const { page } = await world.open("/webhooks");
    await page.route("**/stream", (route) => route.abort());
    await page.getByRole("link", { name: "Deliveries" }).click();
    await shows(page, 1);
    await page.getByText("Reconnecting…").waitFor();
    await world.emit(1);
    await world.settled(id, 2);
    await button(page, "Show new deliveries").click();
    await shows(page, 2);
    await world.emit(1);
    await world.settled(id, 3);
    await page.unroute("**/stream");
    await page.getByText("Updates live", { exact: true }).waitFor();
    await shows(page, 3);
  });

  test("of 300 events is at the same place after the back button", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    await addDeliveries(id, 300);
    const { page, faults } = await world.open(`/webhooks/${id}?tab=deliveries`);
    await until("all of them", async () => {
      await page.evaluate("scrollTo(0, document.body.scrollHeight)");
      return (await page.locator('table[aria-rowcount="301"]').count()) === 1;
    });
    await page.evaluate("scrollTo(0, 6000)");
    const row = page.getByRole("link", { name: "review_received" }).nth(20);
    await row.waitFor();
    const place = await page.evaluate<number>("scrollY");
    await row.click();
    await page.waitForURL("**/deliveries/**");
    await page.goBack();
    await until("the same place", async () => (await page.evaluate("scrollY")) === place);
    expect(faults).toEqual([]);
  });
});

describe.skipIf(lacks("chromium"))("events that are resent", () => {
  test("are the undelivered ones, delivered ones by a checkbox, tests never; their page shows the outcome", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    receiver.answer = () => 410;
    await world.emit(3);
    await world.ask("POST", `/${id}/test`);
    await world.settled(id, 4);
    const events = receiver.received.filter(({ headers }) => headers["x-svc-test"] === undefined);
    const [first, ...lost] = events.map(({ headers }) => headers["x-svc-delivery"] ?? "");
    receiver.answer = () => 200;
    await world.ask("POST", `/${id}/deliveries/${first}/redeliver`);
    await world.settled(id, 5);
    receiver.received.length = 0;
    receiver.answer = (_, count) => (count === 0 ? 200 : 410);
    const { page, faults } = await world.open(`/webhooks/${id}?tab=deliveries`);
    await shows(page, 4);
    await button(page, "With failures").click();
    await button(page, "Resend undelivered…").click();
    await inDialog(page, "Resend 2 events").waitFor();
    await page.getByLabel("Resend delivered events as well").check();
    await inDialog(page, "Resend 3 events").waitFor();
    await page.getByLabel("Resend delivered events as well").uncheck();
    await confirm(page, "Resend 2 events");
    await page.getByText("1 of 2 events delivered, 1 not.").waitFor();
    expect(receiver.eventIds).toEqual(lost);
    await checkLooks(page, "resent");
    // The address leads to the same page, and back to the list.
    await page.reload();
    await page.getByRole("link", { name: "Failed 1" }).click();
    await shows(page, 1);
    await button(page, "Show all deliveries").click();
    await shows(page, 4);
    expect(faults).toEqual([]);
  });
});

describe.skipIf(lacks("chromium"))("one delivery", () => {
  test("shows each attempt verbatim, explains the failure, and is delivered again on request", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    receiver.answer = () => 500;
    await world.emit(1);
    await world.settled(id, 4);
    const eventId = receiver.eventIds[0] ?? "";
    const { page, faults } = await world.open(`/webhooks/${id}/deliveries/${eventId}`);
    await page.getByText("All attempts failed").waitFor();
    expect(await attemptItems(page).count()).toBe(4);
    await page.getByText("Check its logs around this time.").waitFor();
    await page.getByText("Attempt 1 of 4").click();
    const sent = receiver.received[0];
    await page.getByText(sent?.headers["x-svc-signature"] ?? "absent").waitFor();
    const body = attemptItems(page).last().getByLabel("Request body", { exact: true });
    expect(await body.textContent()).toBe(JSON.stringify(JSON.parse(sent?.body ?? ""), null, 2));
    await attemptItems(page).last().getByLabel("Format JSON").uncheck();
    expect(await body.textContent()).toBe(sent?.body ?? "absent");
    await checkLooks(page, "delivery");

    receiver.answer = () => 200;
    await button(page, "Resend…").click();
    await confirm(page, "Resend");
    await page.getByText("The endpoint accepted the event.").waitFor();
    await page.getByText("Attempt 1 of 4, round 2").waitFor();
    expect(receiver.received.at(-1)?.headers["x-svc-delivery"]).toBe(eventId);
    expect(faults).toEqual([]);
  });

  test("that is queued already cannot be queued again", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    receiver.answer = () => "hang";
    await world.emit(1);
    await until("sent", () => receiver.received.length === 1);
    const { page } = await world.open(`/webhooks/${id}/deliveries/${receiver.eventIds[0]}`);
    await page.getByText("It is sent as soon as").waitFor();
    expect(await button(page, "Resend…").count()).toBe(0);
  });

  test("that does not exist shows an error with a link back", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open(`/webhooks/${id}/deliveries/01JWNB9PR0ZV8X2D3F4G5H6J00`);
    await page.getByRole("alert").waitFor();
    await page.getByRole("link", { name: "Deliveries of Test" }).click();
    await page.getByText("No deliveries yet").waitFor();
  });

  test("shows what a hostile endpoint answers as text", async () => {
    const hostile = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response(HOSTILE, { status: 500, headers: { "X-Evil": HOSTILE } }),
    });
    const { id } = await world.subscribe({ webhook_url: `http://127.0.0.1:${hostile.port}/` });
    const made = await world.ask("POST", `/${id}/test`);
    await world.settled(id, 4);
    await hostile.stop(true);
    const path = `/webhooks/${id}/deliveries/${String(made.body["event_id"])}`;
    const { page, faults } = await world.open(path);
    await page.getByRole("definition").getByText(HOSTILE).waitFor();
    expect(await page.getByLabel("Response body", { exact: true }).textContent()).toBe(HOSTILE);
    expect(await page.locator("img").count()).toBe(0);
    expect(await page.title()).not.toBe("owned");
    expect(faults).toEqual([]);
  });
});

const receiver = browserFixture(() => Receiver.start());

afterEach(async () => {
  if (!isPresent("chromium")) return;
  receiver.answer = () => 200;
  receiver.received.length = 0;
});

const HOSTILE = `<img src=x onerror="document.title='owned'">`;

/** The first row is the header. */
const rows = (page: Page) => page.getByRole("table", { name: "Events" }).getByRole("row");

/** The attempts on the page of a delivery. */
const attemptItems = (page: Page) =>
  page.getByRole("region", { name: "Attempts" }).locator("ol > li");

/** Waits until the list has this number of rows, of which only those in view are in the document. */
const has = (page: Page, count: number) =>
  page.locator(`table[aria-rowcount="${count + 1}"]`).waitFor();

/** Waits until this number of rows is visible, not counting the header. */
const shows = (page: Page, count: number) =>
  until(`${count} rows`, async () => (await rows(page).count()) === count + 1);

/** Stores the attempts of delivered events, one a second, without sending anything. */
async function addDeliveries(id: string, count: number): Promise<void> {
  const newest = Date.now() - 60_000;
  for (let i = 0; i < count; i++) {
    const at = new Date(newest - i * 1_000);
    const fields = {
      sequence: count - i,
      started_at: at,
      recorded_at: at,
      payload_mode: "full",
    } as const;
    await addAttempt(world.database.db, id, fields);
  }
}
