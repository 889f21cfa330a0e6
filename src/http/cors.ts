import { Elysia } from "elysia";

import { BASE_PATH } from "./base-path.ts";
import { pathOf } from "./parameters.ts";

interface CorsOptions {
  /** Paths that any origin may use, so that an app in a browser can redeem its code. */
  readonly open: ReadonlySet<string>;
  /** Origins that may use the API besides. */
  readonly origins: readonly string[];
}

const PREFLIGHT = {
  "access-control-allow-methods": "GET, POST, PATCH, DELETE",
  "access-control-allow-headers": "Authorization, Content-Type, X-Request-Id",
  // In seconds; browsers take less of it.
  "access-control-max-age": "7200",
};
const EXPOSED = "X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset";

/** Contract 2.11, without credentials. What is not named here gets no header, which browsers take for a no. */
export function cors({ open, origins }: CorsOptions) {
  const allowed = new Set(origins);
  const allowedFor = (origin: string, path: string): string | undefined => {
    if (open.has(path)) return "*";
    return allowed.has(origin) && path.startsWith(`${BASE_PATH}/`) ? origin : undefined;
  };
  return new Elysia({ name: "cors" }).onRequest(({ request, set }) => {
    const origin = request.headers.get("origin");
    if (origin === null) return;
    const allow = allowedFor(origin, pathOf(request));
    if (allow === undefined) return;
    set.headers["access-control-allow-origin"] = allow;
    set.headers["access-control-expose-headers"] = EXPOSED;
    if (allow !== "*") set.headers["vary"] = "Origin";
    const isPreflight =
      request.method === "OPTIONS" && request.headers.has("access-control-request-method");
    if (!isPreflight) return;
    Object.assign(set.headers, PREFLIGHT);
    return new Response(null, { status: 204 });
  });
}
