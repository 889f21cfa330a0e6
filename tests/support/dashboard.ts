import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { AxeResults } from "axe-core";
import type { Browser, Frame, Page } from "playwright-core";

import { NEVER_SET } from "../../src/dashboard/styles.ts";
import { PASSWORD, startApi } from "./api.ts";

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
}

const EVERY_LOOK = [
  { width: 1280, colorScheme: "light" },
  { width: 390, colorScheme: "dark" },
  { width: 1280, colorScheme: "dark" },
  { width: 390, colorScheme: "light" },
] as const;
/** In which pages are looked at: each width and each colour scheme, and with `LOOKS=all` each with each. */
export const LOOKS = process.env["LOOKS"] === "all" ? EVERY_LOOK : EVERY_LOOK.slice(0, 2);

/** A page of its own at `{server_root}/dashboard{path}`; what the browser complains about ends up in `faults`. */
export async function openDashboard(
  browser: Browser,
  {
    root,
    path = "",
    width = 1280,
    colorScheme = "light",
    locale = "en-US",
  }: Look & { root: string; path?: string },
): Promise<{ page: Page; faults: readonly string[] }> {
  const viewport = { width, height: 900 };
  // What is on its way in is too faint to read for a moment.
  const page = await browser.newPage({ viewport, colorScheme, locale, reducedMotion: "reduce" });
  // Sooner than the test's own end, so that what was waited for is named.
  page.setDefaultTimeout(60_000);
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    // An answer of 4xx is part of many flows, and Chromium reports each.
    if (message.type() === "error" && !message.text().includes("status of 4"))
      faults.push(message.text());
  });
  await page.goto(`${root}/dashboard${path}`);
  return { page, faults };
}

/** Signs in with email and password; ready when the page is that of somebody (phones fold the navigation away). */
export async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.getByLabel("Email").fill(email);
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.getByRole("textbox", { name: "Password" }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("button", { name: "Account of" }).waitFor();
}

/** The faults that axe-core calls serious or critical, as `rule: element`. */
export async function seriousFaults(page: Page): Promise<string[]> {
  return faultsOf(page, ({ impact }) => impact === "serious" || impact === "critical");
}

/** All that axe-core finds, however small. */
export async function allFaults(page: Page | Frame): Promise<string[]> {
  return faultsOf(page, () => true);
}

async function faultsOf(
  page: Page | Frame,
  isMeant: (one: AxeResults["violations"][number]) => boolean,
): Promise<string[]> {
  await page.evaluate(AXE);
  const results: AxeResults = await page.evaluate("axe.run()");
  const unstyled: string[] = await page.evaluate(UNSTYLED);
  const faults = results.violations
    .filter(isMeant)
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));
  return [...faults, ...unstyled.map((html) => `left out of the styles: ${html.slice(0, 160)}`)];
}
