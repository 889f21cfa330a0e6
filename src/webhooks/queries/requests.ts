import { sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { reviewHistory } from "../../../db/schema/reviews.ts";
import type { EventFacts } from "../../outbox/event.ts";
import { requestOf, type KeptRequest, type ShownRequest } from "../request.ts";

const { eventId, event, occurredAt, partnerId, reviewId, storeId, storeReviewSiteId, axis } =
  reviewHistory;
const FACTS = {
  eventId,
  event,
  occurredAt,
  partnerId,
  reviewId,
  storeId,
  storeReviewSiteId,
  axis,
  reviewHistoryId: reviewHistory.id,
  // JSON is read as the text that was stored: it went into the body as it is.
  actorJson: sql`${reviewHistory.actor}::text`.mapWith(String),
  reviewJson: sql`${reviewHistory.review}::text`.mapWith(String),
  siteJson: sql`${reviewHistory.site}::text`.mapWith(String),
  metadataJson: sql`${reviewHistory.metadata}::text`.mapWith(String),
};

/** Gives each attempt its exact request, with one look at the history for all of them. */
export async function withRequests<T extends KeptRequest>(
  db: DbOrTx,
  attempts: readonly T[],
): Promise<(Omit<T, keyof ShownRequest> & ShownRequest)[]> {
  const composed = attempts.filter(({ composer }) => composer !== null);
  const eventIds = new Set(composed.map((one) => one.eventId));
  const found =
    eventIds.size === 0
      ? []
      : await db.select(FACTS).from(reviewHistory).where(anyOf(reviewHistory.eventId, eventIds));
  const known = new Map<string, EventFacts>(found.map((one) => [one.eventId, one]));
  return attempts.map((one) => ({ ...one, ...requestOf(one, known.get(one.eventId)) }));
}
