import { composeBody as composeRecorded, requestHeaders } from "../../src/outbox/payload-format.ts";
import type { Axis, EventFacts, PayloadMode } from "../../src/outbox/event.ts";
import { hmacSha256Hex } from "../../src/lib/secrets.ts";
import type { BodySource, SendableEntry, Subscription } from "../actor/entry.ts";
import type { DeliveryRequest } from "./deliver.ts";

/** A request with what its record keeps of it. */
export interface SignedRequest extends DeliveryRequest {
  readonly body: string;
  /** Hex digits. */
  readonly signature: string;
  readonly previousSignature: string | null;
}

/** Every test carries it, also one that looks like another event (contract 6.12). */
const TEST_MARK = { "X-SVC-Test": "1" };

/**
 * The signed POST of one attempt (contract 7.1). During the grace period of a rotation it carries both signatures. Their
 * keys are the UTF-8 of the secrets as they were shown, not the bytes that the hex digits stand for (contract 6.6).
 */
export function composeRequest(
  { source, payloadMode, event, eventId, attempt }: SendableEntry,
  { webhookUrl, secret, previousSecret }: Subscription,
  deliveredAt: Date,
): SignedRequest {
  const body = composeBody(source, payloadMode, deliveredAt);
  const signature = hmacSha256Hex(secret, body);
  const previousSignature = previousSecret === null ? null : hmacSha256Hex(previousSecret, body);
  const own = requestHeaders({ event, eventId, attempt, signature, previousSignature });
  const headers = source.kind === "test" ? { ...own, ...TEST_MARK } : own;
  return { url: webhookUrl, body, headers, signature, previousSignature };
}

/**
 * The JSON body of one attempt, as its composer has it (src/outbox/payload-format.ts): of an event that was recorded by its
 * facts, of a test by sample values.
 */
export function composeBody(source: BodySource, mode: PayloadMode, deliveredAt: Date): string {
  const facts = source.kind === "recorded" ? source.facts : testFactsOf(source);
  return composeRecorded(facts, mode, deliveredAt);
}

const ACTOR = { type: "system", id: null, name: "webhook.test" };
const REVIEW = {
  id: 0,
  external_review_id: "test",
  store_id: 0,
  review_site_id: 0,
  source_platform: "test",
  rate: 5,
  reviewer: null,
};

type TestSource = BodySource & { kind: "test" };

/** The facts of a test of any event (contract 6.12): no id but the partner's is one that exists. */
function testFactsOf({ event, eventId, partnerId, occurredAt }: TestSource): EventFacts {
  const axis = axisOf(event);
  return {
    event,
    eventId,
    partnerId,
    occurredAt,
    reviewHistoryId: 0,
    storeId: 0,
    storeReviewSiteId: 0,
    // Connection events are about no review; posting events name one, and embed none (contract 8.1).
    reviewId: axis === null || isPosting(event) ? 0 : null,
    axis,
    actorJson: JSON.stringify(ACTOR),
    reviewJson: axis === null ? JSON.stringify(REVIEW) : null,
    siteJson: axis === null ? null : JSON.stringify(siteOf(event, axis)),
    metadataJson: '{"test":true}',
  };
}

/** Contract 8.3 tells the envelope by the event's name. */
function axisOf(event: string): Axis | null {
  if (event.startsWith("review_pull_")) return "pull";
  return event.startsWith("response_post_") ? "post" : null;
}

const isPosting = (event: string) => /^response_post_(succeeded|failed)$/.test(event);

function siteOf(event: string, axis: Axis) {
  const code = event.endsWith("_disconnected") || event.endsWith("_failed") ? "E-002" : null;
  const isConnected = !event.endsWith("_disconnected");
  return {
    store: { id: 0 },
    review_site: {
      store_review_site_id: 0,
      review_site_id: 0,
      name: "Test",
      connection_status: isConnected ? "connected" : "disconnected",
      disconnect_reason: isConnected ? null : code,
    },
    axis,
    error_code: code,
    reason: code === null ? null : "This is a test.",
  };
}
