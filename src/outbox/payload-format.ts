import { isoInstant } from "../lib/clock.ts";
import { sha256Hex } from "../lib/secrets.ts";
import type { EventFacts, PayloadMode } from "./event.ts";

// FROZEN. An attempt stores neither body nor headers. While it is retained, the API composes them again in the payload
// format whose number is in the attempt's row. They are shown only if the composed body matches the digest in the row
// (contract 7.13). So the bytes of a format in use must never change, and neither may those of `isoInstant`.
//
// To send other bytes, add a format with a new number, let `payloadFormatNumberOf` return it, and leave the others
// unchanged. tests/unit/outbox/payload-format.test.ts compares all formats with tests/golden.

/** The values of request headers that differ between requests. */
interface SignedRequest {
  readonly event: string;
  readonly eventId: string;
  readonly attempt: number;
  /**
   * The HMAC of the exact body, in hex digits. `previousSignature` is the one with the previous secret; it is null
   * except during the grace period of a rotation.
   */
  readonly signature: string;
  readonly previousSignature: string | null;
  /** The values of `X-SVC-Sequence` and `X-SVC-Settled`; null for a request without them (contract 7.19). */
  readonly place: EventPlace | null;
  /** The values for the headers of Standard Webhooks; null for a subscription without them. */
  readonly standard: StandardHeaders | null;
}

/** The place of an event among the events of its subscription. */
export interface EventPlace {
  readonly number: number;
  /** The number up to which every event was delivered or given up before the request. */
  readonly settled: number;
}

interface StandardHeaders {
  readonly timestamp: number;
  /** One or two HMACs in hex digits, concatenated. */
  readonly signatures: string;
}

interface PayloadFormat {
  readonly body: (facts: EventFacts, deliveredAt: Date) => string;
  /** Builds the headers between `Host` and `Content-Length`, in the order in which they are sent. */
  readonly headers: (signed: SignedRequest) => Readonly<Record<string, string>>;
}

/**
 * Formats by the number in the column `payload_format` of attempts. A number stands for a version and a payload mode.
 */
const PAYLOAD_FORMATS: Readonly<Record<number, PayloadFormat>> = {
  1: { body: fullBody, headers: requestHeaders },
  2: { body: minimalBodyWithoutPostedReview, headers: requestHeaders },
  3: { body: minimalBody, headers: requestHeaders },
};

/** Returns the number of the format that new attempts use. */
export function payloadFormatNumberOf(mode: PayloadMode): number {
  return mode === "full" ? 1 : 3;
}

/** Returns the payload format that has this number; undefined if this version does not know the number. */
export function payloadFormatOf(number: number): PayloadFormat | undefined {
  return PAYLOAD_FORMATS[number];
}

/** Composes the body of a new attempt. */
export function composeBody(facts: EventFacts, mode: PayloadMode, deliveredAt: Date): string {
  return mode === "full" ? fullBody(facts, deliveredAt) : minimalBody(facts);
}

/** Builds the headers of contract 7.1, followed by those of contract 7.19 and 7.18. */
export function requestHeaders(signed: SignedRequest): Readonly<Record<string, string>> {
  const { event, eventId, attempt, signature, previousSignature, place, standard } = signed;
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
    ...(place !== null && {
      "X-SVC-Sequence": String(place.number),
      "X-SVC-Settled": String(place.settled),
    }),
    ...(standard !== null && {
      "webhook-id": eventId,
      "webhook-timestamp": String(standard.timestamp),
      "webhook-signature": standardSignature(standard.signatures),
    }),
  };
}

const HMAC_DIGITS = /.{64}/g;

/** Returns the value of `webhook-signature` for one or two HMACs, which are hex digits in one string. */
export function standardSignature(hex: string): string {
  const signatures = hex.match(HMAC_DIGITS) ?? [];
  return signatures.map((one) => `v1,${Buffer.from(one, "hex").toString("base64")}`).join(" ");
}

/** Returns the value of `webhook-timestamp` for an attempt: the Unix time of its start in whole seconds. */
export function standardTimestamp(startedAt: Date): number {
  return Math.floor(startedAt.getTime() / 1_000);
}

/**
 * Composes a body in the field order of contract 8.2 and 8.3. The bodies of the attempts of a delivery differ only in
 * `delivered_at`, the start of the attempt. The stored JSON is inserted unchanged.
 */
function fullBody(facts: EventFacts, deliveredAt: Date): string {
  const head = `${identityFields(facts)},"delivered_at":"${isoInstant(deliveredAt)}","partner":{"id":${facts.partnerId}}`;
  if (facts.siteJson === null)
    return `{${head},"actor":${facts.actorJson},"review":${facts.reviewJson},"metadata":${facts.metadataJson}}`;
  // A posting event contains the ids of its review, but not the review itself (contract 8.1).
  const review =
    facts.reviewId === null
      ? ""
      : `,"review_id":${facts.reviewId},"review_history_id":${facts.reviewHistoryId}`;
  return `{${head},${facts.siteJson.slice(1, -1)}${review}}`;
}

/** Composes the body of contract 8.4, which is the same for all attempts of a delivery. */
function minimalBody(facts: EventFacts): string {
  const review = facts.reviewId === null ? "" : `"review":{"id":${facts.reviewId}},`;
  const site =
    facts.siteJson === null
      ? ""
      : `"store":{"id":${facts.storeId}},"review_site":{"store_review_site_id":${facts.storeReviewSiteId}},"axis":"${facts.axis}",`;
  return `{${identityFields(facts)},"partner":{"id":${facts.partnerId}},${site}${review}"review_history_id":${facts.reviewHistoryId}}`;
}

/** Composes the minimal body of payload format 2, in which a posting event does not contain the id of its review. */
function minimalBodyWithoutPostedReview(facts: EventFacts): string {
  return minimalBody(facts.siteJson === null ? facts : { ...facts, reviewId: null });
}

/**
 * Composes the first fields of every body. Event names and ULIDs are inserted unescaped, because JSON requires no
 * escaping for their characters.
 */
function identityFields(facts: EventFacts): string {
  return `"event":"${facts.event}","event_id":"${facts.eventId}","occurred_at":"${isoInstant(facts.occurredAt)}"`;
}

/** Adds `Host` and `Content-Length` to the headers, because the API shows the request of an attempt with them. */
export function framed(
  host: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Readonly<Record<string, string>> {
  return { Host: host, ...headers, "Content-Length": String(Buffer.byteLength(body)) };
}

const DIGEST_DIGITS = 32;

/**
 * Returns the digest of a body: the first 16 bytes of the SHA-256 of its UTF-8, in hex digits. An attempt stores the
 * digest of the sent body; the API compares it with that of the body that it composes again.
 */
export function digestOf(body: string): string {
  return sha256Hex(body).slice(0, DIGEST_DIGITS);
}
