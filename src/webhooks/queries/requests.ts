import { sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { reviewHistory } from "../../../db/schema/reviews.ts";
import { list, nullable, statement, value } from "../../../db/statement.ts";
import type { EventFacts } from "../../outbox/event.ts";
import { requestOf, type KeptRequest, type ShownRequest } from "../request.ts";

/** JSON is read as the text that was stored: it went into the body as it is. */
const jsonText = value("text");

const facts = statement({
  name: "webhooks.factsOf",
  reason:
    "A look-up for each id, whatever the planner thinks of the size of the history; JSON as the stored text.",
  params: { eventIds: list(reviewHistory.eventId) },
  columns: {
    eventId: reviewHistory.eventId,
    event: reviewHistory.event,
    occurredAt: reviewHistory.occurredAt,
    partnerId: reviewHistory.partnerId,
    reviewHistoryId: reviewHistory.id,
    reviewId: reviewHistory.reviewId,
    storeId: reviewHistory.storeId,
    storeReviewSiteId: reviewHistory.storeReviewSiteId,
    axis: reviewHistory.axis,
    actorJson: jsonText,
    reviewJson: nullable(jsonText),
    siteJson: nullable(jsonText),
    metadataJson: jsonText,
  },
  text: ({ eventIds }) => sql`
    select h.event_id as "eventId", h.event, h.occurred_at as "occurredAt", h.partner_id as "partnerId",
           h.id as "reviewHistoryId", h.review_id as "reviewId", h.store_id as "storeId",
           h.store_review_site_id as "storeReviewSiteId", h.axis, h.actor::text as "actorJson",
           h.review::text as "reviewJson", h.site::text as "siteJson", h.metadata::text as "metadataJson"
      from unnest(${eventIds}::text[]) as given(event_id)
     cross join lateral (select * from review_history where event_id = given.event_id) h`,
});

/** Gives each attempt its exact request, with one look at the history for all of them. */
export async function withRequests<T extends KeptRequest>(
  db: DbOrTx,
  attempts: readonly T[],
): Promise<(Omit<T, keyof ShownRequest> & ShownRequest)[]> {
  const composed = attempts.filter(({ composer }) => composer !== null);
  const eventIds = [...new Set(composed.map(({ eventId }) => eventId))];
  const found = eventIds.length === 0 ? [] : await db.run(facts, { eventIds });
  const known = new Map<string, EventFacts>(found.map((one) => [one.eventId, one]));
  return attempts.map((one) => ({ ...one, ...requestOf(one, known.get(one.eventId)) }));
}
