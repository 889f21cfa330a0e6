import { CONNECTION_EVENTS, type EventFacts, siteStateOf } from "./event.ts";

/** The header of every test, also of a test with the name and the form of a real event (contract 6.12). */
export const TEST_MARK = { "X-SVC-Test": "1" };

interface TestEvent {
  readonly event: string;
  readonly eventId: string;
  readonly recordedAt: Date;
}

const TEST_ACTOR = { type: "system", id: null, name: "webhook.test" };
const TEST_REVIEW = {
  id: 0,
  external_review_id: "test",
  store_id: 0,
  review_site_id: 0,
  source_platform: "test",
  rate: 5,
  reviewer: null,
};

/**
 * Makes the facts of a test of any event (contract 6.12). The time of the facts is the time of the request for the
 * test. The id of the partner is real; all other ids are 0 or null.
 */
export function testFactsOf(
  { event, eventId, recordedAt: occurredAt }: TestEvent,
  partnerId: number,
): EventFacts {
  const site = siteStateOf(event);
  return {
    event,
    eventId,
    partnerId,
    occurredAt,
    reviewHistoryId: 0,
    storeId: 0,
    storeReviewSiteId: 0,
    // Connection events have no review. Posting events have the id of a review, but do not embed it (contract 8.1).
    reviewId: CONNECTION_EVENTS.some((one) => one === event) ? null : 0,
    axis: site?.axis ?? null,
    actorJson: JSON.stringify(TEST_ACTOR),
    reviewJson: site === undefined ? JSON.stringify(TEST_REVIEW) : null,
    siteJson: site === undefined ? null : JSON.stringify(siteOf(site)),
    metadataJson: '{"test":true}',
  };
}

function siteOf({ axis, isConnected, isError }: NonNullable<ReturnType<typeof siteStateOf>>) {
  const code = isError ? "E-002" : null;
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
    reason: isError ? "This is a test." : null,
  };
}
