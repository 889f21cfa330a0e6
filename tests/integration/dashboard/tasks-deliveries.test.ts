import { afterEach, describe, expect, test } from "bun:test";

import { verify } from "@octokit/webhooks-methods";
import type { Page } from "playwright-core";

import { browserFixture } from "../../support/dashboard/browser.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { button, clipboard, inDialog } from "../../support/dashboard/locators.ts";
import { walkThrough } from "../../support/dashboard/task-walk.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { isThorough } from "../../support/thorough.ts";

// The main tasks of a partner: to set up a subscription, and to find and solve problems. Each task starts at
// the first page after the sign-in and uses only visible texts. SCREENSHOTS=<folder> saves each state.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("a partner, in a browser", () => {
  test("sets up a subscription and verifies it", async () => {
    await world.clear();
    const task = {
      name: "Set up and verify",
      clicks: 5,
    };
    await walkThrough(world, task, partner(), async (walk, page) => {
      await walk.look("start");
      await walk.click(link(page, "Add an endpoint"));
      await page.getByLabel("Endpoint URL").and(page.locator(":focus")).waitFor();
      await walk.type(receiver.url);
      await walk.look("endpoint");
      await walk.click(button(page, "Continue"));
      await button(page, "Create subscription").waitFor();
      await walk.look("events");
      await walk.click(button(page, "Create subscription"));
      await walk.click(button(page, "Copy").first());
      const secret = await clipboard(page);
      expect(secret).toMatch(/^[0-9a-f]{64}$/);
      receiver.answer = async ({ body, headers }) =>
        (await verify(secret, body, headers["x-svc-signature"] ?? "sha256=0")) ? 200 : 401;
      await walk.click(button(page, "Send a test event"));
      await page.getByText("Delivered", { exact: true }).waitFor();
      await walk.look("verified");
      await page.getByRole("tab", { name: "Python" }).click();
      await page.getByText("hmac.compare_digest").waitFor();
      // The URL can be corrected in place and is tested again, by keyboard.
      await button(page, "Edit URL").click();
      await page.getByLabel("Endpoint URL").and(page.locator(":focus")).fill(`${receiver.url}?v=2`);
      await page.keyboard.press("Enter");
      await button(page, "Send a test event").and(page.locator(":focus")).waitFor();
      await page.keyboard.press("Enter");
      await page.getByText(/^Attempt 1 → HTTP 200 in \d/).waitFor();
    });
    expect(events()).toEqual(["webhook.test", "webhook.test"]);
  });

  test("finds out why and since when nothing arrives", async () => {
    const id = await world.disabled(receiver);
    const task = { name: "Why, and since when", clicks: 1 };
    await walkThrough(world, task, partner(), async (walk, page) => {
      await page.getByText("New events are held").waitFor();
      await walk.look("list");
      await walk.click(link(page, "Production"));
      const card = page.getByRole("region", { name: "Problem" });
      await card.getByText("Failed for", { exact: true }).waitFor();
      await card.getByRole("cell", { name: "410" }).waitFor();
      await walk.look("overview");
      const { body } = await world.ask("GET", `/${id}/incident`);
      const since = String(body["since"]);
      // The card shows the time in the time zone of the browser.
      const shown = await card.locator("time").first().getAttribute("datetime");
      expect(shown).toBe(since);
    });
  });

  test("enables a disabled subscription with its held events", async () => {
    const id = await world.disabled(receiver);
    const task = { name: "Enable, with what is held", clicks: 3 };
    await walkThrough(world, task, partner(), async (walk, page) => {
      await walk.click(link(page, "Production"));
      await walk.click(button(page, "Enable…"));
      await page.getByLabel("Deliver the 2 held events").waitFor();
      await page.getByText("20 earlier events were not delivered").waitFor();
      expect(await page.getByLabel("Send a test event first").isChecked()).toBe(true);
      await walk.look("dialog");
      await walk.click(inDialog(page, "Enable"));
      await page.getByText("Your endpoint accepted the test event").waitFor();
      await walk.look("test");
      await page.getByText("The subscription is enabled. Held events are sent in order.").waitFor();
      await until("the held events", () => receiver.received.length === 3);
    });
    expect(await isActive(id)).toBe(true);
    expect(events()[0]).toBe("webhook.test");
  });

  test("rotates the signing secret", async () => {
    const { id, secret: before } = await world.subscribe({
      webhook_url: receiver.url,
      label: "Production",
    });
    const task = { name: "Rotate the secret", clicks: 4 };
    await walkThrough(world, task, partner(), async (walk, page) => {
      await walk.click(link(page, "Settings"));
      await walk.click(button(page, /^Rotate/));
      // Not a step of the task: the field has a default.
      await page.getByLabel("Hours", { exact: true }).fill("2");
      await walk.look("start");
      await walk.click(button(page, "Rotate"));
      await page.getByLabel("New secret").waitFor();
      await walk.click(button(page, "Copy").first());
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
    const task = { name: "Find by review, send again", clicks: 4 };
    await walkThrough(world, task, partner(), async (walk, page) => {
      await walk.click(button(page, /^Search/));
      await page.locator("input:focus").waitFor();
      await walk.type(review);
      const hit = page.getByRole("option", { name: `review ${review}` });
      await hit.waitFor();
      await walk.look("search");
      await walk.click(hit);
      await walk.click(button(page, "Resend…"));
      await walk.look("dialog");
      // The wide looks put the delivery beside its list, without the dialog.
      if (isThorough) await button(page, "Resend…").press("Enter");
      await walk.click(inDialog(page, "Resend"));
      await page.getByText("Attempt 1 of 4, round 2").waitFor();
      await walk.look("delivery");
    });
    expect(receiver.received).toHaveLength(1);
  });

  test("recovers the events of an outage", async () => {
    await failed(3);
    const task = { name: "Recover an outage", clicks: 3 };
    await walkThrough(world, task, partner(), async (walk, page) => {
      await walk.click(link(page, "Deliveries"));
      await walk.click(button(page, "Resend undelivered…"));
      await inDialog(page, "Resend 3 events").waitFor();
      await walk.look("dialog");
      await walk.click(inDialog(page, "Resend 3 events"));
      await page.getByText("3 events queued.").waitFor();
      await walk.look("queued");
      await until("the three", () => receiver.received.length === 3);
      await page.getByText("All 3 events were delivered.").waitFor();
      await walk.look("resent");
      await button(page, "Resend undelivered…").click();
      await page.getByText("No undelivered event matches.").waitFor();
      expect(await inDialog(page, "Resend").isDisabled()).toBe(true);
    });
  });
});

const receiver = browserFixture(() => Receiver.start());

afterEach(async () => {
  if (!isPresent("chromium")) return;
  receiver.answer = () => 200;
  receiver.received.length = 0;
});

const link = (page: Page, name: string | RegExp) => page.getByRole("link", { name });

const isActive = async (id: string) => (await world.ask("GET", `/${id}`)).body["is_active"];

const events = () => receiver.received.map(({ headers }) => headers["x-svc-event"]);

const partner = () => ({ email: world.tenants.partners[0].owner.email, at: "Webhooks" });

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
