// The development server of the dashboard, which `bun run dev` starts (scripts/dev.ts). It listens at the public
// address, serves the pages with hot module replacement, and forwards all other requests to the API.
import { join } from "node:path";

import react from "@vitejs/plugin-react";
import { createServer, type Plugin } from "vite";

import { ROOT } from "../install/install.ts";
import { config, FRAMED_BY, NONCE } from "../../src/dashboard/vite.config.ts";

/** Pause in ms during which further saved changes are collected, so that they cause one restart. */
const SETTLE_MS = 50;

export async function startDevServer({
  host,
  port,
  api,
  changed,
}: {
  readonly host: string;
  readonly port: number;
  readonly api: string;
  /** Called when a source file of the API or of the dispatcher has changed. */
  readonly changed: () => void;
}): Promise<{ close(): Promise<void> }> {
  const server = await createServer({
    ...config,
    plugins: [react(), documents],
    server: {
      host,
      port,
      strictPort: true,
      fs: { allow: [ROOT] },
      proxy: { "^/(?!dashboard(?:[/?]|$)|embed/)": { target: api, xfwd: true } },
    },
  });
  await server.listen();
  const sources = ["src", "dispatcher", "db"].map((name) => join(ROOT, name));
  const pages = join(ROOT, "src/dashboard/app");
  let waiting: Timer | undefined;
  server.watcher.add(sources).on("all", (event, path) => {
    const isSource = sources.some((folder) => path.startsWith(folder)) && !path.startsWith(pages);
    if (!isSource || event !== "change") return;
    clearTimeout(waiting);
    waiting = setTimeout(changed, SETTLE_MS);
  });
  return server;
}

/**
 * Serves `/dashboard` and the portal's pages (`/embed/:key/…`) with the document of the dashboard, and fills its
 * placeholders. The URL in the browser does not change.
 */
const documents: Plugin = {
  name: "documents",
  configureServer({ middlewares }) {
    middlewares.use((request, _, next) => {
      if (/^\/(?:embed\/|dashboard(?:\?|$))/.test(request.url ?? "")) request.url = "/dashboard/";
      next();
    });
  },
  transformIndexHtml: {
    order: "post",
    handler: (html) => html.replaceAll(NONCE, "development").replace(FRAMED_BY, ""),
  },
};
