import { ulid } from "ulid";

import type { RecordedAction, SiteFacts } from "../outbox/event.ts";
import { reviewFacts } from "../reviews/model.ts";
import type { Cause, Recorded } from "./decide.ts";
import { reasonOf } from "./model.ts";
import type { Site } from "./queries/look-up.ts";

/** Converts a decided event to an action as the history and the webhook bodies show it. */
export function toAction(
  { event, metadata, site, review, cause, occurredAt }: Recorded,
  now: Date,
): RecordedAction {
  return {
    eventId: ulid(now.getTime()),
    event,
    partnerId: site.partnerId,
    accountId: site.accountId,
    storeId: site.storeId,
    storeReviewSiteId: site.id,
    reviewId: review?.id ?? null,
    actor: { type: "system", id: null, name: site.slug },
    about:
      cause === undefined
        ? { review: reviewFacts({ ...site, ...review, sourcePlatform: site.slug }) }
        : { site: siteFacts(site, cause) },
    metadata,
    occurredAt,
  };
}

/** Contract 8.3; connection_status and disconnect_reason are those of the event's axis (contract 8.5). */
export function siteFacts(site: Site, { axis, errorCode }: Cause): SiteFacts {
  const isConnected = site[`${axis}Connected` as const];
  return {
    store: { id: site.storeId },
    review_site: {
      store_review_site_id: site.id,
      review_site_id: site.reviewSiteId,
      name: site.name,
      connection_status: isConnected ? "connected" : "disconnected",
      disconnect_reason: site[`${axis}ErrorCode` as const],
    },
    axis,
    error_code: errorCode,
    reason: reasonOf(errorCode),
  };
}
