import { afterAll, afterEach, describe, expect, test } from "bun:test";

import { verify } from "@octokit/webhooks-methods";
import type { Page } from "playwright-core";

import { isPresent, lacks } from "../../support/needs.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { HEAD, Walk, type Task } from "../../support/dashboard/task-walk.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

// The main tasks of a partner: to set up a subscription, and to find and solve problems. Each task starts at
// the first page after the sign-in and uses only visible texts. SCREENSHOTS=<folder> saves each state.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("a partner, in a browser", () => {
  test("sets up a subscription and verifies it", async () => {
    await world.clear();
    const task = {
      name: "Set up and verify",
      clicks: 6,
      least: 4,
      reason:
        "three steps: where events go, which, and the proof that they arrive; Tab and Enter save two",
    };
    await walkThrough(task, async (walk, page) => {
      await walk.look("start");
      await walk.click(link(page, "Set up immediate delivery"));
      await walk.click(page.getByLabel("Endpoint URL"));
      await walk.type(receiver.url);
      await walk.look("endpoint");
      await walk.click(button(page, "Continue"));
      await button(page, "Create subscription").waitFor();
      await walk.look("events");
      await walk.click(button(page, "Create subscription"));
      await walk.click(button(page, "Copy").first());
      const secret = await clipboard(page);
      receiver.answer = async ({ body, headers }) =>
        (await verify(secret, body, headers["x-svc-signature"] ?? "sha256=0")) ? 200 : 401;
      await walk.click(button(page, "Send a test event"));
      await page.getByText("Delivered", { exact: true }).waitFor();
      walk.done();
      await walk.look("verified");
    });
    expect(events()).toEqual(["webhook.test"]);
  });

  test("finds out why and since when nothing arrives", async () => {
    const id = await disabled();
    const task = { name: "Why, and since when", clicks: 1, least: 1 };
    await walkThrough(task, async (walk, page) => {
      await page.getByText("New events are held").waitFor();
      await walk.look("list");
      await walk.click(link(page, "Production"));
      const card = page.getByRole("region", { name: "Problem" });
      await card.getByText("Since", { exact: true }).waitFor();
      await card.getByRole("cell", { name: "410" }).waitFor();
      walk.done();
      await walk.look("overview");
      const { body } = await world.ask("GET", `/${id}/incident`);
      const since = String(body["since"]);
      // The card shows the time in the time zone of the browser.
      const shown = await card.locator("time").first().getAttribute("datetime");
      expect(shown).toBe(since);
    });
  });

  test("enables a disabled subscription with its held events", async () => {
    const id = await disabled();
    const task = { name: "Enable, with what is held", clicks: 3, least: 3 };
    await walkThrough(task, async (walk, page) => {
      await walk.click(link(page, "Production"));
      await walk.click(button(page, "Enable …"));
      await page.getByLabel("Deliver the 2 held events").waitFor();
      await walk.look("dialog");
      await walk.click(inDialog(page, "Enable"));
      await page.getByText("Your endpoint accepted the test event").waitFor();
      walk.done();
      await walk.look("test");
    });
    expect(await isActive(id)).toBe(true);
    expect(events()[0]).toBe("webhook.test");
    await until("the held events", () => receiver.received.length === 3);
  });

  test("rotates the signing secret", async () => {
    const { id, secret: before } = await world.subscribe({
      webhook_url: receiver.url,
      label: "Production",
    });
    const task = { name: "Rotate the secret", clicks: 4, least: 4 };
    await walkThrough(task, async (walk, page) => {
      await walk.click(link(page, "Settings"));
      await walk.click(button(page, /^Rotate/));
      // Not a step of the task: the field has a default.
      await page.getByLabel("Grace period in hours").fill("2");
      await walk.look("dialog");
      await walk.click(inDialog(page, "Rotate"));
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await walk.click(button(page, "Copy").first());
      walk.done();
      await walk.look("rotated");
      const after = await clipboard(page);
      await world.emit(1);
      await until("the event", () => receiver.received.length === 1);
      const [first] = receiver.received;
      const isBy = (secret: string, name: string) =>
        verify(secret, first?.body ?? "", first?.headers[name] ?? "sha256=0");
      expect(await isBy(after, "x-svc-signature")).toBe(true);
      expect(await isBy(before, "x-svc-signature-previous")).toBe(true);
      const { body } = await world.ask("GET", `/${id}`);
      const left = Date.parse(String(body["previous_secret_expires_at"])) - Date.now();
      expect(Math.ceil(left / 3_600_000)).toBe(2);
    });
  });

  test("finds the deliveries of a review, and sends them again", async () => {
    const { review } = await failed(1);
    const task = { name: "Find by review, send again", clicks: 4, least: 2 };
    await walkThrough(task, async (walk, page) => {
      await walk.click(button(page, /^Search/));
      await page.locator("input:focus").waitFor();
      await walk.type(review);
      const hit = page.getByRole("option", { name: `review ${review}` });
      await hit.waitFor();
      await walk.look("search");
      await walk.click(hit);
      await walk.click(button(page, "Resend …"));
      await walk.look("dialog");
      await walk.click(inDialog(page, "Resend"));
      await page.getByText("Attempt 1 of 4, round 2").waitFor();
      walk.done();
      await walk.look("delivery");
    });
    expect(receiver.received).toHaveLength(1);
  });

  test("recovers the events of an outage", async () => {
    await failed(3);
    const task = { name: "Recover an outage", clicks: 3, least: 3 };
    await walkThrough(task, async (walk, page) => {
      await walk.click(link(page, "Deliveries"));
      await walk.click(button(page, "Resend all …"));
      await inDialog(page, "Resend 3 events").waitFor();
      await walk.look("dialog");
      await walk.click(inDialog(page, "Resend 3 events"));
      await page.getByText("3 events queued.").waitFor();
      walk.done();
      await walk.look("queued");
    });
    await until("the three", () => receiver.received.length === 3);
  });
});

const receiver = browserFixture(() => Receiver.start());

const lines: string[] = [];

afterEach(async () => {
  if (!isPresent("chromium")) return;
  receiver.answer = () => 200;
  receiver.received.length = 0;
});

afterAll(async () => {
  if (!isPresent("chromium")) return;
  console.log([HEAD, ...lines].join("\n"));
});

const button = (page: Page, name: string | RegExp) =>
  page.getByRole("button", { name, ...(typeof name === "string" && { exact: true }) });

const inDialog = (page: Page, name: string) =>
  page.getByRole("dialog").getByRole("button", { name, exact: true });

const link = (page: Page, name: string | RegExp) => page.getByRole("link", { name });

const clipboard = (page: Page) => page.evaluate<string>("navigator.clipboard.readText()");

const isActive = async (id: string) => (await world.ask("GET", `/${id}`)).body["is_active"];

const events = () => receiver.received.map(({ headers }) => headers["x-svc-event"]);

/** Runs a task from the first page after the sign-in, and checks its number of steps against the limit. */
async function walkThrough(task: Task, steps: (walk: Walk, page: Page) => Promise<void>) {
  const { page, faults } = await world.open("");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("heading", { level: 1, name: "Webhooks" }).waitFor();
  const walk = new Walk(page, task);
  await steps(walk, page);
  lines.push(walk.line());
  expect(walk.faults).toEqual([]);
  expect(faults).toEqual([]);
  expect(walk.clicks).toBeLessThanOrEqual(task.clicks);
  return page;
}

/** Creates a subscription that was disabled after 20 failures, with two held events. */
async function disabled(): Promise<string> {
  const { id } = await world.subscribe({ webhook_url: receiver.url, label: "Production" });
  receiver.answer = () => 410;
  await world.emit(20);
  await until("disabled", async () => (await isActive(id)) === false);
  await world.emit(2);
  receiver.answer = () => 200;
  receiver.received.length = 0;
  return id;
}

/** Creates events that failed permanently. Returns the subscription and the review of the events. */
async function failed(count: number): Promise<{ id: string; review: string }> {
  const { id } = await world.subscribe({ webhook_url: receiver.url, label: "Production" });
  receiver.answer = () => 410;
  await world.emit(count);
  const messages = async () => {
    const { body } = await world.ask("GET", `/${id}/messages?state=failed`);
    return body["data"] as { external_review_id: string }[];
  };
  await until("given up", async () => (await messages()).length === count);
  receiver.answer = () => 200;
  receiver.received.length = 0;
  return { id, review: String((await messages())[0]?.external_review_id) };
}
