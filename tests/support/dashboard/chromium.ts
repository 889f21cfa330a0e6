import { chromium as driver, type Browser } from "playwright-core";

import { program } from "../needs.ts";

/** Starts the Chromium of the machine, or the one that the variable `CHROMIUM` names. */
export function openBrowser(): Promise<Browser> {
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
  return driver.launch({ executablePath: program("chromium"), args });
}
