import { describe, expect, test } from "bun:test";

import type { Page, Route } from "playwright-core";

import { PASSWORD } from "../../support/api.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { signIn } from "../../support/dashboard/dashboard.ts";
import { lacks } from "../../support/needs.ts";
import { Receiver } from "../../support/network/receiver.ts";

// The bytes and round trips that a page needs until it is usable.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("the weight", () => {
  test("of the first view is below 160 kB at the sign-in, and below 265 kB in 10 files on a partner's first page", async () => {
    const { page } = await world.open("", { email: null, isFirst: true });
    await page.getByLabel("Email").waitFor();
    const atSignIn = await weigh(page);
    await signIn(page, world.tenants.partners[0].owner.email);
    await page.getByRole("heading", { level: 1 }).waitFor();
    const atFirstPage = await weigh(page);
    if (process.env["WEIGHTS"] !== undefined) console.log({ atSignIn, atFirstPage });
    // An empty page weighs nothing.
    expect(atSignIn.bytes).toBeGreaterThan(50_000);
    expect(atSignIn.bytes).toBeLessThan(SIGN_IN_BYTES);
    expect(atFirstPage.bytes).toBeLessThan(PAGE_BYTES);
    expect(atFirstPage.files).toBeLessThanOrEqual(PAGE_FILES);
  });
});

/** Delays all answers so that they come in waves. A wave starts when the page waits for nothing but held answers. */
async function countWaves(page: Page, isThere: () => Promise<void>): Promise<string[][]> {
  const waves: string[][] = [];
  let held: Route[] = [];
  let lastAt = performance.now();
  await page.route("**/*", (route) => {
    held.push(route);
    lastAt = performance.now();
  });
  const end = new AbortController();
  const pump = (async () => {
    while (!end.signal.aborted) {
      await Bun.sleep(20);
      if (held.length === 0 || performance.now() - lastAt < 400) continue;
      const wave = held;
      held = [];
      waves.push(wave.map((one) => new URL(one.request().url()).pathname));
      for (const route of wave) await route.continue();
    }
  })();
  await isThere();
  end.abort();
  await pump;
  await page.unrouteAll({ behavior: "ignoreErrors" });
  return waves;
}

describe.skipIf(lacks("chromium"))("the loading of a partner's first page", () => {
  test("has few sequential round trips", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open("/webhooks");
    const shown = () => page.locator(`#slot-${id}`).getByRole("link").waitFor();
    const waves = await countWaves(page, async () => {
      await page.goto(`${world.root}/dashboard/webhooks`, { waitUntil: "commit" });
      await shown();
    });
    if (process.env["WEIGHTS"] !== undefined) console.log(waves);
    expect(waves.length).toBeGreaterThan(2);
    expect(waves.length, JSON.stringify(waves, null, 1)).toBeLessThanOrEqual(ROUND_TRIPS);
  });

  test("needs after the password only the round trips for the sign-in, the page and its data", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open("", { email: null, isFirst: true });
    await page.getByLabel("Email").fill(world.tenants.partners[0].owner.email);
    await page.getByRole("button", { name: "Continue", exact: true }).click();
    await page.getByRole("textbox", { name: "Password" }).fill(PASSWORD);
    await page.waitForLoadState("networkidle");
    const waves = await countWaves(page, async () => {
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      await page.locator(`#slot-${id}`).getByRole("link").waitFor();
    });
    expect(waves.length).toBeGreaterThan(1);
    expect(waves.length, JSON.stringify(waves, null, 1)).toBeLessThanOrEqual(ROUND_TRIPS - 1);
  });
});

const receiver = browserFixture(() => Receiver.start());

/** The limits for everything that loads before the user can act, compressed. */
const SIGN_IN_BYTES = 160_000;

const PAGE_BYTES = 265_000;

const PAGE_FILES = 10;

/**
 * The limit of sequential round trips: the document, the entry, the chunks of the page, and its data. One
 * more allows for a slow machine, on which two requests of one wave come apart.
 */
const ROUND_TRIPS = 5;

/** Counts the files of the dashboard that a page has loaded, and sums up their bytes with Brotli. */
async function weigh(page: Page): Promise<{ files: number; bytes: number }> {
  const names: string[] = await page.evaluate(
    "performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)",
  );
  const own = new Set(names.filter((name) => name.startsWith("/dashboard/assets/")));
  const sizes = await Promise.all(["/dashboard", ...own].map(sizeOf));
  return { files: sizes.length, bytes: sizes.reduce((total, size) => total + size, 0) };
}

async function sizeOf(path: string): Promise<number> {
  const headers = { "Accept-Encoding": "br" };
  const answer = await fetch(world.root + path, { headers, decompress: false } as RequestInit);
  return (await answer.arrayBuffer()).byteLength;
}
