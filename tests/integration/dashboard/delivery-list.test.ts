import { readFileSync } from "node:fs";

import { beforeAll, describe, expect, test } from "bun:test";

import type { Page } from "playwright-core";

import { browserFixture } from "../../support/dashboard/browser.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { allErrors, checkLooks, held, LOOKS } from "../../support/dashboard/dashboard.ts";
import { button, clipboard } from "../../support/dashboard/locators.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { Receiver, until } from "../../support/network/receiver.ts";

// The list of events: a partner finds the deliveries of a review and sends them again.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("the events of a subscription", () => {
  test.each(LOOKS)(
    "are one row each, without accessibility violations, %p",
    async ({ width, colorScheme }) => {
      const path = `/webhooks/${id}?tab=deliveries`;
      const { page, faults } = await world.open(path, { width, colorScheme });
      await shows(page, 5);
      const dots = page.getByText(/^1: Failed, HTTP 503.*4: Failed, HTTP 503/);
      await dots.waitFor({ state: "attached" });
      if (width > 1000) await button(page, "More filters").click();
      expect(await allErrors(page)).toEqual([]);
      await button(page, /^Attempts of/)
        .first()
        .click();
      await page.getByText("4 of 4").waitFor();
      expect(await allErrors(page)).toEqual([]);
      if (width < 1000) {
        await button(page, "Filters").click();
        expect(await allErrors(page)).toEqual([]);
      }
      expect(faults).toEqual([]);
    },
  );

  test("are filtered by review, failures, status, state, text and time, in the address too", async () => {
    const { page, faults } = await world.open(`/webhooks/${id}?tab=deliveries`);
    await shows(page, 5);
    await page.getByLabel("Review", { exact: true }).fill("review-4");
    await shows(page, 1);
    expect(page.url()).toContain("external_review_id=review-4");
    await page.getByText("HTTP 410", { exact: true }).waitFor();
    await button(page, /^Attempts of/).click();
    await button(page, "Resend…").waitFor();
    await button(page, "Clear").click();
    await button(page, "With failures").click();
    await shows(page, 2);
    expect(page.url()).toContain("outcome=not_delivered");
    await button(page, "With failures").click();
    await shows(page, 5);
    await button(page, "More filters").click();
    await page.getByRole("combobox", { name: "Status" }).fill("503");
    await shows(page, 1);
    await page.getByRole("combobox", { name: "Status" }).fill("4xx");
    await shows(page, 1);
    await button(page, "Clear").click();
    await page.getByLabel("State", { exact: true }).selectOption("failed");
    await shows(page, 2);
    await page.getByLabel("Error or response").fill("no such words");
    await page.getByText("No matching deliveries").waitFor();
    // The chart counts all attempts of a period, so it is there without other filters only.
    expect(await button(page, "Chart").count()).toBe(0);
    await button(page, "Clear").click();
    await page.getByLabel("Time").selectOption("1h");
    await shows(page, 5);
    await button(page, "Chart").waitFor();
    expect(page.url()).toContain("within=1h");
    await page.reload();
    await page.getByLabel("Time").waitFor();
    expect(await page.getByLabel("Time").inputValue()).toBe("1h");
    await page.getByLabel("Time").selectOption("custom");
    await page.getByLabel("Until").fill("2026-01-01T00:00");
    await page.getByText("No matching deliveries").waitFor();
    expect(faults).toEqual([]);
  });

  test("are filtered by a typed event, which Enter applies once the catalog has loaded", async () => {
    const { page } = await world.open("/webhooks");
    const release = await held(page, "**/partner/webhooks/events");
    await page.goto(`${page.url()}/${id}?tab=deliveries`);
    await button(page, "More filters").click();
    const field = page.getByRole("combobox", { name: "Event", exact: true });
    await field.waitFor();
    expect(await field.isDisabled()).toBe(true);
    release();
    await field.click();
    await page.keyboard.type("profan");
    await page.keyboard.press("Enter");
    await until("the filter", () => page.url().includes("event=profanity_detected"));
  });

  test("show each attempt's answer on their page, and link to all events of their review", async () => {
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries&status=503`);
    await shows(page, 1);
    await page.getByRole("link", { name: "review_received" }).click();
    await page.getByText("Failed · HTTP 503").nth(3).waitFor();
    await page.getByRole("link", { name: "All events of this review" }).click();
    await shows(page, 1);
    expect(page.url()).toContain("review_id=");
  });

  test("stay unchanged while paused, and are updated on request", async () => {
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries`);
    await page.getByText("Updates live", { exact: true }).waitFor();
    await shows(page, 5);
    await button(page, "Pause updates").click();
    await world.emit(1);
    await button(page, "Show new deliveries").waitFor();
    expect(await rows(page).count()).toBe(6);
    await button(page, "Show new deliveries").click();
    await shows(page, 6);
    await world.emit(1);
    await shows(page, 7);
  });

  test("are shown in local time or in UTC, as the user has chosen last", async () => {
    const { page } = await world.open("/webhooks");
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("Emulation.setTimezoneOverride", { timezoneId: "America/New_York" });
    await page.goto(`${page.url()}/${id}?tab=deliveries`);
    await page.getByText(/^Times in E[SD]T$/).waitFor();
    await button(page, "Show UTC").click();
    await page.reload();
    // The list moves the button when it appears, which can be between the press and the release of the pointer.
    await rows(page).first().waitFor();
    await page.getByText("Times in UTC").waitFor();
    await button(page, "Show local time").click();
    await page.getByText(/^Times in E[SD]T$/).waitFor();
  });

  test("are saved as CSV and as JSON", async () => {
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries&state=failed`);
    await rows(page).first().waitFor();
    for (const format of ["CSV", "JSON"] as const) {
      await button(page, "Export").click();
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("menuitem", { name: format }).click(),
      ]);
      const text = readFileSync(await file.path(), "utf8");
      const { body } = await world.ask("GET", `/${id}/messages?state=failed`);
      if (format === "JSON") expect(JSON.parse(text)).toEqual(body["data"]);
      else expect(text.split("\r\n")).toHaveLength((body["data"] as unknown[]).length + 2);
    }
  });
});

describe.skipIf(lacks("chromium"))("in a wide window a delivery", () => {
  test("stands beside the list, and J and K lead through the events", async () => {
    const { page, faults } = await world.open(`/webhooks/${id}?tab=deliveries`, { width: 1440 });
    await shows(page, 7);
    const pane = page.getByRole("region", { name: "Delivery" });
    const eventId = (nth: number) => rows(page).nth(nth).locator("code").textContent();
    await page.getByRole("link", { name: "review_received" }).nth(1).click();
    await pane
      .getByText((await eventId(2)) ?? "absent")
      .first()
      .waitFor();
    expect(await allErrors(page)).toEqual([]);
    await page.keyboard.press("j");
    await pane
      .getByText((await eventId(3)) ?? "absent")
      .first()
      .waitFor();
    await page.keyboard.press("k");
    await page.keyboard.press("k");
    await pane
      .getByText((await eventId(1)) ?? "absent")
      .first()
      .waitFor();
    expect(await button(page, "Previous delivery (K)").isDisabled()).toBe(true);
    await page.keyboard.press("Escape");
    await pane.waitFor({ state: "detached" });
    expect(page.url()).not.toContain("open=");
    expect(faults).toEqual([]);
  });

  test("has an address that works in any window, and the list beside it keeps attempts, code and retry", async () => {
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries&status=503`, { width: 1440 });
    const pane = page.getByRole("region", { name: "Delivery" });
    await page.getByRole("link", { name: "review_received" }).click();
    await pane.getByText("Failed · HTTP 503").nth(3).waitFor();
    const row = rows(page).filter({ hasText: "review_received" });
    await row.getByText("HTTP 503", { exact: true }).waitFor();
    expect(await row.locator("[data-outcome]").count()).toBe(4);
    await page.goBack();
    await pane.waitFor({ state: "detached" });
    await page.goForward();
    await pane.waitFor();
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.waitForURL("**/deliveries/*");
    await page.getByText("Failed · HTTP 503").nth(3).waitFor();
    await page.setViewportSize({ width: 1440, height: 900 });
    await pane.getByText("Failed · HTTP 503").nth(3).waitFor();
  });

  test("and in others its page lead on, and back to the filtered list", async () => {
    const { page } = await world.open(`/webhooks/${id}?tab=deliveries&within=24h`);
    await rows(page).nth(2).waitFor();
    await page.getByRole("link", { name: "review_received" }).first().click();
    await page.getByRole("heading", { name: "Attempts" }).waitFor();
    const first = page.url();
    await button(page, "Next delivery (J)").click();
    await until("the next", () => page.url() !== first);
    await page.keyboard.press("k");
    await page.waitForURL(first);
    await page.getByRole("link", { name: "Deliveries of Test" }).click();
    await rows(page).nth(2).waitFor();
    expect(page.url()).toContain("within=24h");
  });
});

describe.skipIf(lacks("chromium"))("one delivery", () => {
  test.skipIf(lacks("curl"))(
    "is copied as a curl command that sends the same request",
    async () => {
      const { body } = await world.ask("GET", `/${id}/messages?external_review_id=review-1`);
      const [delivery] = body["data"] as { event_id: string }[];
      const { page } = await world.open(`/webhooks/${id}?tab=deliveries`);
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      const release = await held(page, `**/partner/webhooks/${id}`);
      await page.goto(page.url().replace("?tab=", "/").concat(`/${delivery?.event_id}`));
      await button(page, "Copy as cURL").waitFor();
      // The command needs the URL, which has not loaded yet.
      expect(await button(page, "Copy as cURL").isDisabled()).toBe(true);
      release();
      await button(page, "Copy as cURL").click();
      const command = await clipboard(page);
      const before = receiver.received.length;
      const sent = receiver.received[0];
      const run = Bun.spawn(["sh", "-c", command], {
        env: process.env,
        stdout: "ignore",
        stderr: "ignore",
      });
      expect(await run.exited).toBe(0);
      await until("sent by hand", () => receiver.received.length === before + 1);
      const again = receiver.received.at(-1);
      expect(again?.body).toBe(sent?.body ?? "absent");
      expect(again?.headers["x-svc-signature"]).toBe(sent?.headers["x-svc-signature"]);
    },
  );
});

describe.skipIf(lacks("chromium"))("the search", () => {
  test("has no accessibility violations in any look", async () => {
    const { page, faults } = await world.open("/webhooks");
    await button(page, "Search").click();
    const field = page.getByRole("combobox", { name: "What are you looking for?" });
    await field.fill("review-5");
    await page.getByText("review review-5").waitFor();
    await page.getByText(/found\.$/).waitFor();
    await checkLooks(page, "search");
    expect(faults).toEqual([]);
  });

  test("finds a review, an event, an account, an action, a page and a guide by Ctrl-K and keyboard alone", async () => {
    const { page } = await world.open("/webhooks");
    const { body } = await world.ask("GET", `/${id}/messages?external_review_id=review-2`);
    const [delivery] = body["data"] as { event_id: string; review_id: number }[];
    const type = async (typed: string) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "What are you looking for?" }).waitFor();
      await page.locator("input:focus").waitFor();
      await page.keyboard.type(typed);
    };
    const open = async (typed: string, found: RegExp) => {
      await type(typed);
      await page.locator("[data-combobox-selected]", { hasText: found }).waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    };
    await open("review-2", /review_received.*review review-2/);
    await page.waitForURL(`**/deliveries/${delivery?.event_id}`);
    await open("security", /Security/);
    await page.waitForURL("**/dashboard/security");
    await open(delivery?.event_id.toLowerCase() ?? "", /review_received/);
    await page.waitForURL(`**/deliveries/${delivery?.event_id}`);
    await open(id.toLowerCase(), /Test: overview/);
    await page.waitForURL(`**/dashboard/webhooks/${id}`);
    await open("settings", /Test: settings/);
    await page.waitForURL("**?tab=settings");
    await open("p1-a1", /p1-a1.*Account/);
    await page.waitForURL("**/dashboard/accounts/*");
    await type("invite");
    await page.locator("[data-combobox-selected]", { hasText: "Invite a colleague" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Invite to the team" }).waitFor();
    await page.keyboard.press("Escape");
    await page.waitForURL("**/dashboard/team");
    await type("zzqx");
    await page.getByText("No results.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await type("verifying");
    const [guide] = await Promise.all([
      page.waitForEvent("popup"),
      page
        .getByRole("option", { name: /Verify/ })
        .first()
        .click(),
    ]);
    expect(guide.url()).toContain("/docs/");
  });
});

const receiver = browserFixture(() => Receiver.start());

let id: string;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  ({ id } = await world.subscribe({ webhook_url: receiver.url, ordering: "review" }));
  await world.emit(3);
  await world.settled(id, 3);
  receiver.answer = () => 410;
  await world.emit(1);
  await world.settled(id, 4);
  receiver.answer = () => 503;
  await world.emit(1);
  await world.settled(id, 8);
  receiver.answer = () => 200;
});

/** The first row is the header. */
const rows = (page: Page) => page.getByRole("table", { name: "Events" }).getByRole("row");

const shows = (page: Page, count: number) =>
  until(`${count} rows`, async () => (await rows(page).count()) === count + 1);
