import { beforeAll, describe, expect, test } from "bun:test";

import type { Page, Route } from "playwright-core";

import { PASSWORD } from "../../support/api.ts";
import { chromium, openBrowser } from "../../support/dashboard/chromium.ts";
import { openDashboard, signIn } from "../../support/dashboard/dashboard.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

// The bytes and round trips that a page needs until it is usable.

const world = useWebhookDashboard();

describe.skipIf(chromium === undefined)("the weight", () => {
  test("of the first view is below 160 kB at the sign-in, and below 265 kB in 10 files on a partner's first page", async () => {
    const browser = await openBrowser();
    const { page } = await openDashboard(browser, { root });
    await page.getByLabel("Email").waitFor();
    const atSignIn = await weigh(page);
    await signIn(page, world.tenants.partners[0].owner.email);
    await page.getByRole("heading", { level: 1 }).waitFor();
    const atFirstPage = await weigh(page);
    expect(atSignIn.brotli).toBeGreaterThan(50_000);
    expect(atSignIn.brotli).toBeLessThan(SIGN_IN_BYTES);
    expect(atFirstPage.brotli).toBeGreaterThan(atSignIn.brotli);
    expect(atFirstPage.brotli).toBeLessThan(PAGE_BYTES);
    expect(atFirstPage.gzip).toBeGreaterThan(atFirstPage.brotli);
    expect(atFirstPage.files).toBeLessThanOrEqual(PAGE_FILES);
    await browser.close();
  });

  test("of the styles is below 160 kB on every page", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    await world.emit(1);
    // The receiver gets the request before the attempt is recorded.
    let records: { event_id: string }[] = [];
    await until("a record", async () => {
      const { body } = await world.ask("GET", `/${id}/deliveries`);
      records = body["data"] as typeof records;
      return records.length > 0;
    });
    const [{ event_id: eventId }] = records as [{ event_id: string }];
    const [partner] = world.tenants.partners;
    const subscription = `/webhooks/${id}`;
    const people: readonly [email: string, pages: readonly string[]][] = [
      [
        partner.owner.email,
        [
          "/webhooks",
          subscription,
          `${subscription}?tab=deliveries`,
          `${subscription}?tab=settings`,
          `${subscription}/deliveries/${eventId}`,
          "/webhooks/new",
          "/webhooks/alerts",
          "/events",
          "/events/review_received",
          "/accounts",
          "/team",
          "/access",
          "/embedding",
          "/audit",
          "/keys",
          "/security",
        ],
      ],
      [partner.accounts[0].owner.email, ["/reviews", "/sites"]],
      [
        world.tenants.superAdmin.email,
        [
          "/dispatcher",
          "/companies",
          `/companies/${partner.id}${subscription}`,
          "/users",
          "/connections",
        ],
      ],
    ];
    const styles: Record<string, number> = {};
    for (const [email, paths] of people) {
      const { page } = await world.open("/security", { email });
      for (const path of paths) {
        await page.goto(`${root}/dashboard${path}`);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await until(
          "all parts",
          async () => (await page.locator(".mantine-Loader-root").count()) === 0,
        );
        styles[path.replace(id, "{id}").replace(eventId, "{event}")] = (await weigh(page)).styles;
      }
      await world.closePages();
    }
    if (process.env["WEIGHTS"] !== undefined) console.log(styles);
    expect(Object.entries(styles).filter(([, bytes]) => bytes >= STYLE_BYTES)).toEqual([]);
    expect(Math.min(...Object.values(styles))).toBeGreaterThan(50_000);
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

describe.skipIf(chromium === undefined)("the loading of a partner's first page", () => {
  test("has few sequential round trips", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { page } = await world.open("/webhooks");
    const shown = () => page.locator(`#slot-${id}`).getByRole("link").waitFor();
    const waves = await countWaves(page, async () => {
      await page.goto(`${root}/dashboard/webhooks`, { waitUntil: "commit" });
      await shown();
    });
    if (process.env["WEIGHTS"] !== undefined) console.log(waves);
    expect(waves.length).toBeGreaterThan(2);
    expect(waves.length, JSON.stringify(waves, null, 1)).toBeLessThanOrEqual(ROUND_TRIPS);
    await world.closePages();
  });

  test("needs after the password only the round trips for the sign-in, the page and its data", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const browser = await openBrowser();
    const { page } = await openDashboard(browser, { root });
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
    await browser.close();
  });
});

const receiver = browserFixture(() => Receiver.start());

/** The limits for everything that loads before the user can act, compressed. */
const SIGN_IN_BYTES = 160_000;

const PAGE_BYTES = 265_000;

const PAGE_FILES = 10;

/** The limit for all style sheets of a page, uncompressed. */
const STYLE_BYTES = 160_000;

/**
 * The limit of sequential round trips: the document, the entry, the chunks of the page, and its data. One
 * more allows for a slow machine, on which two requests of one wave come apart.
 */
const ROUND_TRIPS = 5;

let root: string;

beforeAll(async () => {
  if (chromium === undefined) return;

  const { page } = await world.open("/webhooks");
  root = new URL(page.url()).origin;
  await world.closePages();
});

/** Sums up the files of the dashboard that a page has loaded, in both encodings. */
async function weigh(page: Page) {
  const names: string[] = await page.evaluate(
    "performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)",
  );
  const own = [
    "/dashboard",
    ...new Set(names.filter((name) => name.startsWith("/dashboard/assets/"))),
  ];
  const sum = async (encoding: string, ending = "") => {
    const sizes = own.map(async (path) => {
      if (!path.endsWith(ending)) return 0;
      const headers = { "Accept-Encoding": encoding };
      const answer = await fetch(root + path, { headers, decompress: false } as RequestInit);
      return (await answer.arrayBuffer()).byteLength;
    });
    return (await Promise.all(sizes)).reduce((total, size) => total + size, 0);
  };
  return {
    files: own.length,
    brotli: await sum("br"),
    gzip: await sum("gzip"),
    styles: await sum("identity", ".css"),
  };
}
