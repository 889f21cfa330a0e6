import { isoInstant } from "../lib/clock.ts";
import { sha256Hex } from "../lib/secrets.ts";
import type { EventFacts, PayloadMode } from "./event.ts";

// FROZEN. An attempt keeps neither body nor headers: for as long as retention lasts they are composed again, by the
// composer that its row names, and shown only where the digest of the row proves them (contract 7.13). So the bytes of
// a composer that is in use never change, nor do those of `isoInstant`. Whoever wants other bytes adds a composer under
// a number of its own, has `payloadFormatNumberOf` name it, and leaves the others as they are.
// tests/unit/outbox/payload-format.test.ts holds them to tests/golden.

/** What the headers say beside what is the same for all. */
interface Signed {
  readonly event: string;
  readonly eventId: string;
  readonly attempt: number;
  /** Hex digits of the HMAC of the exact body; the previous one is null but in the grace period of a rotation. */
  readonly signature: string;
  readonly previousSignature: string | null;
}

interface PayloadFormat {
  readonly body: (facts: EventFacts, deliveredAt: Date) => string;
  /** In the order in which they are sent, without `Host` before them and `Content-Length` behind. */
  readonly headers: (signed: Signed) => Readonly<Record<string, string>>;
}

/** By the number that attempts have, which says version and mode. */
const PAYLOAD_FORMATS: Readonly<Record<number, PayloadFormat>> = {
  1: { body: fullBody, headers: requestHeaders },
  2: { body: minimalBody, headers: requestHeaders },
};

/** The number of the composer that makes what is sent now. */
export function payloadFormatNumberOf(mode: PayloadMode): number {
  return mode === "full" ? 1 : 2;
}

/** Undefined for a number that this version does not know. */
export function payloadFormatOf(number: number): PayloadFormat | undefined {
  return PAYLOAD_FORMATS[number];
}

/** What is sent now. */
export function composeBody(facts: EventFacts, mode: PayloadMode, deliveredAt: Date): string {
  return mode === "full" ? fullBody(facts, deliveredAt) : minimalBody(facts);
}

/** Of contract 7.1. */
export function requestHeaders(signed: Signed): Readonly<Record<string, string>> {
  const { event, eventId, attempt, signature, previousSignature } = signed;
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
  };
}

/**
 * In the field order of contract 8.2 and 8.3. Everything is fixed but `delivered_at`, the instant of the attempt. The
 * stored JSON goes in as it is.
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

/** Of contract 8.4: the same at each attempt. */
function minimalBody(facts: EventFacts): string {
  const head = `${identity(facts)},"partner":{"id":${facts.partnerId}}`;
  const about =
    facts.siteJson === null
      ? `"review":{"id":${facts.reviewId}}`
      : `"store":{"id":${facts.storeId}},"review_site":{"store_review_site_id":${facts.storeReviewSiteId}},"axis":"${facts.axis}"`;
  return `{${head},${about},"review_history_id":${facts.reviewHistoryId}}`;
}

/** The fields that every body begins with. Catalog words and ULIDs need no escaping. */
function identity(facts: EventFacts): string {
  return `"event":"${facts.event}","event_id":"${facts.eventId}","occurred_at":"${isoInstant(facts.occurredAt)}"`;
}

/** All headers as an attempt shows them. */
export function framed(
  host: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Readonly<Record<string, string>> {
  return { Host: host, ...headers, "Content-Length": String(Buffer.byteLength(body)) };
}

const DIGEST_DIGITS = 32;

/** What proves a body: hex digits of the first 16 bytes of the SHA-256 of its UTF-8. */
export function digestOf(body: string): string {
  return sha256Hex(body).slice(0, DIGEST_DIGITS);
}
