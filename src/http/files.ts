import type { Call } from "./call.ts";

/** A public page or file at `{server_root}` (decisions.md 1, root pages). */
export interface Page {
  readonly path: string;
  readonly contentType: string;
  /** Made when it is first asked for. */
  readonly body: () => string | Uint8Array<ArrayBuffer>;
}

/** Pages that answer every path at and below theirs, in a way of their own. */
export interface Site {
  readonly path: string;
  readonly respond: (request: Request, call: Call) => Promise<Response>;
}

/** Only what the server itself has: no inline script or style, no other host, in nobody's frame. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const MAX_AGE_S = 300;

export function renderPage(page: Page, call: Call): Response {
  return new Response(page.body(), {
    headers: {
      "Content-Type": page.contentType,
      "Content-Security-Policy": CONTENT_SECURITY_POLICY,
      "Cache-Control": `public, max-age=${MAX_AGE_S}`,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
      "X-Request-Id": call.requestId,
    },
  });
}
