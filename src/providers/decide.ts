import { isoInstant } from "../lib/clock.ts";
import type { Metadata, NativeEmail } from "../reviews/model.ts";
import type { Axis, RecordedAction } from "../outbox/event.ts";
import { reviewKey, type ProviderEvent, type Reference, type ReportedReview } from "./model.ts";
import type { ReviewState, Site } from "./queries/look-up.ts";

/** What is known when a request is decided, all of it locked. */
export interface Known {
  readonly sites: ReadonlyMap<number, Site>;
  /** By `reviewKey`. */
  readonly reviews: ReadonlyMap<string, ReviewState>;
  /** By `reviewKey`: the ids of the reviews that do not exist and may be created. */
  readonly newIds: ReadonlyMap<string, number>;
  /** Partners whose active immediate subscription suppresses our own mails (contract 9.5). */
  readonly suppressing: ReadonlySet<number>;
  /** The profane words of each text. */
  readonly profanity: ReadonlyMap<string, readonly string[]>;
}

type EventName = RecordedAction["event"];
/** An event of the history, with what its metadata hold. */
type Happened = {
  [E in EventName]: {
    readonly event: E;
    readonly metadata: E extends keyof Metadata ? Metadata[E] : Record<string, never>;
  };
}[EventName];

/** What an event is about: a review as it was then, or an axis of a connection, which a posting shows, too. */
type Subject = { readonly site: Site } & (
  | { readonly review: ReviewState; readonly cause?: undefined }
  | { readonly review?: ReviewState; readonly cause: Cause }
);

/** Why a connection is as it is, or a posting ended as it did. */
export interface Cause {
  readonly axis: Axis;
  readonly errorCode: string | null;
}

/** One row for the history. */
export type Recorded = Happened & Subject & { readonly occurredAt: Date };

export interface Outcome {
  readonly recorded: readonly Recorded[];
  /** As the last event has left them. */
  readonly created: readonly ReviewState[];
  /** Only what differs from what was known. */
  readonly reviews: readonly ReviewState[];
  readonly sites: readonly Site[];
  /** A mail for every homeowner_notified_of_response that says so (contract 9.5). */
  readonly notices: readonly { readonly reviewId: number; readonly to: string }[];
}

/** The working copy of what is known, as the events before the present one have left it. */
interface Draft {
  readonly known: Known;
  readonly sites: Map<number, Site>;
  readonly reviews: Map<string, ReviewState>;
  readonly recorded: Recorded[];
  readonly notices: { reviewId: number; to: string }[];
}

/** Stands for the site in a `reviewKey` where the event names none that is known. */
const SOME_SITE = 0;

/**
 * Field → what is wrong, for every event that refers to something that does not exist. An event with another fault
 * counts as if it had none: a later event may refer to the review that it would have created.
 */
export function referenceErrors(
  references: readonly Reference[],
  siteOf: (id: number) => Pick<Site, "id"> | undefined,
  existing: ReadonlySet<string>,
): Record<string, string[]> {
  const fieldErrors: Record<string, string[]> = {};
  const begun = new Set<string>();
  for (const { index, type, siteId, externalReviewId } of references) {
    const site = siteId === undefined ? undefined : siteOf(siteId);
    if (siteId !== undefined && site === undefined)
      fieldErrors[`events.${index}.store_review_site_id`] = [
        "is not a store's connection with this provider",
      ];
    if (externalReviewId === undefined) continue;
    const key = reviewKey(site?.id ?? SOME_SITE, externalReviewId);
    if (type === undefined || type === "review.created") begun.add(key);
    else if (site !== undefined) {
      const own = [key, reviewKey(SOME_SITE, externalReviewId)];
      if (existing.has(key) || own.some((one) => begun.has(one))) continue;
      const inReview = type === "review.updated" || type === "review.removed";
      fieldErrors[`events.${index}.${inReview ? "review." : ""}external_review_id`] = [
        "is not a review that this site has reported",
      ];
    }
  }
  return fieldErrors;
}

/** Applies the events one after the other, in the order of the request. `referenceErrors` has found none wrong. */
export function decideEvents(events: readonly ProviderEvent[], known: Known): Outcome {
  const draft: Draft = {
    known,
    sites: new Map(known.sites),
    reviews: new Map(known.reviews),
    recorded: [],
    notices: [],
  };
  for (const event of events) apply(draft, event);
  const written = [...draft.reviews].filter(([key, one]) => one !== known.reviews.get(key));
  return {
    recorded: draft.recorded,
    notices: draft.notices,
    created: written.flatMap(([key, one]) => (known.reviews.has(key) ? [] : [one])),
    reviews: written.flatMap(([key, one]) => (known.reviews.has(key) ? [one] : [])),
    sites: [...draft.sites.values()].filter((one) => one !== known.sites.get(one.id)),
  };
}

function apply(draft: Draft, event: ProviderEvent): void {
  const site = draft.sites.get(event.siteId);
  if (site === undefined) throw new Error(`The site of event ${event.index} was not looked up.`);
  if (event.type === "connection.changed") return applyConnection(draft, event, site);
  const key = reviewKey(site.id, event.externalReviewId);
  const review = draft.reviews.get(key);
  if ("review" in event) return applyReport(draft, event, { site, review });
  if (review === undefined) throw new Error(`The review ${key} was not looked up.`);
  if (event.type === "review.removed") return applyRemoval(draft, event, { site, review });
  applyPosting(draft, event, { site, review });
}

type Report = Extract<ProviderEvent, { review: ReportedReview }>;
type Connection = Extract<ProviderEvent, { type: "connection.changed" }>;
type ReviewEvent = Exclude<ProviderEvent, Report | Connection>;

/**
 * A review.created for a review that exists is a report like any other, and brings a removed one back. A
 * review.updated does not: it may have been under way when the review was removed.
 */
function applyReport(
  draft: Draft,
  event: Report,
  { site, review: before }: { readonly site: Site; readonly review: ReviewState | undefined },
): void {
  const { review: report, externalReviewId } = event;
  const restored = before !== undefined && before.removedAt !== null;
  if (restored && event.type === "review.updated") return;
  const key = reviewKey(site.id, externalReviewId);
  const id = before?.id ?? draft.known.newIds.get(key);
  if (id === undefined) throw new Error(`The review ${key} has no id.`);
  const isSameText = report.content === before?.content;
  const review: ReviewState = {
    ...report,
    id,
    siteId: site.id,
    externalReviewId,
    reviewerEmail:
      report.reviewerEmail === undefined ? (before?.reviewerEmail ?? null) : report.reviewerEmail,
    profanity: isSameText ? before.profanity : (draft.known.profanity.get(report.content) ?? []),
    removedAt: null,
  };
  const text = { content: review.content, reviewed_at: isoInstant(review.reviewedAt) };
  const changed = before === undefined ? [] : changedFields(before, report);
  if (before === undefined) {
    record(draft, event, { site, review }, { event: "review_received", metadata: text });
  } else if (changed.length > 0 || restored) {
    const metadata = { changed, ...text, restored };
    record(draft, event, { site, review }, { event: "review_updated", metadata });
  } else if (review.reviewerEmail === before.reviewerEmail) return;
  // No body shows the email, so a change of it alone is nothing to announce.
  draft.reviews.set(key, review);
  const words = review.profanity.filter((word) => !before?.profanity.includes(word));
  if (words.length > 0)
    record(draft, event, { site, review }, { event: "profanity_detected", metadata: { words } });
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

interface ReviewOfSite {
  readonly site: Site;
  readonly review: ReviewState;
}

/** A repeated removal changes nothing. */
function applyRemoval(draft: Draft, event: ReviewEvent, { site, review }: ReviewOfSite): void {
  if (review.removedAt !== null) return;
  const next = { ...review, removedAt: event.occurredAt };
  draft.reviews.set(reviewKey(site.id, review.externalReviewId), next);
  record(draft, event, { site, review: next }, { event: "review_removed", metadata: {} });
}

/** Every posting is announced (contract 8.1), even of a response that was written on the site itself. */
function applyPosting(draft: Draft, event: ReviewEvent, { site, review }: ReviewOfSite): void {
  if (event.type === "response.failed") {
    const { errorCode } = event;
    const failed = { event: "response_post_failed", metadata: { error_code: errorCode } } as const;
    return record(draft, event, { site, review, cause: { axis: "post", errorCode } }, failed);
  }
  const cause = { axis: "post", errorCode: null } as const;
  const posted = { event: "response_post_succeeded", metadata: {} } as const;
  record(draft, event, { site, review, cause }, posted);
  const metadata = { native_email: nativeEmail(draft.known, site, review) };
  record(draft, event, { site, review }, { event: "homeowner_notified_of_response", metadata });
  if (metadata.native_email === "queued" && review.reviewerEmail !== null)
    draft.notices.push({ reviewId: review.id, to: review.reviewerEmail });
}

function nativeEmail(known: Known, site: Site, review: ReviewState): NativeEmail {
  if (known.suppressing.has(site.partnerId)) return "suppressed";
  return review.reviewerEmail === null ? "no_address" : "queued";
}

const CONNECTION_EVENTS = {
  pull: { connected: "review_pull_connected", disconnected: "review_pull_disconnected" },
  post: { connected: "response_post_connected", disconnected: "response_post_disconnected" },
} as const;

/** Announced only when the axis connects or disconnects (contract 8.3); another error code is stored without. */
function applyConnection(draft: Draft, event: Connection, site: Site): void {
  const { axis, errorCode } = event;
  const [state, code] = [`${axis}Connected`, `${axis}ErrorCode`] as const;
  const isConnected = errorCode === null;
  if (site[state] === isConnected && site[code] === errorCode) return;
  const next = { ...site, [state]: isConnected, [code]: errorCode };
  draft.sites.set(site.id, next);
  if (site[state] === isConnected) return;
  const name = CONNECTION_EVENTS[axis][isConnected ? "connected" : "disconnected"];
  const cause = { axis, errorCode };
  record(draft, event, { site: next, cause }, { event: name, metadata: {} });
}

function record(
  { recorded }: Draft,
  { occurredAt }: Pick<ProviderEvent, "occurredAt">,
  subject: Subject,
  happened: Happened,
): void {
  recorded.push({ ...happened, ...subject, occurredAt });
}
