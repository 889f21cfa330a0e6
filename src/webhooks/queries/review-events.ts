import { sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { reviewHistory, reviews } from "../../../db/schema/reviews.ts";
import { list, statement, value } from "../../../db/statement.ts";

/** Of a review no more events are looked at than the newest of them. */
const EVENTS_OF_REVIEW = 500;

const ofReviews = statement({
  name: "messages.ofReviews",
  reason:
    "The newest events of a few reviews, each by its index, whatever the planner thinks of their number.",
  params: {
    reviewIds: list(reviews.id),
    partnerId: reviewHistory.partnerId,
    limit: value("bigint"),
  },
  columns: { eventId: reviewHistory.eventId },
  text: ({ reviewIds, partnerId, limit }) => sql`
    select h.event_id as "eventId" from unnest(${reviewIds}::integer[]) as given(id)
     cross join lateral (
            select id, event_id from review_history
             where review_id = given.id and partner_id = ${partnerId} order by id desc limit ${limit}) h
     order by h.id desc limit ${limit}`,
});

/** The newest events of these reviews, if they are the partner's. */
export async function eventsOfReviews(
  db: DbOrTx,
  partnerId: number,
  reviewIds: readonly number[],
): Promise<string[]> {
  if (reviewIds.length === 0) return [];
  const found = await db.run(ofReviews, { reviewIds, partnerId, limit: EVENTS_OF_REVIEW });
  return found.map(({ eventId }) => eventId);
}

/** Of a partner so many reviews may have one external id, at as many review sites. */
const REVIEWS_OF_EXTERNAL_ID = 20;

const byExternalId = statement({
  name: "messages.reviewsByExternalId",
  reason:
    "A look-up at each connection of the partner. `offset 0` keeps the order of the joins: to reach the limit sooner, the planner would begin with the connections of all partners.",
  params: {
    partnerId: reviewHistory.partnerId,
    externalId: reviews.externalReviewId,
    limit: value("bigint"),
  },
  columns: { id: reviews.id },
  text: ({ partnerId, externalId, limit }) => sql`
    select r.id from companies c
     cross join lateral (select id from store_review_sites where account_id = c.id offset 0) l
     cross join lateral (
            select id from reviews
             where store_review_site_id = l.id and external_review_id = ${externalId} offset 0) r
     where c.partner_id = ${partnerId} limit ${limit}`,
});

/** A review's own id is unique at its site alone. */
export async function reviewsByExternalId(
  db: DbOrTx,
  partnerId: number,
  externalId: string,
): Promise<number[]> {
  const found = await db.run(byExternalId, {
    partnerId,
    externalId,
    limit: REVIEWS_OF_EXTERNAL_ID,
  });
  return found.map(({ id }) => id);
}
