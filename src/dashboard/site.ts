import { randomBytes } from "node:crypto";
import type { Server } from "bun";
import { Elysia } from "elysia";

import { IDLE_TIMEOUT_S } from "../http/edge.ts";
import { codingFor } from "../lib/encodings.ts";
import { Problem } from "../lib/problem.ts";
import { type Asset, type Built, builtDashboard } from "./assets.ts";
import { FRAMED_BY, NONCE } from "./vite.config.ts";

const PATH = "/dashboard";
/** Path prefix of portal pages. The key after the prefix identifies the portal. */
const PORTAL = "/embed";
const ASSETS = `${PATH}/assets/`;
const FOR_EVER = "public, max-age=31536000, immutable";

interface SiteOptions {
  readonly read?: () => Promise<Built>;
  /** Returns the origins whose pages may embed the portal with this key in a frame. */
  readonly framedBy: (key: string) => Promise<readonly string[]>;
}

/** The built dashboard: its HTML document, and the files that it loads, by their names. */
interface Site {
  readonly document: string;
  readonly assets: ReadonlyMap<string, Asset>;
}

/**
 * Serves the dashboard at `/dashboard` (to which `/` redirects) and the portal pages: one HTML document for all
 * paths, and the files that it loads. The files are read from disk at the first request, so that an API server
 * without dashboard users spends no memory on them.
 */
export function dashboardSite({ read = builtDashboard, framedBy }: SiteOptions) {
  let reading: Promise<Site> | undefined;
  // Reads the files once, also for concurrent requests. After a failure the next request reads them again.
  const ready = () =>
    (reading ??= read()
      .then(({ document, assets }) => ({
        document,
        assets: new Map(assets.map((one) => [one.name, one])),
      }))
      .catch((error: unknown) => {
        reading = undefined;
        throw error;
      }));
  // Switches off the idle timeout of the request, because the build may take longer than this timeout.
  const built = async ({ request, server }: Pick<Asked, "request" | "server">) => {
    server?.timeout(request, 0);
    try {
      return await ready();
    } finally {
      server?.timeout(request, IDLE_TIMEOUT_S);
    }
  };
  const respond = async ({ request, path, server }: Asked) => {
    const { document, assets } = await built({ request, server });
    if (!path.startsWith(ASSETS))
      return page(document, [], "frame-src 'self'; frame-ancestors 'none'");
    const asset = assets.get(path.slice(ASSETS.length));
    if (asset === undefined) throw new Problem("not_found");
    return file(asset, request);
  };
  const respondFramed = async ({ params, request, server }: Asked & FramedParams) => {
    const origins = await framedBy(params.key);
    const ancestors = isOwnFrame(request) ? ["'self'", ...origins] : origins;
    const frames = `frame-ancestors ${ancestors.join(" ") || "'none'"}`;
    return page((await built({ request, server })).document, origins, frames);
  };
  return new Elysia({ name: "dashboard", detail: { hide: true } })
    .get("/", () => new Response(null, { status: 302, headers: { Location: PATH } }))
    .get(PATH, respond)
    .get(`${PATH}/*`, respond)
    .get(`${PORTAL}/:key`, respondFramed)
    .get(`${PORTAL}/:key/*`, respondFramed);
}

/** The parts of Elysia's context that the handlers use. `server` is null in tests that open no socket. */
interface Asked {
  readonly request: Request;
  readonly path: string;
  readonly server: Server<unknown> | null;
}

interface FramedParams {
  readonly params: { readonly key: string };
}

/**
 * Returns whether a page of this origin loads the portal into a frame, as the preview on the dashboard's page
 * "Embedding" does.
 */
function isOwnFrame({ headers }: Request): boolean {
  return (
    headers.get("sec-fetch-site") === "same-origin" && headers.get("sec-fetch-dest") === "iframe"
  );
}

/**
 * Renders the HTML document. It must not be cached, because the address of an SSO callback contains a one-time code
 * and the nonce is valid for one response only. In a portal page, the document lists the origins that may frame it,
 * so that the page sends messages to no other origin. `frames` is the part of the content security policy about
 * frames.
 */
function page(document: string, origins: readonly string[], frames: string): Response {
  const nonce = randomBytes(16).toString("base64");
  const html = document.replaceAll(NONCE, nonce).replace(FRAMED_BY, origins.join(" "));
  return new Response(html, {
    headers: {
      ...HEADERS,
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": contentSecurityPolicy(nonce, frames),
      "Cache-Control": "no-store",
      "Cross-Origin-Opener-Policy": "same-origin",
    },
  });
}

/**
 * Builds the content security policy: scripts, styles and requests of this origin only, and logos from any
 * HTTPS host. The nonce allows the style elements that Mantine creates.
 */
function contentSecurityPolicy(nonce: string, frames: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: https:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    frames,
  ].join("; ");
}

function file(asset: Asset, request: Request): Response {
  const coding = codingFor(request.headers.get("Accept-Encoding"));
  return new Response(asset.encodings[coding], {
    headers: {
      ...HEADERS,
      "Content-Type": asset.contentType,
      "Cache-Control": FOR_EVER,
      Vary: "Accept-Encoding",
      ...(coding !== "identity" && { "Content-Encoding": coding }),
    },
  });
}

const HEADERS = {
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
};
