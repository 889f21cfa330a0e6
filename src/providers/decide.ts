import { isoInstant } from "../lib/clock.ts";
import type { Key } from "../lib/kind-key.ts";
import { decideRemoval, type Metadata, type NativeEmail } from "../reviews/events.ts";
import type { Axis, ConnectionEventValue, RecordedAction } from "../outbox/event.ts";
import type { Reference } from "./input.ts";
import { reviewKey, type ProviderEvent, type ReportedReview } from "./model.ts";
import type { ReviewState, Site } from "./queries/look-up.ts";

/** The stored state on which the decision about a request depends; all of its rows are locked. */
export interface Known {
  readonly sites: ReadonlyMap<number, Site>;
  /** The existing reviews by `reviewKey`. */
  readonly reviews: ReadonlyMap<Key<"review">, ReviewState>;
  /** New ids by `reviewKey`, for reviews that do not exist and may be created. */
  readonly newIds: ReadonlyMap<Key<"review">, number>;
  /** Partners whose active immediate subscription suppresses our own mails (contract 9.5). */
  readonly suppressing: ReadonlySet<number>;
  /** Maps each text of the request to the profane words in it. */
  readonly profanity: ReadonlyMap<string, readonly string[]>;
}

type EventName = RecordedAction["event"];
/** An event of the history together with its metadata. */
type HistoryEvent = {
  [E in EventName]: {
    readonly event: E;
    readonly metadata: E extends keyof Metadata ? Metadata[E] : Record<string, never>;
  };
}[EventName];

/** The subject of an event: the review as it was then, or an axis of a connection. A posting has both. */
type Subject = { readonly site: Site } & (
  | { readonly review: ReviewState; readonly cause?: undefined }
  | { readonly review?: ReviewState; readonly cause: Cause }
);

/** The reason why the axis has its state, or why the posting succeeded or failed. */
export interface Cause {
  readonly axis: Axis;
  readonly errorCode: string | null;
}

/** One row for the history. */
export type Recorded = HistoryEvent & Subject & { readonly occurredAt: Date };

export type Outcome = ReturnType<typeof decideEvents>;

/** The working copy of the state while a request is decided; each event sees the changes of the events before it. */
interface Draft {
  readonly known: Known;
  readonly sites: Map<number, Site>;
  readonly reviews: Map<Key<"review">, ReviewState>;
  readonly recorded: Recorded[];
  /** One mail for every homeowner_notified_of_response event with metadata that announce a mail (contract 9.5). */
  readonly notices: { reviewId: number; to: string }[];
}

/** Replaces the site in a `reviewKey` when the event names no known site. */
const UNKNOWN_SITE = 0;

/**
 * Returns field errors for events that refer to a connection or review that does not exist. An event with other
 * errors still counts as creating its review: otherwise a later event that refers to the review would get a
 * misleading second error.
 */
export function referenceErrors(
  references: readonly Reference[],
  siteOf: (id: number) => Pick<Site, "id"> | undefined,
  existing: ReadonlySet<Key<"review">>,
): Record<string, string[]> {
  const fieldErrors: Record<string, string[]> = {};
  const begun = new Set<Key<"review">>();
  for (const { index, type, siteId, externalReviewId } of references) {
    const site = siteId === undefined ? undefined : siteOf(siteId);
    if (siteId !== undefined && site === undefined)
      fieldErrors[`events.${index}.store_review_site_id`] = [
        "is not a store's connection with this provider",
      ];
    if (externalReviewId === undefined) continue;
    const key = reviewKey(site?.id ?? UNKNOWN_SITE, externalReviewId);
    if (type === undefined || type === "review.created") begun.add(key);
    else if (site !== undefined) {
      const own = [key, reviewKey(UNKNOWN_SITE, externalReviewId)];
      if (existing.has(key) || own.some((one) => begun.has(one))) continue;
      const inReview = type === "review.updated" || type === "review.removed";
      fieldErrors[`events.${index}.${inReview ? "review." : ""}external_review_id`] = [
        "is not a review that this site has reported",
      ];
    }
  }
  return fieldErrors;
}

/** Applies the events in the order of the request. The references must be valid according to `referenceErrors`. */
export function decideEvents(events: readonly ProviderEvent[], known: Known) {
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
    /** New reviews, in their state after the last event of the request. */
    created: written.flatMap(([key, one]) => (known.reviews.has(key) ? [] : [one])),
    /** Reviews and connections that differ from their state before the request. */
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
 * Applies a provider's report of a review. A review.created for an existing review updates it, and restores a removed
 * review. A review.updated does not restore, because it may have been sent before the removal.
 */
function applyReport(
  draft: Draft,
  event: Report,
  { site, review: before }: { readonly site: Site; readonly review: ReviewState | undefined },
): void {
  const { externalReviewId } = event;
  const report = reportedOf(event.review, before);
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
    erasedAt: before?.erasedAt ?? null,
  };
  const text = { content: review.content, reviewed_at: isoInstant(review.reviewedAt) };
  const changed = before === undefined ? [] : changedFields(before, report);
  if (before === undefined) {
    record(draft, event, { site, review }, { event: "review_received", metadata: text });
  } else if (changed.length > 0 || restored) {
    const metadata = { changed, ...text, restored };
    record(draft, event, { site, review }, { event: "review_updated", metadata });
  } else if (review.reviewerEmail === before.reviewerEmail) return;
  // No body contains the email, so a change of the email alone records no event.
  draft.reviews.set(key, review);
  const words = review.profanity.filter((word) => !before?.profanity.includes(word));
  if (words.length > 0)
    record(draft, event, { site, review }, { event: "profanity_detected", metadata: { words } });
}

/** Returns what counts of a report: of an erased reviewer neither name nor address nor text (contract 10.8). */
function reportedOf(report: ReportedReview, before: ReviewState | undefined): ReportedReview {
  if (before === undefined || before.erasedAt === null) return report;
  return { ...report, reviewer: null, reviewerEmail: null, content: "" };
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

/** Records the removal; a repeated removal changes nothing. */
function applyRemoval(draft: Draft, event: ReviewEvent, { site, review }: ReviewOfSite): void {
  const changes = decideRemoval(review, event.occurredAt);
  if (changes === "unchanged") return;
  const next = { ...review, ...changes };
  draft.reviews.set(reviewKey(site.id, review.externalReviewId), next);
  record(draft, event, { site, review: next }, { event: "review_removed", metadata: {} });
}

/** Announces every posting to a review site (contract 8.1), even of a response that was written on the site itself. */
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
} as const satisfies Record<Axis, Record<string, ConnectionEventValue>>;

type AxisColumns = Pick<
  Site,
  "pullConnected" | "pullErrorCode" | "postConnected" | "postErrorCode"
>;

/** What a report, an action or a row of the history says about an axis. */
interface AxisReport extends Cause {
  readonly isConnected: boolean;
}

/** Returns a connection with an axis in the reported state. */
export function withAxis<S extends AxisColumns>(site: S, report: AxisReport): S {
  const { axis, isConnected, errorCode } = report;
  return axis === "pull"
    ? { ...site, pullConnected: isConnected, pullErrorCode: errorCode }
    : { ...site, postConnected: isConnected, postErrorCode: errorCode };
}

/**
 * Decides about a report of an axis: an event is recorded only when the axis connects or disconnects (contract 8.3). A
 * different error code alone is stored without an event. A report of the present state returns the same object.
 */
export function decideAxis<S extends AxisColumns>(site: S, report: AxisReport) {
  const [state, code] = [`${report.axis}Connected`, `${report.axis}ErrorCode`] as const;
  const isEvent = site[state] !== report.isConnected;
  const isSame = !isEvent && site[code] === report.errorCode;
  return { next: isSame ? site : withAxis(site, report), isEvent };
}

function applyConnection(draft: Draft, event: Connection, site: Site): void {
  const { axis, errorCode } = event;
  const isConnected = errorCode === null;
  const { next, isEvent } = decideAxis(site, { axis, isConnected, errorCode });
  draft.sites.set(site.id, next);
  if (!isEvent) return;
  const name = CONNECTION_EVENTS[axis][isConnected ? "connected" : "disconnected"];
  const cause = { axis, errorCode };
  record(draft, event, { site: next, cause }, { event: name, metadata: {} });
}

function record(
  { recorded }: Draft,
  { occurredAt }: Pick<ProviderEvent, "occurredAt">,
  subject: Subject,
  happened: HistoryEvent,
): void {
  recorded.push({ ...happened, ...subject, occurredAt });
}
