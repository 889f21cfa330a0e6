import { createHash } from "node:crypto";

import { Elysia, type DocumentDecoration } from "elysia";

import { codingFor, encode, type Encodings } from "../lib/encodings.ts";

/** A public page or file at `{server_root}` (contract 2.12). */
export interface ServedFile {
  readonly path: string;
  readonly contentType: string;
  /** Made when it is first asked for. */
  readonly body: () => string | Uint8Array<ArrayBuffer> | Promise<string | Uint8Array<ArrayBuffer>>;
  /** Of the description, which leaves out what has none. */
  readonly detail?: DocumentDecoration;
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

interface Ready {
  readonly encodings: Encodings;
  readonly etag: string;
}

/** Serves files that never change while the process runs: each is made and packed once. */
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

function prepare(body: string | Uint8Array<ArrayBuffer>): Ready {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const digest = createHash("sha256").update(bytes).digest("base64url").slice(0, 22);
  // Weak, because it is the same in every coding (RFC 9110, 8.8.3.3).
  return { encodings: encode(bytes), etag: `W/"${digest}"` };
}

function answer({ encodings, etag }: Ready, contentType: string, asked: Headers): Response {
  const headers = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": `public, max-age=${MAX_AGE_S}`,
    "Referrer-Policy": "no-referrer",
    ETag: etag,
    Vary: "Accept-Encoding",
  };
  const known = asked.get("If-None-Match")?.split(",") ?? [];
  if (known.some((one) => one.trim() === etag || one.trim() === "*"))
    return new Response(null, { status: 304, headers });
  const coding = codingFor(asked.get("Accept-Encoding"));
  return new Response(encodings[coding], {
    headers: {
      ...headers,
      "Content-Type": contentType,
      ...(coding !== "identity" && { "Content-Encoding": coding }),
    },
  });
}

/** Those who come meanwhile wait for the same; after a failure the next one tries again. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let making: Promise<T> | undefined;
  return () =>
    (making ??= make().catch((error: unknown) => {
      making = undefined;
      throw error;
    }));
}
