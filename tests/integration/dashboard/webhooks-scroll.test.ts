import { beforeAll, expect, test } from "bun:test";

import { ulid } from "ulid";

import { isPresent, lacks } from "../../support/needs.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { until } from "../../support/network/receiver.ts";
import { isThorough } from "../../support/thorough.ts";

// A list of a thousand events, or if thorough of ten thousand. MEASURE=1 prints frame times of a scroll through it.

const world = useWebhookDashboard();

test.skipIf(lacks("chromium"))(
  "a long list of events is read from the newest to the oldest with few rows in the document",
  async () => {
    const { page, faults } = await world.open(`/webhooks/${id}?tab=deliveries`);
    await page.getByRole("link", { name: "review_received" }).first().waitFor();
    await page.evaluate(load(oldest));
    expect(await page.locator("table").getAttribute("aria-rowcount")).toBe(`${ATTEMPTS + 1}`);
    expect(await page.locator("table tr").count()).toBeLessThan(100);
    if (process.env["MEASURE"] !== undefined)
      console.log(summary(await page.evaluate<number[]>(SCROLL)));

    // The back button restores the scroll position.
    await page.evaluate("scrollTo(0, 20000)");
    const row = page.getByRole("link", { name: "review_received" }).nth(20);
    await row.waitFor();
    const place = await page.evaluate<number>("scrollY");
    await row.click();
    await page.waitForURL("**/deliveries/**");
    await page.goBack();
    await until("the same place", async () => (await page.evaluate("scrollY")) === place);
    expect(faults).toEqual([]);
  },
);

/** Scrolls to the end until all pages are loaded and the oldest row is in view. */
const load = (oldestId: string) => `(async () => {
  const isOldest = (cell) => cell.textContent === "${oldestId}";
  while (![...document.querySelectorAll("code")].some(isOldest)) {
    window.scrollTo(0, document.body.scrollHeight);
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
})()`;

/** Scrolls in every frame, like a fast mouse wheel, until the end. Returns the frame times. */
const SCROLL = `(async () => {
  const frames = [];
  window.scrollTo(0, 0);
  for (let before = -1; scrollY !== before;) {
    before = scrollY;
    const began = performance.now();
    window.scrollBy(0, 900);
    await new Promise((resolve) => requestAnimationFrame(resolve));
    frames.push(performance.now() - began);
  }
  return frames;
})()`;

function summary(frames: readonly number[]): string {
  const sorted = frames.toSorted((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1);
  const long = frames.filter((ms) => ms > 50).length;
  return `${frames.length} frames: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms, longest ${at(0.9999)} ms, ${long} over 50 ms`;
}

const ATTEMPTS = isThorough ? 10_000 : 1_000;
const AT_ONCE = 1_000;

let id: string;
let oldest: string;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  ({ id } = await world.subscribe({ webhook_url: "http://127.0.0.1:9/hook" }));
  const { sql } = world.database.db;
  const newest = Date.now() - 60_000;
  for (let first = 0; first < ATTEMPTS; first += AT_ONCE) {
    const rows = Array.from({ length: AT_ONCE }, (_, i) => {
      const at = newest - (first + i) * 1_000;
      return {
        id: ulid(at),
        subscription_id: id,
        sequence: ATTEMPTS - first - i,
        event_id: (oldest = ulid(at - 100)),
        event: "review_received",
        round: 1,
        attempt: 1,
        started_at: new Date(at),
        duration_ms: 20 + (i % 50),
        outcome: "delivered",
        status_code: 200,
        error_code: null,
        request_headers: "{}",
        request_body: JSON.stringify({ text: "x".repeat(700) }),
        response_truncated: false,
        next_attempt_at: null,
        recorded_at: new Date(at),
        payload_mode: "full",
      };
    });
    await sql`insert into delivery_attempts ${sql(rows)}`;
  }
});
