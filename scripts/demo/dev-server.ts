// The development server of the dashboard: `bun run dev` starts it (scripts/dev.ts). It listens at the public address,
// serves the pages with hot module replacement, and passes all other requests on to the API.
import react from "@vitejs/plugin-react";
import { createServer, type Plugin } from "vite";

import { ROOT } from "../install/install.ts";
import { config, FRAMED_BY, NONCE } from "../../src/dashboard/vite.config.ts";

export async function startDevServer({
  host,
  port,
  api,
}: {
  readonly host: string;
  readonly port: number;
  readonly api: string;
}): Promise<{ close(): Promise<void> }> {
  const server = await createServer({
    ...config,
    plugins: [react(), pages],
    server: {
      host,
      port,
      strictPort: true,
      fs: { allow: [ROOT] },
      proxy: { "^/(?!dashboard(?:[/?]|$)|embed/)": { target: api, xfwd: true } },
    },
  });
  await server.listen();
  return server;
}

/**
 * Serves `/dashboard` and the portal's pages (`/embed/:key/…`) with the document of the dashboard, and fills its
 * placeholders. In a browser the address stays as it was.
 */
const pages: Plugin = {
  name: "pages",
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
