import { isoInstant } from "../../src/lib/clock.ts";
import type { PayloadMode } from "../../src/outbox/event.ts";
import type { BodySource, EventFacts } from "../actor/entry.ts";

/**
 * The JSON body of one attempt, in the field order of contract 8.2 and 8.3. Everything in it is fixed but
 * `delivered_at`, the instant of the attempt, which minimal mode does not have. The stored JSON goes in as it is:
 * the bytes of a repeat differ in `delivered_at` alone.
 */
export function composeBody(source: BodySource, mode: PayloadMode, deliveredAt: Date): string {
  if (source.kind === "test")
    return mode === "full" ? fullTest(source, deliveredAt) : minimalTest(source);
  return mode === "full" ? full(source.facts, deliveredAt) : minimal(source.facts);
}

function full(facts: EventFacts, deliveredAt: Date): string {
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

function minimal(facts: EventFacts): string {
  const head = `${identity(facts)},"partner":{"id":${facts.partnerId}}`;
  const about =
    facts.siteJson === null
      ? `"review":{"id":${facts.reviewId}}`
      : `"store":{"id":${facts.storeId}},"review_site":{"store_review_site_id":${facts.storeReviewSiteId}},"axis":"${facts.axis}"`;
  return `{${head},${about},"review_history_id":${facts.reviewHistoryId}}`;
}

type TestSource = BodySource & { kind: "test" };

function fullTest(source: TestSource, deliveredAt: Date): string {
  return JSON.stringify({
    event: "webhook.test",
    event_id: source.eventId,
    occurred_at: isoInstant(source.occurredAt),
    delivered_at: isoInstant(deliveredAt),
    partner: { id: source.partnerId },
    actor: { type: "system", id: null, name: "webhook.test" },
    review: {
      id: 0,
      external_review_id: "test",
      store_id: 0,
      review_site_id: 0,
      source_platform: "test",
      rate: 5,
      reviewer: null,
    },
    metadata: { test: true },
  });
}

function minimalTest(source: TestSource): string {
  return JSON.stringify({
    event: "webhook.test",
    event_id: source.eventId,
    occurred_at: isoInstant(source.occurredAt),
    partner: { id: source.partnerId },
    review: { id: 0 },
    review_history_id: 0,
  });
}

/** The fields that every body begins with. Catalog words and ULIDs need no escaping. */
function identity(facts: EventFacts): string {
  return `"event":"${facts.event}","event_id":"${facts.eventId}","occurred_at":"${isoInstant(facts.occurredAt)}"`;
}
