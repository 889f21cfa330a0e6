import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { AxeResults } from "axe-core";
import type { Browser, Frame, Page } from "playwright-core";

import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { builtDashboard } from "../../../src/dashboard/assets.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { PASSWORD, startApi } from "../api.ts";
import { until } from "../network/receiver.ts";
import { isThorough } from "../thorough.ts";
import { openPage } from "./browser.ts";

const HEIGHT = 900;
const FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
/** Waits for animations that end, which those of a button that waits do not. Chromium loses some `finished` promises. */
const SETTLED = `(async () => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const isEnding = (one) => one.playState === "running" && one.effect.getComputedTiming().endTime < Infinity;
  do await frame();
  while (document.getAnimations().some(isEnding));
})()`;
const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

interface ServedOptions {
  /** Host of the address: `localhost` for passkeys, which browsers do not bind to an IP address. */
  readonly host?: "127.0.0.1" | "localhost";
}

/** Starts the API with its own address as `serverRoot`, because links in mails and single sign-on contain it. */
export async function serveDashboard({
  host = "127.0.0.1",
  ...options
}: Parameters<typeof startApi>[0] & ServedOptions) {
  // The server closes a connection that waits longer than 30 seconds, and on a busy machine a build takes longer.
  await builtDashboard();
  const port = await freePort();
  const root = `http://${host}:${port}`;
  const api = await startApi({ ...options, config: { ...options.config, serverRoot: root } });
  api.listen(port);
  return { api, root };
}

export interface Look {
  readonly width?: number;
  readonly colorScheme?: "light" | "dark";
  /** The language of the browser, `en-US` by default. */
  readonly locale?: string;
  /** Whether the browser has an empty cache, as at the first visit. */
  readonly isFirst?: boolean;
}

/** 640 is what is left of 1,280 pixels at a zoom of 200 % (WCAG 2.2, 1.4.4). */
const WIDTHS = [390, 640, 768, 1280, 1440, 1920];
const EVERY_LOOK = WIDTHS.flatMap((width) => [
  { width, colorScheme: "light" as const },
  { width, colorScheme: "dark" as const },
]);
/** The looks in which pages are checked: two, which have each colour scheme and both layouts, or if thorough every one. */
export const LOOKS = isThorough
  ? EVERY_LOOK
  : EVERY_LOOK.filter(({ width, colorScheme }) => width === (colorScheme === "dark" ? 390 : 1280));

interface Visit extends Look {
  readonly root: string;
  readonly path?: string;
}

export interface Opened {
  readonly page: Page;
  /** Uncaught exceptions and console errors of the page, except failed requests with a 4xx status. */
  readonly faults: readonly string[];
}

/** Opens a page at `{server_root}/dashboard{path}` without a session. */
export async function openDashboard(browser: Browser, visit: Visit): Promise<Opened> {
  return open(browser, visit, null);
}

/**
 * Opens a page of a user that signed in before and stays signed in across reloads. The session comes from the API instead
 * of the sign-in form, which has its own tests and takes as long as a short test.
 */
export async function openSignedIn(
  browser: Browser,
  { email, password = PASSWORD, ...visit }: Visit & { email: string; password?: string },
): Promise<Opened> {
  const response = await fetch(`${visit.root}${BASE_PATH}/login`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email, password, rememberMe: true }),
  });
  const session = await response.text();
  if (!response.ok) throw new Error(`The sign-in of ${email} was answered ${session}`);
  const opened = await open(browser, visit, session);
  await isSignedIn(opened.page);
  return opened;
}

async function open(browser: Browser, visit: Visit, session: string | null): Promise<Opened> {
  const { root, path = "", width = 1280, colorScheme = "light", locale = "en-US" } = visit;
  const page = await openPage(browser, { locale, isFirst: visit.isFirst ?? false });
  await page.setViewportSize({ width, height: HEIGHT });
  await page.emulateMedia({ colorScheme });
  // Shorter than the limit of a test, so that the error names the awaited element.
  page.setDefaultTimeout(60_000);
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    // Chromium reports every 4xx response as an error, but many flows expect one.
    if (message.type() === "error" && !message.text().includes("status of 4"))
      faults.push(message.text());
  });
  const beginning = await page.addInitScript(begin, session);
  await page.goto(`${root}/dashboard${path}`);
  await beginning.dispose();
  return { page, faults };
}

/** Prepares the storage of a page before its scripts run: empty, except for the session that the dashboard restores. */
function begin(session: string | null): void {
  localStorage.clear();
  if (session !== null) sessionStorage.setItem("reviewrelay.session", session);
}

/** Signs in with email and password, and waits for the account button, which also narrow screens show. */
export async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  const next = page.getByRole("button", { name: "Continue", exact: true });
  // The previous page may have an email field too, and may still be shown for a moment.
  await next.waitFor();
  await page.getByLabel("Email").fill(email);
  await next.click();
  await page.getByRole("textbox", { name: "Password" }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await isSignedIn(page);
}

const isSignedIn = (page: Page) => page.getByRole("button", { name: "Account of" }).waitFor();

/** Rules of axe-core that depend on colours. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

const isSerious = ({ impact }: Violation) => impact === "serious" || impact === "critical";

/** Lists the violations that axe-core rates serious or critical, as `rule: element`. */
export async function seriousFaults(page: Page): Promise<string[]> {
  return inWords((await violations(page)).filter(isSerious));
}

/** Lists the same in dark and in light, which the page has afterwards. */
export async function seriousFaultsInSchemes(page: Page): Promise<string[]> {
  await inScheme(page, "dark");
  const faults = (await seriousFaults(page)).map((fault) => `dark: ${fault}`);
  await inScheme(page, "light");
  const others = inWords((await violations(page, COLOUR_RULES)).filter(isSerious));
  return [...faults, ...others.map((fault) => `light: ${fault}`)];
}

async function inScheme(page: Page, colorScheme: "light" | "dark"): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor();
}

/** Lists all violations that axe-core finds, also minor ones. */
export async function allErrors(page: Page | Frame): Promise<string[]> {
  return inWords(await violations(page));
}

type Violation = AxeResults["violations"][number];

/** Runs axe-core on a page, with all of its rules or with some. */
async function violations(page: Page | Frame, rules?: readonly string[]): Promise<Violation[]> {
  if (!(await page.evaluate(`"axe" in window`))) await page.evaluate(AXE);
  // The first option omits descriptions of passing elements, which would double the time. Frames are checked on their
  // own: axe-core would send them messages, which a frame of another origin does not accept.
  const options = { resultTypes: ["violations"], iframes: false, ...(rules && { runOnly: rules }) };
  return page.evaluate(`axe.run(${JSON.stringify(options)}).then(({ violations }) => violations)`);
}

const inWords = (found: readonly Violation[]) =>
  found.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));

/**
 * Fails if axe-core finds anything in a state of the page, or if the page is wider than its window or moves, in any
 * look. With `SCREENSHOTS=<folder>` it saves pictures.
 */
export async function checkLooks(page: Page, state: string): Promise<void> {
  const folder = process.env["SCREENSHOTS"];
  for (const { width, colorScheme } of LOOKS) {
    await page.setViewportSize({ width, height: HEIGHT });
    await inScheme(page, colorScheme);
    const errors = [
      ...((await fits(page)) ? [] : ["runs wide"]),
      ...((await rests(page)) ? [] : ["moves, although the browser asks for less motion"]),
      ...(await allErrors(page)),
    ];
    const name = `${state} ${width} ${colorScheme}`;
    if (folder !== undefined)
      await page.screenshot({ path: `${folder}/${fileNameOf(name)}.png`, fullPage: true });
    if (errors.length > 0) throw new Error(`${name}: ${errors.join("; ")}`);
  }
  await page.setViewportSize({ width: 1280, height: HEIGHT });
  await page.emulateMedia({ colorScheme: "light" });
}

const fileNameOf = (state: string) => state.replaceAll(/[^a-z0-9]+/gi, "-").toLowerCase();

/** Tells whether nothing moves without an end. */
const rests = (page: Page) =>
  page.evaluate<boolean>(
    `document.getAnimations().every(({ effect }) => effect.getComputedTiming().endTime < Infinity)`,
  );

/** Waits until animations end, and tells whether the page fits into its window; charts take a moment to follow it. */
export async function fits(page: Page | Frame): Promise<boolean> {
  await page.evaluate(SETTLED);
  try {
    await until("the page fits", async () => Boolean(await page.evaluate(FITS)), 3_000);
    return true;
  } catch {
    return false;
  }
}

/** Delays all requests of the page to an address (a glob) until the returned function is called. */
export async function held(page: Page, address: string): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  await page.route(address, async (route) => {
    await promise;
    await route.continue();
  });
  return resolve;
}
