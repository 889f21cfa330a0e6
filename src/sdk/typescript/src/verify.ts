import { createHmac, timingSafeEqual } from "node:crypto";

import type { Event, MinimalEvent } from "./api.ts";

/** The headers of a request, in the form of `fetch` or of `node:http`. */
export type HeaderSource =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifySettings {
  /** Maximum difference in seconds between the time of a delivery and this clock; 300 by default. */
  readonly toleranceS?: number;
  /** The current time in ms since 1970, for tests. */
  readonly now?: number;
}

/** A delivery has no valid signature or is too old. Respond with status 401. */
export class SignatureError extends Error {
  override readonly name = "SignatureError";
}

/**
 * Verifies a delivery with a full body and returns its event. `body` is the raw body as received. `secrets` are the
 * current secrets of the subscription; there are two during a rotation. Throws a `SignatureError` if no secret matches,
 * or if the delivery is older than the tolerance.
 */
export function verify(
  body: Uint8Array | string,
  headers: HeaderSource,
  secrets: string | readonly string[],
  settings: VerifySettings = {},
): Event {
  const event: Event = JSON.parse(checkedBody(body, headers, secrets, settings));
  if (!("delivered_at" in event))
    throw new SignatureError("The body has no time: it is that of verifyMinimal.");
  checkTime(Date.parse(event.delivered_at), settings);
  return event;
}

/**
 * Verifies a delivery to a subscription whose `payload_mode` is `minimal`. Its body contains no time, so the age of a
 * delivery is checked only if the subscription has `standard_webhooks`.
 */
export function verifyMinimal(
  body: Uint8Array | string,
  headers: HeaderSource,
  secrets: string | readonly string[],
  settings: VerifySettings = {},
): MinimalEvent {
  return JSON.parse(checkedBody(body, headers, secrets, settings));
}

/**
 * Verifies the signature and, if the headers of Standard Webhooks are present, the time. Returns the body as text. The
 * package exports `verify` instead.
 */
export function checkedBody(
  body: Uint8Array | string,
  headers: HeaderSource,
  secrets: string | readonly string[],
  settings: VerifySettings,
): string {
  const keys = (typeof secrets === "string" ? [secrets] : secrets).map(keyOf);
  const plain = keys.filter(({ isStandard }) => !isStandard);
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const id = headerOf(headers, "webhook-id");
  const timestamp = headerOf(headers, "webhook-timestamp");
  const signatures = headerOf(headers, "webhook-signature");
  if (id !== "" && timestamp !== "" && signatures !== "") {
    const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), bytes]);
    const expected = keys.map(({ key }) => `v1,${hmac(key, signed).toString("base64")}`);
    requireMatch(signatures.split(" "), expected);
    checkTime(Number(timestamp) * 1_000, settings);
  } else {
    const given = ["x-svc-signature", "x-svc-signature-previous"].map((name) =>
      headerOf(headers, name),
    );
    // A secret in the form whsec_ requires the headers above. A replayed delivery could omit them, because they contain
    // the time.
    const expected = plain.map(({ key }) => `sha256=${hmac(key, bytes).toString("hex")}`);
    requireMatch(given, expected);
  }
  return new TextDecoder().decode(bytes);
}

const STANDARD = "whsec_";
/** Minimum length in bytes of a key in the form `whsec_`: the shortest secret that a subscription can have. */
const LEAST_BYTES = 8;

/**
 * Returns the key of a secret. After `whsec_`, the form of Standard Webhooks, follows the base64 of the plain secret.
 */
function keyOf(secret: string): { readonly key: Buffer; readonly isStandard: boolean } {
  if (secret === "") throw new TypeError("A secret is empty.");
  if (!secret.startsWith(STANDARD)) return { key: Buffer.from(secret), isStandard: false };
  const encoded = secret.slice(STANDARD.length);
  const key = Buffer.from(encoded, "base64");
  // The decoder ignores other characters, so the key is encoded again and compared.
  if (key.toString("base64") !== encoded || key.length < LEAST_BYTES)
    throw new TypeError(`A secret is not ${STANDARD} and the base64 of at least 8 bytes.`);
  return { key, isStandard: true };
}

const hmac = (key: Buffer, message: Uint8Array) =>
  createHmac("sha256", key).update(message).digest();

function isEqual(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

function requireMatch(given: readonly string[], expected: readonly string[]): void {
  if (!given.some((one) => expected.some((other) => isEqual(one, other))))
    throw new SignatureError("No signature fits a secret.");
}

function checkTime(at: number, { toleranceS = 300, now = Date.now() }: VerifySettings): void {
  // The negated comparison also rejects a time that is not a number.
  if (!(Math.abs(now - at) <= toleranceS * 1_000))
    throw new SignatureError("The delivery is too old, or the clock is wrong.");
}

/** Returns the value of a header; empty if it is absent. The package does not export it. */
export function headerOf(headers: HeaderSource, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1] ?? "";
  return typeof found === "string" ? found : found.join(" ");
}
