import { isoInstant } from "../lib/clock.ts";
import type { Axis } from "../outbox/event.ts";
import type { Metadata } from "../reviews/model.ts";
import {
  reviewKey,
  type AxisState,
  type ProviderEvent,
  type Reference,
  type ReportedReview,
  type ReviewState,
  type Site,
} from "./model.ts";

/** What is known when a request is decided, all of it locked. */
export interface Known {
  readonly sites: ReadonlyMap<number, Site>;
  /** By `reviewKey`. */
  readonly reviews: ReadonlyMap<string, ReviewState>;
  /** By `reviewKey`: the ids of the reviews that do not exist and may be created. */
  readonly newIds: ReadonlyMap<string, number>;
  /** Partners whose active immediate subscription suppresses our own mails (contract 9.5). */
  readonly suppressing: ReadonlySet<number>;
  readonly profanityIn: (text: string) => readonly string[];
}

/** One row for the history: about a review as it was then, or about an axis of a site as it was then. */
export type Recorded = { readonly occurredAt: Date; readonly site: Site } & (
  | {
      [E in ReviewEventName]: {
        readonly kind: "review";
        readonly event: E;
        readonly metadata: Metadata[E];
        readonly review: ReviewState;
      };
    }[ReviewEventName]
  | {
      [E in PostingEventName]: {
        readonly kind: "posting";
        readonly event: E;
        readonly metadata: Metadata[E];
        readonly errorCode: string | null;
        readonly review: ReviewState;
      };
    }[PostingEventName]
  | { readonly kind: "connection"; readonly event: ConnectionEventName; readonly axis: Axis }
);

type ReviewEventName =
  | "review_received"
  | "review_updated"
  | "review_removed"
  | "profanity_detected"
  | "homeowner_notified_of_response";
type PostingEventName = "response_post_succeeded" | "response_post_failed";
type ConnectionEventName =
  | "review_pull_connected"
  | "review_pull_disconnected"
  | "response_post_connected"
  | "response_post_disconnected";

export interface Outcome {
  readonly recorded: readonly Recorded[];
  /** As the last event has left them. */
  readonly created: readonly ReviewState[];
  /** Only what differs from what was known. */
  readonly reviews: readonly ReviewState[];
  readonly sites: readonly Site[];
}

/** The working copy of what is known, as the events before the present one have left it. */
interface Draft {
  readonly known: Known;
  readonly sites: Map<number, Site>;
  readonly reviews: Map<string, ReviewState>;
  readonly recorded: Recorded[];
}

/** Stands for the site in a `reviewKey` where the event names none that is known. */
const SOME_SITE = 0;

/**
 * Field → what is wrong, for every event that refers to something that does not exist. An event with another fault
 * counts as if it had none: a later event may refer to the review that it would have created.
 */
export function referenceFaults(
  references: readonly Reference[],
  siteOf: (id: number) => Pick<Site, "id"> | undefined,
  existing: ReadonlySet<string>,
): Record<string, string[]> {
  const faults: Record<string, string[]> = {};
  const begun = new Set<string>();
  for (const { index, type, siteId, externalReviewId } of references) {
    const site = siteId === undefined ? undefined : siteOf(siteId);
    if (siteId !== undefined && site === undefined)
      faults[`events.${index}.store_review_site_id`] = [
        "is not a store's connection with this provider",
      ];
    if (externalReviewId === undefined) continue;
    const key = reviewKey(site?.id ?? SOME_SITE, externalReviewId);
    if (type === undefined || type === "review.created") begun.add(key);
    else if (site !== undefined) {
      const own = [key, reviewKey(SOME_SITE, externalReviewId)];
      if (existing.has(key) || own.some((one) => begun.has(one))) continue;
      const inReview = type === "review.updated" || type === "review.removed";
      faults[`events.${index}.${inReview ? "review." : ""}external_review_id`] = [
        "is not a review that this site has reported",
      ];
    }
  }
  return faults;
}

/** Applies the events one after the other, in the order of the request. `referenceFaults` has found none wrong. */
export function decideEvents(events: readonly ProviderEvent[], known: Known): Outcome {
  const draft: Draft = {
    known,
    sites: new Map(known.sites),
    reviews: new Map(known.reviews),
    recorded: [],
  };
  for (const event of events) apply(draft, event);
  const written = [...draft.reviews].filter(([key, one]) => one !== known.reviews.get(key));
  return {
    recorded: draft.recorded,
    created: written.flatMap(([key, one]) => (known.reviews.has(key) ? [] : [one])),
    reviews: written.flatMap(([key, one]) => (known.reviews.has(key) ? [one] : [])),
    sites: [...draft.sites].flatMap(([id, one]) => (one === known.sites.get(id) ? [] : [one])),
  };
}

function apply(draft: Draft, event: ProviderEvent): void {
  const site = draft.sites.get(event.siteId);
  if (site === undefined) throw new Error(`The site of event ${event.index} was not looked up.`);
  if (event.type === "connection.changed") {
    applyConnection(draft, event, site);
  } else {
    applyToReview(draft, event, site);
  }
}

type ReviewEvent = Exclude<ProviderEvent, { type: "connection.changed" }>;
type Report = Extract<ReviewEvent, { review: ReportedReview }>;

function applyToReview(draft: Draft, event: ReviewEvent, site: Site): void {
  const key = reviewKey(site.id, event.externalReviewId);
  const review = draft.reviews.get(key);
  if (event.type === "review.created" && review === undefined) return create(draft, event, site);
  if (review === undefined) throw new Error(`The review ${key} was not looked up.`);
  switch (event.type) {
    case "review.created":
    case "review.updated":
      return applyReport(draft, event, { site, review });
    case "review.removed":
      return applyRemoval(draft, event, { site, review });
    case "response.posted":
    case "response.failed":
      return applyPosting(draft, event, { site, review });
  }
}

interface Subject {
  readonly site: Site;
  readonly review: ReviewState;
}

function create(draft: Draft, { review: report, ...event }: Report, site: Site): void {
  const key = reviewKey(site.id, event.externalReviewId);
  const id = draft.known.newIds.get(key);
  if (id === undefined) throw new Error(`The review ${key} has no id.`);
  const review: ReviewState = {
    ...report,
    id,
    siteId: site.id,
    externalReviewId: event.externalReviewId,
    reviewerEmail: report.reviewerEmail ?? null,
    profanity: draft.known.profanityIn(report.content),
    removedAt: null,
  };
  draft.reviews.set(key, review);
  const metadata = textOf(review);
  record(draft, event, site, { kind: "review", event: "review_received", metadata, review });
  const words = [...review.profanity];
  if (words.length === 0) return;
  const found = { event: "profanity_detected", metadata: { words } } as const;
  record(draft, event, site, { kind: "review", ...found, review });
}

/**
 * A review.created for a review that exists is a report like any other, and brings a removed one back. A
 * review.updated does not: it may have been under way when the review was removed.
 */
function applyReport(draft: Draft, event: Report, { site, review }: Subject): void {
  const restored = review.removedAt !== null;
  if (restored && event.type === "review.updated") return;
  const report = event.review;
  const changed = changedFields(review, report);
  const newText = report.content !== review.content;
  const next: ReviewState = {
    ...review,
    rate: report.rate,
    reviewer: report.reviewer,
    reviewerEmail: report.reviewerEmail === undefined ? review.reviewerEmail : report.reviewerEmail,
    content: report.content,
    profanity: newText ? draft.known.profanityIn(report.content) : review.profanity,
    reviewedAt: report.reviewedAt,
    removedAt: null,
  };
  const emailChanged = next.reviewerEmail !== review.reviewerEmail;
  if (changed.length === 0 && !restored && !emailChanged) return;
  draft.reviews.set(reviewKey(site.id, review.externalReviewId), next);
  // No body shows the email, so a change of it alone is nothing to announce.
  if (changed.length === 0 && !restored) return;
  const metadata = { changed, ...textOf(next), restored };
  record(draft, event, site, { kind: "review", event: "review_updated", metadata, review: next });
  const words = next.profanity.filter((word) => !review.profanity.includes(word));
  if (words.length === 0) return;
  const found = { event: "profanity_detected", metadata: { words } } as const;
  record(draft, event, site, { kind: "review", ...found, review: next });
}

function changedFields(review: ReviewState, report: ReportedReview): string[] {
  const same = {
    rate: review.rate === report.rate,
    reviewer: review.reviewer === report.reviewer,
    content: review.content === report.content,
    reviewed_at: review.reviewedAt.getTime() === report.reviewedAt.getTime(),
  };
  return Object.entries(same).flatMap(([field, isSame]) => (isSame ? [] : [field]));
}

function textOf(review: ReviewState): { content: string; reviewed_at: string } {
  return {
    content: review.content,
    reviewed_at: isoInstant(review.reviewedAt),
  };
}

/** A repeated removal changes nothing. */
function applyRemoval(draft: Draft, event: ReviewEvent, { site, review }: Subject): void {
  if (review.removedAt !== null) return;
  const next = { ...review, removedAt: event.occurredAt };
  draft.reviews.set(reviewKey(site.id, review.externalReviewId), next);
  const happened = { event: "review_removed", metadata: {} } as const;
  record(draft, event, site, { kind: "review", ...happened, review: next });
}

/** Every posting is announced (contract 8.1), even of a response that was written on the site itself. */
function applyPosting(draft: Draft, event: ReviewEvent, { site, review }: Subject): void {
  if (event.type === "response.failed") {
    const { errorCode } = event;
    const happened = {
      event: "response_post_failed",
      metadata: { error_code: errorCode },
      errorCode,
    } as const;
    return record(draft, event, site, { kind: "posting", ...happened, review });
  }
  const happened = { event: "response_post_succeeded", metadata: {}, errorCode: null } as const;
  record(draft, event, site, { kind: "posting", ...happened, review });
  const notice = {
    event: "homeowner_notified_of_response",
    metadata: { native_email: nativeEmail(draft.known, site, review) },
  } as const;
  record(draft, event, site, { kind: "review", ...notice, review });
}

function nativeEmail(known: Known, site: Site, review: ReviewState) {
  if (known.suppressing.has(site.partnerId)) return "suppressed";
  return review.reviewerEmail === null ? "no_address" : "queued";
}

const CONNECTION_EVENTS = {
  pull: { connected: "review_pull_connected", disconnected: "review_pull_disconnected" },
  post: { connected: "response_post_connected", disconnected: "response_post_disconnected" },
} as const;

/** Announced only when the axis connects or disconnects (contract 8.3); another error code is stored without. */
function applyConnection(
  draft: Draft,
  event: Extract<ProviderEvent, { type: "connection.changed" }>,
  site: Site,
): void {
  const { axis, errorCode } = event;
  const before = site[axis];
  const after: AxisState = { connected: errorCode === null, errorCode };
  if (before.connected === after.connected && before.errorCode === after.errorCode) return;
  const next = { ...site, [axis]: after };
  draft.sites.set(site.id, next);
  if (before.connected === after.connected) return;
  const name = CONNECTION_EVENTS[axis][after.connected ? "connected" : "disconnected"];
  record(draft, event, next, { kind: "connection", event: name, axis });
}

type HistoryFields = Recorded extends infer R
  ? R extends Recorded
    ? Omit<R, "occurredAt" | "site">
    : never
  : never;

function record(
  draft: Draft,
  event: Pick<ProviderEvent, "occurredAt">,
  site: Site,
  fields: HistoryFields,
): void {
  draft.recorded.push({ ...fields, site, occurredAt: event.occurredAt });
}
