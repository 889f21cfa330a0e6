import type { RecordedAction, SiteFacts } from "../outbox/event.ts";
import { reviewFacts } from "../reviews/model.ts";
import type { Recorded } from "./decide.ts";
import { reasonOf, type ReviewState, type Site } from "./model.ts";

/** What was decided, as the history and the webhook bodies show it; the caller adds the event id. */
export function toAction(one: Recorded, slug: string): Omit<RecordedAction, "eventId"> {
  const { site } = one;
  return {
    event: one.event,
    partnerId: site.partnerId,
    accountId: site.accountId,
    storeId: site.storeId,
    storeReviewSiteId: site.id,
    reviewId: one.kind === "connection" ? null : one.review.id,
    actor: { type: "system", id: null, name: slug },
    about: aboutOf(one, slug),
    metadata: one.kind === "connection" ? {} : one.metadata,
    occurredAt: one.occurredAt,
  };
}

function aboutOf(one: Recorded, slug: string): RecordedAction["about"] {
  switch (one.kind) {
    case "review":
      return { review: factsOf(one.review, one.site, slug) };
    case "posting":
      return { site: siteFacts(one.site, "post", one.errorCode) };
    case "connection":
      return { site: siteFacts(one.site, one.axis, one.site[one.axis].errorCode) };
  }
}

function factsOf(review: ReviewState, site: Site, slug: string) {
  const { storeId, reviewSiteId } = site;
  return reviewFacts({ ...review, storeId, reviewSiteId, sourcePlatform: slug });
}

/** Contract 8.3; connection_status and disconnect_reason are those of the event's axis (contract 8.5). */
function siteFacts(site: Site, axis: SiteFacts["axis"], errorCode: string | null): SiteFacts {
  const state = site[axis];
  return {
    store: { id: site.storeId },
    review_site: {
      store_review_site_id: site.id,
      review_site_id: site.reviewSiteId,
      name: site.name,
      connection_status: state.connected ? "connected" : "disconnected",
      disconnect_reason: state.errorCode,
    },
    axis,
    error_code: errorCode,
    reason: reasonOf(errorCode),
  };
}
