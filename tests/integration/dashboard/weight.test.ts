import { beforeAll, describe, expect, test } from "bun:test";

import type { Page, Route } from "playwright-core";

import { PASSWORD } from "../../support/api.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import { openDashboard, signIn } from "../../support/dashboard/dashboard.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { reviewIdOf } from "../../support/factory.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

// The bytes and round trips that a page needs until it is usable.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("the weight", () => {
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

  test("of the styles is below 160 kB on every page of every role, and each opens by a link", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url, label: "Test" });
    await world.emit(1);
    // The receiver gets the request before the attempt is recorded.
    let records: { event_id: string }[] = [];
    await until("a record", async () => {
      const { body } = await world.ask("GET", `/${id}/deliveries`);
      records = body["data"] as typeof records;
      return records.length > 0;
    });
    const [{ event_id: event }] = records as [{ event_id: string }];
    const [partner] = world.tenants.partners;
    const review = await reviewIdOf(world.database.db, "review-1");
    const people: Readonly<Record<string, readonly [path: string, title: string | RegExp][]>> = {
      [partner.owner.email]: [
        ["/webhooks", "Webhooks"],
        [`/webhooks/${id}`, "Test"],
        [`/webhooks/${id}?tab=deliveries&state=failed`, "Test"],
        [`/webhooks/${id}?tab=settings`, "Test"],
        [`/webhooks/${id}/deliveries/${event}`, "review_received"],
        ["/webhooks/new?kind=batch", "New subscription"],
        ["/webhooks/alerts", /Alerts/],
        ["/events", "Event catalog"],
        ["/events/review_received", "review_received"],
        ["/accounts?name=a1", "Accounts"],
        ["/team", "Team"],
        ["/access", "Team access"],
        ["/embedding", "Embedding"],
        ["/audit?action=AUTH_LOGIN", "Audit log"],
        ["/keys", "API Keys"],
        ["/security", "Security"],
      ],
      [partner.accounts[0].owner.email]: [
        ["/reviews?rate=4", "Reviews"],
        [`/reviews/${review}`, /^Review by/],
        ["/sites", "Review sites"],
      ],
      [world.tenants.superAdmin.email]: [
        ["/dispatcher?order=age", "Dispatcher"],
        ["/companies?tab=accounts", "Companies"],
        [`/companies/${partner.id}/webhooks/${id}?tab=deliveries`, "Test"],
        ["/users?q=owner%40p1.test", "Users"],
        ["/connections", "Connections"],
        ["/audit?company=1", "Audit log"],
      ],
    };
    const styles: Record<string, number> = {};
    for (const [email, pages] of Object.entries(people)) {
      const { page, faults } = await world.open("/security", { email });
      for (const [path, title] of pages) {
        await page.goto(`${root}/dashboard${path}`);
        await page.getByRole("heading", { name: title, level: 1 }).waitFor();
        const loaders = page.locator(".mantine-Loader-root");
        await until("all parts", async () => (await loaders.count()) === 0);
        const { pathname, search } = new URL(page.url());
        expect(pathname + search).toBe(`/dashboard${path}`);
        expect([path, faults]).toEqual([path, []]);
        styles[path] = (await weigh(page)).styles;
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

describe.skipIf(lacks("chromium"))("the loading of a partner's first page", () => {
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
  if (!isPresent("chromium")) return;

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
    const sizes = own.map(async (path) => (path.endsWith(ending) ? sizeOf(path, encoding) : 0));
    return (await Promise.all(sizes)).reduce((total, size) => total + size, 0);
  };
  return {
    files: own.length,
    brotli: await sum("br"),
    gzip: await sum("gzip"),
    styles: await sum("identity", ".css"),
  };
}

const sizes = new Map<string, number>();

/** Reads the size of a file once, because the pages share most files. */
async function sizeOf(path: string, encoding: string): Promise<number> {
  const name = `${encoding} ${path}`;
  const known = sizes.get(name);
  if (known !== undefined) return known;
  const headers = { "Accept-Encoding": encoding };
  const answer = await fetch(root + path, { headers, decompress: false } as RequestInit);
  const { byteLength } = await answer.arrayBuffer();
  sizes.set(name, byteLength);
  return byteLength;
}
