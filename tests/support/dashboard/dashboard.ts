import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { AxeResults } from "axe-core";
import type { Browser, Frame, Page } from "playwright-core";

import { NEVER_SET } from "../../../src/dashboard/styles.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { PASSWORD, startApi } from "../api.ts";
import { openPage } from "./browser.ts";

const HEIGHT = 900;
const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** The elements whose styles the build leaves out, in the belief that there are none. */
const UNSTYLED = `[...document.querySelectorAll(${JSON.stringify(NEVER_SET.map((one) => `[${one}]`).join())})].map((one) => one.outerHTML)`;

/** The API at an address that it knows itself, as links and single sign-on need it. */
export async function serveDashboard(options: Parameters<typeof startApi>[0]) {
  const probe = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = probe;
  await probe.stop(true);
  const root = `http://127.0.0.1:${port}`;
  const api = await startApi({ ...options, config: { ...options.config, serverRoot: root } });
  api.listen(port);
  return { api, root };
}

export interface Look {
  readonly width?: number;
  readonly colorScheme?: "light" | "dark";
  /** The language of the browser. */
  readonly locale?: string;
  /** In a browser that has no file of the dashboard yet. */
  readonly isFirst?: boolean;
}

const EVERY_LOOK = [
  { width: 1280, colorScheme: "light" },
  { width: 390, colorScheme: "dark" },
  { width: 1280, colorScheme: "dark" },
  { width: 390, colorScheme: "light" },
] as const;
/** In which pages are looked at: each width and each colour scheme, and with `LOOKS=all` each with each. */
export const LOOKS = process.env["LOOKS"] === "all" ? EVERY_LOOK : EVERY_LOOK.slice(0, 2);

interface Visit extends Look {
  readonly root: string;
  readonly path?: string;
}

interface Opened {
  readonly page: Page;
  /** What the browser complains about. */
  readonly faults: readonly string[];
}

/** A page of its own at `{server_root}/dashboard{path}`, of nobody. */
export async function openDashboard(browser: Browser, visit: Visit): Promise<Opened> {
  return open(browser, visit, null);
}

/**
 * The same, of somebody who signed in before and stays signed in over reloads. The form is not asked: it has tests of
 * its own, and takes as long as a short test.
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
  // Sooner than the test's own end, so that what was waited for is named.
  page.setDefaultTimeout(60_000);
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    // An answer of 4xx is part of many flows, and Chromium reports each.
    if (message.type() === "error" && !message.text().includes("status of 4"))
      faults.push(message.text());
  });
  const beginning = await page.addInitScript(begin, session);
  await page.goto(`${root}/dashboard${path}`);
  await beginning.dispose();
  return { page, faults };
}

/** Runs in the page, before its own scripts: as where the dashboard is kept signed in, and nobody was before. */
function begin(session: string | null): void {
  localStorage.clear();
  if (session !== null) sessionStorage.setItem("reviewrelay.session", session);
}

/** Signs in with email and password; ready when the page is that of somebody (phones fold the navigation away). */
export async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  const next = page.getByRole("button", { name: "Continue", exact: true });
  // The page before may have a field for emails, too, and still be there for a moment.
  await next.waitFor();
  await page.getByLabel("Email").fill(email);
  await next.click();
  await page.getByRole("textbox", { name: "Password" }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await isSignedIn(page);
}

const isSignedIn = (page: Page) => page.getByRole("button", { name: "Account of" }).waitFor();

/** The faults that axe-core calls serious or critical, as `rule: element`. */
export async function seriousFaults(page: Page): Promise<string[]> {
  return toFieldErrors(page, ({ impact }) => impact === "serious" || impact === "critical");
}

/** All that axe-core finds, however small. */
export async function allErrors(page: Page | Frame): Promise<string[]> {
  return toFieldErrors(page, () => true);
}

async function toFieldErrors(
  page: Page | Frame,
  isMeant: (one: AxeResults["violations"][number]) => boolean,
): Promise<string[]> {
  const unstyled: string[] = await page.evaluate(UNSTYLED);
  if (!(await page.evaluate(`"axe" in window`))) await page.evaluate(AXE);
  // Without the option each element that passes is described, too, which takes as long again.
  const violations: AxeResults["violations"] = await page.evaluate(
    `axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations)`,
  );
  const faults = violations
    .filter(isMeant)
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));
  return [...faults, ...unstyled.map((html) => `left out of the styles: ${html.slice(0, 160)}`)];
}

/** Keeps what the page asks for at this address (a glob) unanswered until the function that is answered is called. */
export async function held(page: Page, address: string): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  await page.route(address, async (route) => {
    await promise;
    await route.continue();
  });
  return resolve;
}
