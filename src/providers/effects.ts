import type { Db, Tx } from "../../db/client.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import { queueHomeownerNotices, suppressingPartners } from "../notifications/actions.ts";
import type { Intake } from "../outbox/intake.ts";
import type { Waker } from "../outbox/schedule.ts";
import type { Known, Outcome } from "./decide.ts";
import type { ProviderEvent, Site } from "./model.ts";
import type { PartnerFinder } from "./partners.ts";
import * as queries from "./queries.ts";

export interface ProviderDeps {
  readonly db: Db;
  readonly intake: Intake;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly schedule: Waker;
  readonly log: Log;
  /** Told the instants of the events of a request; absent where nothing is traced. */
  readonly traces?: { came(instants: readonly Date[]): void } | undefined;
}

/** What it takes to take events, alone or in a group. */
export interface TakingDeps extends ProviderDeps {
  readonly partners: PartnerFinder;
}

export function newReview(
  event: Extract<ProviderEvent, { type: "review.created" | "review.updated" }>,
  profanityIn: Known["profanityIn"],
): queries.NewReview {
  const { siteId, externalReviewId, review } = event;
  return {
    siteId,
    externalReviewId,
    ...review,
    reviewerEmail: review.reviewerEmail ?? null,
    profanity: profanityIn(review.content),
  };
}

/** Looked up for posted responses only: no other event leads to a mail of ours. */
export function loadSuppressing(
  tx: Tx,
  sites: ReadonlyMap<number, Site>,
  events: readonly ProviderEvent[],
): Promise<ReadonlySet<number>> {
  const posted = events.filter(({ type }) => type === "response.posted");
  const partners = posted.flatMap(({ siteId }) => sites.get(siteId)?.partnerId ?? []);
  return suppressingPartners(tx, [...new Set(partners)]);
}

/**
 * Writes the reviews and sites as the events left them, and queues a mail for every homeowner_notified_of_response that
 * says so (contract 9.5). True if it queued one.
 */
export async function writeOutcome(
  tx: Tx,
  deps: Pick<ProviderDeps, "box">,
  outcome: Outcome,
  now: Date,
): Promise<boolean> {
  if (outcome.reviews.length > 0) await queries.updateReviews(tx, outcome.reviews, now);
  if (outcome.sites.length > 0) await queries.updateSites(tx, outcome.sites);
  const notices = outcome.recorded.flatMap((one) => {
    if (one.event !== "homeowner_notified_of_response") return [];
    const to = one.metadata.native_email === "queued" ? one.review.reviewerEmail : null;
    return to === null ? [] : [{ reviewId: one.review.id, to }];
  });
  await queueHomeownerNotices(tx, deps, notices, now);
  return notices.length > 0;
}
