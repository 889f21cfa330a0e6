import { createHash } from "node:crypto";

import { Elysia, type DocumentDecoration } from "elysia";

import { codingFor, encode, type Encodings } from "../lib/encodings.ts";

/** A public page or file at `{server_root}` (contract 2.12). */
export interface ServedFile {
  readonly path: string;
  readonly contentType: string;
  /** Produces the content at the first request for the file. */
  readonly body: () => string | Uint8Array<ArrayBuffer> | Promise<string | Uint8Array<ArrayBuffer>>;
  /** The entry in the OpenAPI description; without an entry the file is not described. */
  readonly detail?: DocumentDecoration;
}

/** Content security policy of pages: only resources of this server, no inline scripts or styles, and no frames. */
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

interface PreparedFile {
  readonly encodings: Encodings;
  readonly etag: string;
}

/** Serves files that do not change while the process runs. Each file is produced and compressed only once. */
export function servedFiles(files: readonly ServedFile[]) {
  const app = new Elysia();
  for (const { path, contentType, body, detail = { hide: true } } of files) {
    const ready = once(async () => prepare(await body()));
    app.get(path, async ({ request }) => answer(await ready(), contentType, request.headers), {
      detail,
    });
  }
  return app;
}

function prepare(body: string | Uint8Array<ArrayBuffer>): PreparedFile {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  return { encodings: encode(bytes), etag: etagOf(bytes) };
}

/** Returns the ETag of a content. It is weak, because it is equal for all content codings (RFC 9110, 8.8.3.3). */
export function etagOf(content: string | Uint8Array): string {
  return `W/"${createHash("sha256").update(content).digest("base64url").slice(0, 22)}"`;
}

/** Returns whether the client already has the content with this ETag, so that it gets a 304. */
export function isKnown(etag: string, requestHeaders: Headers): boolean {
  const known = requestHeaders.get("If-None-Match")?.split(",") ?? [];
  return known.some((one) => one.trim() === etag || one.trim() === "*");
}

function answer(
  { encodings, etag }: PreparedFile,
  contentType: string,
  requestHeaders: Headers,
): Response {
  const headers = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": `public, max-age=${MAX_AGE_S}`,
    "Referrer-Policy": "no-referrer",
    ETag: etag,
    Vary: "Accept-Encoding",
  };
  if (isKnown(etag, requestHeaders)) return new Response(null, { status: 304, headers });
  const coding = codingFor(requestHeaders.get("Accept-Encoding"));
  return new Response(encodings[coding], {
    headers: {
      ...headers,
      "Content-Type": contentType,
      ...(coding !== "identity" && { "Content-Encoding": coding }),
    },
  });
}

/**
 * Caches the result of an asynchronous function. Concurrent calls share one promise; after a failure the next call
 * tries again.
 */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let making: Promise<T> | undefined;
  return () =>
    (making ??= make().catch((error: unknown) => {
      making = undefined;
      throw error;
    }));
}
