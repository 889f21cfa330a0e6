import { Elysia } from "elysia";

/** A public page or file at `{server_root}` (contract 2.12). */
export interface ServedFile {
  readonly path: string;
  readonly contentType: string;
  /** Made when it is first asked for. */
  readonly body: () => string | Uint8Array<ArrayBuffer>;
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

/** Serves files that never change while the process runs. */
export function servedFiles(files: readonly ServedFile[]) {
  const app = new Elysia();
  for (const { path, contentType, body } of files)
    app.get(
      path,
      ({ set }) => {
        set.headers["content-type"] = contentType;
        set.headers["content-security-policy"] = CONTENT_SECURITY_POLICY;
        set.headers["cache-control"] = `public, max-age=${MAX_AGE_S}`;
        set.headers["referrer-policy"] = "no-referrer";
        return body();
      },
      { detail: { hide: true } },
    );
  return app;
}
