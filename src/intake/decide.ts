import { isoInstant } from "../lib/clock.ts";
import type { Key } from "../lib/kind-key.ts";
import { type Axis, type RecordedAction, type SiteFacts, siteStateOf } from "../outbox/event.ts";
import { decideEvent, type Metadata } from "../reviews/events.ts";
import { reviewFacts } from "../reviews/model.ts";
import type { ReviewDecision } from "./account-rules.ts";
import { type Change, reviewKey, type Subject, type What } from "./change.ts";
import type { Notice } from "./notices.ts";
import { reasonOf, type ReportedReview } from "./provider-model.ts";
import type { ReviewState, Site } from "./queries/look-up.ts";

/** The stored state that decisions depend on. The rows that changes write are locked. */
export interface Known {
  readonly sites: ReadonlyMap<number, Site>;
  /** The locked reviews, by their ids. */
  readonly reviews: ReadonlyMap<number, ReviewState>;
  /** The ids of all existing reviews that changes refer to by their external ids. */
  readonly ids: ReadonlyMap<Key<"review">, number>;
  /** New ids for reviews that do not exist yet and may be created. */
  readonly newIds: ReadonlyMap<Key<"review">, number>;
  /** Partners whose active immediate subscription suppresses the service's own mails (contract 9.5). */
  readonly suppressing: ReadonlySet<number>;
  /** Maps each reported text to its profane words. */
  readonly profanity: ReadonlyMap<string, readonly string[]>;
}

/** The working copy of the state in which changes are applied; each change sees the effects of earlier ones. */
export interface Draft extends Known {
  readonly now: Date;
  readonly sites: Map<number, Site>;
  readonly reviews: Map<number, ReviewState>;
  readonly ids: Map<Key<"review">, number>;
  readonly before: Pick<Known, "sites" | "reviews">;
  /** The actions to record. They get their ids when they are written. */
  readonly actions: Omit<RecordedAction, "eventId">[];
  readonly notices: Notice[];
}

type EventActor = RecordedAction["actor"];

/** The effect of a change; a refused change has none. */
export type Effect = "recorded" | "unchanged" | Extract<ReviewDecision, { kind: "refuse" }>;

/** The error code that explains the state of an axis or the result of a posting. */
interface AxisCause {
  readonly axis: Axis;
  readonly errorCode: string | null;
}

interface HappenedChange extends Pick<Change, "occurredAt"> {
  readonly site: Site;
  readonly actor: EventActor;
}

interface HappenedReviewChange extends HappenedChange {
  readonly review: ReviewState;
}

export function draftOf(known: Known, now: Date): Draft {
  const [sites, reviews, ids] = [new Map(known.sites), new Map(known.reviews), new Map(known.ids)];
  return { ...known, now, sites, reviews, ids, before: known, actions: [], notices: [] };
}

/** Returns the rows that have to be written for the changes in a draft. */
export function outcomeOf({ now, actions, notices, before, sites, reviews }: Draft) {
  const written = [...reviews].filter(([id, one]) => one !== before.reviews.get(id));
  return {
    actions,
    notices,
    /** New reviews, in their final state. */
    created: written.flatMap(([id, one]) => (before.reviews.has(id) ? [] : [one])),
    /** Changed reviews; `content` is null if the text is unchanged. */
    reviews: written.flatMap(([id, one]) => {
      const was = before.reviews.get(id);
      const content = one.content === was?.content ? null : one.content;
      return was === undefined ? [] : [{ ...one, content, updatedAt: now }];
    }),
    /** Changed connections. */
    sites: [...sites.values()].filter((one) => one !== before.sites.get(one.id)),
  };
}

/**
 * Returns the id of the review that a change refers to. Returns undefined for a connection, and for a review that does
 * not exist.
 */
export function reviewIdOf(draft: Pick<Draft, "ids">, subject: Subject): number | undefined {
  if ("reviewId" in subject) return subject.reviewId;
  const { siteId, externalReviewId } = subject;
  return externalReviewId === undefined
    ? undefined
    : draft.ids.get(reviewKey(siteId, externalReviewId));
}

/**
 * Applies a change to the draft. The subject of the change must exist and be locked, and its actor and metadata must be
 * valid, as `admit.ts` checks. Without an actor the review site acts.
 */
export function apply(
  draft: Draft,
  { subject, what, occurredAt }: Change,
  actor?: EventActor,
): Effect {
  const id = reviewIdOf(draft, subject);
  const review = id === undefined ? undefined : draft.reviews.get(id);
  const siteId = "siteId" in subject ? subject.siteId : review?.storeReviewSiteId;
  const site = draft.sites.get(siteId ?? 0);
  if (site === undefined) throw new Error("The connection of a change was not looked up.");
  const happened = { site, occurredAt, actor: actor ?? systemOf(site) };
  if (what.kind === "report") {
    const externalReviewId = "siteId" in subject ? subject.externalReviewId : undefined;
    if (externalReviewId === undefined)
      throw new Error("A report must refer to its review by the connection and the external id.");
    return applyReport(draft, { ...happened, ...what, before: review, externalReviewId });
  }
  const state = what.kind === "event" ? siteStateOf(what.event) : undefined;
  if (what.kind === "event" && state !== undefined) {
    const report = { ...state, errorCode: what.errorCode };
    return review === undefined
      ? applyAxis(draft, happened, what.event, report)
      : applyPosting(draft, { ...happened, review }, what, report);
  }
  if (review === undefined) throw new Error("The review of a change was not looked up.");
  return applyEvent(draft, { ...happened, review }, what);
}

const systemOf = ({ slug }: Site): EventActor => ({ type: "system", id: null, name: slug });

interface SiteReport extends HappenedChange {
  readonly externalReviewId: string;
  readonly creates: boolean;
  readonly review: ReportedReview;
  readonly before: ReviewState | undefined;
}

/**
 * Applies a site's report of a review. A report of a new review that already exists updates it, and restores it if it
 * was removed. A report of a changed review does not restore it, because it may have been sent before the removal.
 */
function applyReport(
  draft: Draft,
  { before, creates, externalReviewId, ...given }: SiteReport,
): Effect {
  const { site, occurredAt } = given;
  const report = reportedOf(given.review, before);
  const isRestored = before !== undefined && before.removedAt !== null;
  if (isRestored && !creates) return "unchanged";
  const key = reviewKey(site.id, externalReviewId);
  const id = before?.id ?? draft.newIds.get(key);
  if (id === undefined) throw new Error(`The review ${key} has no id.`);
  const isSameText = report.content === before?.content;
  const review: ReviewState = {
    ...(before ?? newReview(draft, site, externalReviewId)),
    ...report,
    id,
    reviewerEmail:
      report.reviewerEmail === undefined ? (before?.reviewerEmail ?? null) : report.reviewerEmail,
    profanity: isSameText ? before.profanity : (draft.profanity.get(report.content) ?? []),
    removedAt: null,
    updatedAt: draft.now,
  };
  const changed = before === undefined ? [] : changedFields(before, report);
  const isEvent = before === undefined || changed.length > 0 || isRestored;
  // No event body contains the email, so no event is recorded if only the email has changed.
  if (!isEvent && review.reviewerEmail === before.reviewerEmail) return "unchanged";
  draft.reviews.set(id, review);
  draft.ids.set(key, id);
  const happened = { site, occurredAt, actor: given.actor, review };
  const text = { content: review.content, reviewed_at: isoInstant(review.reviewedAt) };
  if (before === undefined) recordReview(draft, happened, "review_received", text);
  else if (isEvent)
    recordReview(draft, happened, "review_updated", { changed, ...text, restored: isRestored });
  const words = review.profanity.filter((word) => !before?.profanity.includes(word));
  if (words.length > 0) recordReview(draft, happened, "profanity_detected", { words });
  return "recorded";
}

/** Returns the columns of a new review that a report does not contain. */
function newReview({ now }: Draft, site: Site, externalReviewId: string) {
  const { partnerId, accountId, storeId, id: storeReviewSiteId } = site;
  return {
    partnerId,
    accountId,
    storeId,
    storeReviewSiteId,
    externalReviewId,
    createdAt: now,
    updatedAt: now,
    responseBody: null,
    responseUserId: null,
    respondedAt: null,
    flagStatus: null,
    flagReason: null,
    assignedUserId: null,
    externalId: null,
    isImported: false,
    erasedAt: null,
  };
}

/**
 * Returns the report to apply. If the reviewer was erased, the report to apply contains neither the reviewer's name and
 * email nor the text of the review (contract 10.8).
 */
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

/** Applies an event about a review, or a user's action, by the rule of the event (`decideEvent`). */
function applyEvent(
  draft: Draft,
  happened: HappenedReviewChange,
  what: Exclude<What, { kind: "report" }>,
): Effect {
  const { review, actor, occurredAt } = happened;
  const act = { userId: actor.id, at: occurredAt };
  const decision =
    what.kind === "command" ? what.decide(review, act) : decisionOf(review, what, act);
  if (decision.kind === "refuse") return decision;
  if (decision.kind === "nothing") return "unchanged";
  const { changes, event, notice } = decision;
  // Every user's action, including a note, sets `updated_at`, so that the review moves to the end of lists that are
  // ordered by it.
  const isChanged = what.kind === "command" || Object.keys(changes).length > 0;
  const next = isChanged ? { ...review, ...changes, updatedAt: draft.now } : review;
  draft.reviews.set(review.id, next);
  recordReview(draft, { ...happened, review: next }, event.name, event.metadata);
  if (notice !== undefined) draft.notices.push({ ...notice, reviewId: review.id });
  return "recorded";
}

function decisionOf(
  review: ReviewState,
  { event: name, metadata }: Extract<What, { kind: "event" }>,
  act: Parameters<typeof decideEvent>[2],
) {
  const changes = decideEvent(review, { name, metadata }, act);
  if (changes === "unchanged") return { kind: "nothing" } as const;
  return { kind: "write", event: { name, metadata }, changes, notice: undefined } as const;
}

/** Records a posting to a review site (contract 8.1), even of a response that was written on the site itself. */
function applyPosting(
  draft: Draft,
  happened: HappenedReviewChange,
  { event, metadata, isAnnounced }: Extract<What, { kind: "event" }>,
  cause: AxisCause,
): Effect {
  const { site, review } = happened;
  record(draft, happened, { event, about: { site: siteFacts(site, cause) }, metadata });
  if (!isAnnounced) return "recorded";
  const native_email = nativeEmail(draft, site, review);
  recordReview(draft, happened, "homeowner_notified_of_response", { native_email });
  if (native_email === "queued" && review.reviewerEmail !== null)
    draft.notices.push({ kind: "homeowner", reviewId: review.id, to: review.reviewerEmail });
  return "recorded";
}

function nativeEmail(
  { suppressing }: Known,
  { partnerId }: Site,
  { reviewerEmail }: ReviewState,
): Metadata["homeowner_notified_of_response"]["native_email"] {
  if (suppressing.has(partnerId)) return "suppressed";
  return reviewerEmail === null ? "no_address" : "queued";
}

type AxisColumns = Pick<
  Site,
  "pullConnected" | "pullErrorCode" | "postConnected" | "postErrorCode"
>;

/** The state of an axis that a change or a row of the history reports. */
interface AxisReport extends AxisCause {
  readonly isConnected: boolean;
}

/** Returns the connection with one axis in the reported state. */
export function withAxis<S extends AxisColumns>(site: S, report: AxisReport): S {
  const { axis, isConnected, errorCode } = report;
  return axis === "pull"
    ? { ...site, pullConnected: isConnected, pullErrorCode: errorCode }
    : { ...site, postConnected: isConnected, postErrorCode: errorCode };
}

/**
 * Applies the state of an axis. An event is recorded only if the axis connects or disconnects (contract 8.3). A
 * different error code alone is stored without an event.
 */
function applyAxis(
  draft: Draft,
  happened: HappenedChange,
  event: RecordedAction["event"],
  report: AxisReport,
): Effect {
  const { site } = happened;
  const [state, code] = [`${report.axis}Connected`, `${report.axis}ErrorCode`] as const;
  const isEvent = site[state] !== report.isConnected;
  if (!isEvent && site[code] === report.errorCode) return "unchanged";
  const next = withAxis(site, report);
  draft.sites.set(site.id, next);
  if (!isEvent) return "unchanged";
  record(draft, happened, { event, about: { site: siteFacts(next, report) }, metadata: {} });
  return "recorded";
}

/**
 * Builds the site part of an event body (contract 8.3). `connection_status` and `disconnect_reason` are those of the
 * event's axis (contract 8.5).
 */
export function siteFacts(
  site: AxisColumns & Pick<Site, "id" | "storeId" | "reviewSiteId" | "name">,
  { axis, errorCode }: AxisCause,
): SiteFacts {
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

type EventName = RecordedAction["event"];
type MetadataOf<E extends EventName> = E extends keyof Metadata
  ? Metadata[E]
  : RecordedAction["metadata"];

function recordReview<E extends EventName>(
  draft: Draft,
  happened: HappenedReviewChange,
  event: E,
  metadata: MetadataOf<E>,
): void {
  const { site, review } = happened;
  const { reviewSiteId, slug: sourcePlatform } = site;
  const facts = reviewFacts({ ...review, reviewSiteId, sourcePlatform });
  record(draft, happened, { event, about: { review: facts }, metadata });
}

function record(
  { actions }: Draft,
  { site, review, actor, occurredAt }: HappenedChange & { readonly review?: ReviewState },
  what: Pick<RecordedAction, "event" | "about" | "metadata">,
): void {
  const { partnerId, accountId, storeId } = review ?? site;
  actions.push({
    ...what,
    partnerId,
    accountId,
    storeId,
    storeReviewSiteId: site.id,
    reviewId: review?.id ?? null,
    actor,
    occurredAt,
  });
}
