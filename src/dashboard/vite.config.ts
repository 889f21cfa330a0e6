import { join } from "node:path";

import type { InlineConfig } from "vite";

/** Placeholders in the built document: for the nonce of a response, and for the origins that may frame the page. */
export const NONCE = "{{nonce}}";
export const FRAMED_BY = "{{framed-by}}";

/**
 * Modules that are rarely needed, or not needed initially: the forms of a subscription, the sample events and
 * the charts. They are left out of the shared chunks.
 */
const RARELY_NEEDED =
  /NumberInput|number-format|Pill|use-pills|event-examples|verify|app\/factors|uqr|webhooks\/form|uplot|ui\/chart|stats\/stats-series|stats\/.*-chart/;
const OF_PAGES = /app\/pages\//;
const OF_WEBHOOKS = /app\/pages\/webhooks\//;

/** Defines a chunk of all matching modules that at least two pages import. */
function shared(name: string, isOf: (id: string) => boolean) {
  return { name, minShareCount: 2, test: (id: string) => isOf(id) && !RARELY_NEEDED.test(id) };
}

/** The configuration of the dashboard for the production build and for the development server. */
export const config: InlineConfig = {
  configFile: false,
  root: join(import.meta.dirname, "app"),
  base: "/dashboard/",
  logLevel: "warn",
  html: { cspNonce: NONCE },
  build: {
    target: "esnext",
    // Writes no files, because build.ts writes the output into one file.
    write: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rolldownOptions: {
      // Hides the warnings of Rolldown, which complains about the "use client" directive in each file of the
      // libraries.
      logLevel: "silent",
      output: {
        // Groups modules that pages share: `start` for the first load, `common` for all signed-in users, and one
        // group per area. With automatic splitting, each set of pages that share a module would get a chunk, up to
        // forty chunks for one page.
        codeSplitting: {
          groups: [
            { name: "start", tags: ["$initial"], priority: 1 },
            shared("common", (id) => !OF_PAGES.test(id)),
            shared("webhooks", (id) => OF_WEBHOOKS.test(id)),
            shared("people", (id) => OF_PAGES.test(id)),
          ],
        },
      },
    },
  },
};
