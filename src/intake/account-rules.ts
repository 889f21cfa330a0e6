import type { FieldErrors, ProblemCode } from "../lib/problem.ts";
import {
  type Act,
  decideEvent,
  type FlagMove,
  isOpen,
  type NativeEmail,
  type ReviewChanges,
  type ReviewEvent,
  type ReviewState,
} from "../reviews/events.ts";
import type { FlagNotice } from "./notices.ts";

/** The decision about a user's action on a review: one event with its changes, no effect, or an error code. */
export type ReviewDecision = WriteDecision | NothingDecision | RefuseDecision;

interface WriteDecision {
  readonly kind: "write";
  readonly event: ReviewEvent;
  readonly changes: ReviewChanges;
  /** The mail that follows the event, without the id of the review, which the caller adds. */
  readonly notice?: Omit<FlagNotice, "reviewId"> | undefined;
}
interface NothingDecision {
  readonly kind: "nothing";
}
interface RefuseDecision {
  readonly kind: "refuse";
  readonly code: ProblemCode;
  readonly errors?: FieldErrors;
}

function write(review: ReviewState, event: ReviewEvent, act: Act): WriteDecision | NothingDecision {
  const changes = decideEvent(review, event, act);
  return changes === "unchanged" ? { kind: "nothing" } : { kind: "write", event, changes };
}

const refuse = (code: ProblemCode): RefuseDecision => ({ kind: "refuse", code });

/**
 * Decides about a response. The first response to a review is the event `response_submitted`. Every later one is
 * `response_updated`, even with the same text (contract 9.2).
 */
export function decideResponse(review: ReviewState, body: string, act: Act): ReviewDecision {
  if (review.removedAt !== null) return refuse("review_removed");
  const name = review.responseBody === null ? "response_submitted" : "response_updated";
  return write(review, { name, metadata: { body } }, act);
}

/**
 * Decides about the deletion of a response. The response to a removed review can be deleted, too, because other sites
 * may still show the response.
 */
export function decideResponseDeletion(review: ReviewState, act: Act): ReviewDecision {
  const decision = write(review, { name: "response_deleted", metadata: {} }, act);
  return decision.kind === "nothing" ? refuse("no_response") : decision;
}

/**
 * Decides about a new flag on a review. A review has at most one open flag; after that one is closed, the review can be
 * flagged again.
 */
export function decideFlag(review: ReviewState, reason: string, act: Act): ReviewDecision {
  if (review.removedAt !== null) return refuse("review_removed");
  const decision = write(review, { name: "review_flagged", metadata: { reason } }, act);
  return decision.kind === "nothing" ? refuse("flag_open") : decision;
}

/**
 * Decides about a new status of a review's flag. If the flag already has this status, nothing is written, even if the
 * status closed the flag: the caller may be repeating a request whose response was lost. Removed reviews are accepted,
 * because many flags ask for a removal.
 */
export function decideFlagStatus(
  review: ReviewState,
  { to, native_email }: { readonly to: FlagMove; readonly native_email: NativeEmail },
  act: Act,
): ReviewDecision {
  const { flagStatus: from } = review;
  if (from === null) return refuse("no_open_flag");
  const metadata = { from, to, native_email };
  const decision = write(review, { name: "flag_status_changed", metadata }, act);
  return decision.kind === "write" && !isOpen(review) ? refuse("no_open_flag") : decision;
}

/**
 * Decides about the assignment of a review to a user. If the user is already the assignee, nothing is written. Removed
 * reviews are accepted, because somebody may have to examine them.
 */
export function decideAssignment(review: ReviewState, userId: number, act: Act): ReviewDecision {
  return write(review, { name: "review_assigned", metadata: { user_id: userId } }, act);
}

/** Decides about a new note on a review. Notes exist only in the history, so the same text twice becomes two notes. */
export function decideNote(review: ReviewState, body: string, act: Act): ReviewDecision {
  return write(review, { name: "note_added", metadata: { body } }, act);
}
