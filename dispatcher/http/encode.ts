import type { WebhookTarget } from "../../src/lib/egress.ts";
import { remember } from "../../src/lib/batches.ts";

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;
/** Headers that only this file writes: a second copy from outside would make two readings of one request. */
const OURS = /^(?:host|content-length|transfer-encoding|connection)$/i;

/** It remembers its verdicts, because the names are few and always the same. */
const isName = remember((name: string) => TOKEN.test(name) && !OURS.test(name), 100);

/**
 * Puts head and body into one piece, for a single write. Text stays text, since the socket encodes it cheaper than we
 * could make a buffer of it. Throws for headers that are wrong, because those are a bug of ours.
 */
export function encodeRequest(
  target: WebhookTarget,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array,
): string | Buffer {
  const bytes = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  let head = `POST ${target.path} HTTP/1.1\r\nHost: ${target.authority}\r\n`;
  for (const name in headers) {
    const value = headers[name] ?? "";
    if (!isName(name) || !VALUE.test(value))
      throw new TypeError(`request header ${JSON.stringify(name)} cannot be sent`);
    head += `${name}: ${value}\r\n`;
  }
  head += `Content-Length: ${bytes}\r\n\r\n`;
  if (typeof body === "string") return head + body;
  return Buffer.concat([Buffer.from(head), body]);
}
