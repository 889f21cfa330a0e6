import { isoInstant } from "../lib/clock.ts";
import { sha256Hex } from "../lib/secrets.ts";
import type { EventFacts, PayloadMode } from "./event.ts";

// FROZEN. An attempt stores neither body nor headers. As long as it is retained, they are composed again in the
// payload format that its row names. They are shown only if the digest in the row matches (contract 7.13). So the
// bytes of a format in use never change, nor do those of `isoInstant`.
//
// For other bytes add a format with a new number, let `payloadFormatNumberOf` return it, and leave the others as they
// are. tests/unit/outbox/payload-format.test.ts compares all formats with tests/golden.

/** The values in the headers of a request that differ between requests. */
interface Signed {
  readonly event: string;
  readonly eventId: string;
  readonly attempt: number;
  /**
   * The HMAC of the exact body in hex digits. `previousSignature` is null except during the grace period of a
   * rotation.
   */
  readonly signature: string;
  readonly previousSignature: string | null;
  /** The headers of Standard Webhooks; null for a subscription without them. */
  readonly standard: StandardHeaders | null;
}

interface StandardHeaders {
  readonly timestamp: number;
  /** One or two HMACs in hex digits, one after the other. */
  readonly signatures: string;
}

interface PayloadFormat {
  readonly body: (facts: EventFacts, deliveredAt: Date) => string;
  /** Makes the headers in the order in which they are sent, between `Host` and `Content-Length`. */
  readonly headers: (signed: Signed) => Readonly<Record<string, string>>;
}

/** Formats by the number in the `payload_format` column of attempts, which stands for version and payload mode. */
const PAYLOAD_FORMATS: Readonly<Record<number, PayloadFormat>> = {
  1: { body: fullBody, headers: requestHeaders },
  2: { body: minimalBodyWithoutPostedReview, headers: requestHeaders },
  3: { body: minimalBody, headers: requestHeaders },
};

/** Returns the number of the format that new attempts use. */
export function payloadFormatNumberOf(mode: PayloadMode): number {
  return mode === "full" ? 1 : 3;
}

/** Returns the payload format with a number; undefined for a number that this version does not know. */
export function payloadFormatOf(number: number): PayloadFormat | undefined {
  return PAYLOAD_FORMATS[number];
}

/** Composes the body of a new attempt. */
export function composeBody(facts: EventFacts, mode: PayloadMode, deliveredAt: Date): string {
  return mode === "full" ? fullBody(facts, deliveredAt) : minimalBody(facts);
}

/** Makes the headers of contract 7.1, and behind them those of contract 7.18. */
export function requestHeaders(signed: Signed): Readonly<Record<string, string>> {
  const { event, eventId, attempt, signature, previousSignature, standard } = signed;
  return {
    "Content-Type": "application/json",
    "User-Agent": "ReviewRelay/1.0 (webhooks)",
    "X-SVC-Event": event,
    "X-SVC-Delivery": eventId,
    "X-SVC-Attempt": String(attempt),
    "X-SVC-Signature": `sha256=${signature}`,
    ...(previousSignature !== null && {
      "X-SVC-Signature-Previous": `sha256=${previousSignature}`,
    }),
    ...(standard !== null && {
      "webhook-id": eventId,
      "webhook-timestamp": String(standard.timestamp),
      "webhook-signature": standardSignature(standard.signatures),
    }),
  };
}

const HMAC_DIGITS = /.{64}/g;

/** Returns the `webhook-signature` with these HMACs, as hex digits one after the other. */
export function standardSignature(hex: string): string {
  const signatures = hex.match(HMAC_DIGITS) ?? [];
  return signatures.map((one) => `v1,${Buffer.from(one, "hex").toString("base64")}`).join(" ");
}

/** Returns the `webhook-timestamp` of an attempt: the Unix time of its start in whole seconds. */
export function standardTimestamp(startedAt: Date): number {
  return Math.floor(startedAt.getTime() / 1_000);
}

/**
 * Composes a body in the field order of contract 8.2 and 8.3. Only `delivered_at`, the start of the attempt, differs
 * between attempts. The stored JSON is inserted as it is.
 */
function fullBody(facts: EventFacts, deliveredAt: Date): string {
  const head = `${identity(facts)},"delivered_at":"${isoInstant(deliveredAt)}","partner":{"id":${facts.partnerId}}`;
  if (facts.siteJson === null)
    return `{${head},"actor":${facts.actorJson},"review":${facts.reviewJson},"metadata":${facts.metadataJson}}`;
  // A posting event is also about a review, without embedding it (contract 8.1).
  const review =
    facts.reviewId === null
      ? ""
      : `,"review_id":${facts.reviewId},"review_history_id":${facts.reviewHistoryId}`;
  return `{${head},${facts.siteJson.slice(1, -1)}${review}}`;
}

/** Composes the body of contract 8.4, which is equal for all attempts. */
function minimalBody(facts: EventFacts): string {
  const review = facts.reviewId === null ? "" : `"review":{"id":${facts.reviewId}},`;
  const site =
    facts.siteJson === null
      ? ""
      : `"store":{"id":${facts.storeId}},"review_site":{"store_review_site_id":${facts.storeReviewSiteId}},"axis":"${facts.axis}",`;
  return `{${identity(facts)},"partner":{"id":${facts.partnerId}},${site}${review}"review_history_id":${facts.reviewHistoryId}}`;
}

/** Composes the minimal body of payload format 2, in which a posting event does not name its review. */
function minimalBodyWithoutPostedReview(facts: EventFacts): string {
  return minimalBody(facts.siteJson === null ? facts : { ...facts, reviewId: null });
}

/** The leading fields of every body. Event values and ULIDs need no escaping. */
function identity(facts: EventFacts): string {
  return `"event":"${facts.event}","event_id":"${facts.eventId}","occurred_at":"${isoInstant(facts.occurredAt)}"`;
}

/** Completes the headers with `Host` and `Content-Length`, as the API shows the request of an attempt. */
export function framed(
  host: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Readonly<Record<string, string>> {
  return { Host: host, ...headers, "Content-Length": String(Buffer.byteLength(body)) };
}

const DIGEST_DIGITS = 32;

/**
 * Returns the digest that proves the bytes of a body: the first 16 bytes of the SHA-256 of its UTF-8, in hex digits.
 */
export function digestOf(body: string): string {
  return sha256Hex(body).slice(0, DIGEST_DIGITS);
}
