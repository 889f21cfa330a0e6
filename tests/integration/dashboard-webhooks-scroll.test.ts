import { afterAll, beforeAll, expect, test } from "bun:test";

import { ulid } from "ulid";

import { chromium } from "../support/browser.ts";
import { startWebhookDashboard, type WebhookDashboard } from "../support/dashboard-webhooks.ts";
import { until } from "../support/receiver.ts";

// Ten thousand attempts in one list. With MEASURE=1 it prints how long frames take while the whole of it scrolls by.

const ATTEMPTS = 10_000;
const AT_ONCE = 1_000;
let world: WebhookDashboard;
let id: string;

beforeAll(async () => {
  if (chromium === undefined) return;
  world = await startWebhookDashboard();
  ({ id } = await world.subscribe({ webhook_url: "http://127.0.0.1:9/hook" }));
  const { sql } = world.database.db;
  const newest = Date.now() - 60_000;
  for (let first = 0; first < ATTEMPTS; first += AT_ONCE) {
    const rows = Array.from({ length: AT_ONCE }, (_, i) => {
      const at = newest - (first + i) * 1_000;
      const isGood = i % 7 !== 0;
      return {
        id: ulid(at),
        subscription_id: id,
        sequence: ATTEMPTS - first - i,
        event_id: ulid(at - 100),
        event: "review_received",
        round: 1,
        attempt: 1,
        started_at: new Date(at),
        duration_ms: 20 + (i % 50),
        outcome: isGood ? "delivered" : "retry",
        status_code: isGood ? 200 : 500,
        error_code: isGood ? null : "http_status",
        request_headers: "{}",
        request_body: JSON.stringify({ text: "x".repeat(700) }),
        response_truncated: false,
        next_attempt_at: isGood ? null : new Date(at + 60_000),
      };
    });
    await sql`insert into delivery_attempts ${sql(rows)}`;
  }
});
afterAll(async () => {
  if (chromium !== undefined) await world.stop();
});

/** Scrolls on in every frame, as a wheel that is turned hard, until the end; answers how long each frame took. */
const SCROLL = `(async () => {
  const frames = [];
  let last = performance.now();
  let still = 0;
  while (still < 180) {
    const before = scrollY;
    window.scrollBy(0, 900);
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const now = performance.now();
    frames.push(now - last);
    last = now;
    still = scrollY === before ? still + 1 : 0;
  }
  return frames;
})()`;

test.skipIf(chromium === undefined)(
  "a list of 10,000 attempts scrolls from the newest to the oldest with few rows in the document",
  async () => {
    const { page, faults } = await world.open(`/webhooks/${id}?tab=deliveries`);
    await page.getByText(`#${ATTEMPTS}`, { exact: true }).waitFor();
    const frames: number[] = [];
    let most = 0;
    for (let round = 0; round < 20; round++) {
      frames.push(...(await page.evaluate<number[]>(SCROLL)).slice(0, -180));
      most = Math.max(most, await page.locator("table tr").count());
      if (await page.getByText("These are all.").isVisible()) break;
    }
    await page.getByText("#1", { exact: true }).waitFor();
    expect(most).toBeLessThan(100);
    if (process.env["MEASURE"] !== undefined) {
      console.log(`while it loads: ${summary(frames)}`);
      await page.evaluate("scrollTo(0, 0)");
      const loaded = (await page.evaluate<number[]>(SCROLL)).slice(0, -180);
      console.log(`once it is loaded: ${summary(loaded)}`);
    }

    // Back from one of them one is where one was.
    await page.evaluate("scrollTo(0, 200000)");
    const row = page.getByRole("link", { name: "review_received" }).nth(20);
    await row.waitFor();
    const place = await page.evaluate<number>("scrollY");
    await row.click();
    await page.getByRole("heading", { name: "Delivery" }).waitFor();
    await page.goBack();
    await until("the same place", async () => (await page.evaluate("scrollY")) === place);
    expect(faults).toEqual([]);
  },
  120_000,
);

function summary(frames: readonly number[]): string {
  const sorted = frames.toSorted((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1);
  const long = frames.filter((ms) => ms > 50).length;
  return `${frames.length} frames: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms, longest ${at(0.9999)} ms, ${long} over 50 ms`;
}
