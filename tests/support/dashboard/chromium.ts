import { existsSync } from "node:fs";

import { chromium as driver, type Browser } from "playwright-core";

/** The headless shell comes first, because a page costs it a third less CPU time than the browser. */
const PLACES = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/**
 * The path of Chromium: the variable `CHROMIUM`, else an installed one; undefined if there is none, and tests that
 * need it are skipped.
 */
export const chromium: string | undefined =
  process.env["CHROMIUM"] ?? PLACES.find((path) => existsSync(path));

export function openBrowser(): Promise<Browser> {
  if (chromium === undefined)
    throw new Error("There is no Chromium here: install one, or name it in CHROMIUM.");
  // Containers usually have no sandbox and little shared memory.
  const args = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    // A page of a test is too short for optimised code: without it, tests of pages take a tenth less CPU time.
    "--js-flags=--no-opt --no-maglev",
    // A second page finds the compiled scripts of the first in its process.
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
  ];
  return driver.launch({ executablePath: chromium, args });
}
