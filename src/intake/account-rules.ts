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

/** The effect of an account's action on a review: one event with its changes, no effect, or an error code. */
export type ReviewDecision = Written | Nothing | Refused;

interface Written {
  readonly kind: "write";
  readonly event: ReviewEvent;
  readonly changes: ReviewChanges;
  /** The mail that the event leads to, without its review. */
  readonly notice?: Omit<FlagNotice, "reviewId"> | undefined;
}
interface Nothing {
  readonly kind: "nothing";
}
interface Refused {
  readonly kind: "refuse";
  readonly code: ProblemCode;
  readonly errors?: FieldErrors;
}

function write(review: ReviewState, event: ReviewEvent, act: Act): Written | Nothing {
  const changes = decideEvent(review, event, act);
  return changes === "unchanged" ? { kind: "nothing" } : { kind: "write", event, changes };
}

const refuse = (code: ProblemCode): Refused => ({ kind: "refuse", code });

/**
 * Decides about a response. The first response of a review is the event `response_submitted`, every later one
 * `response_updated`, even with the same text (contract 9.2).
 */
export function decideResponse(review: ReviewState, body: string, act: Act): ReviewDecision {
  if (review.removedAt !== null) return refuse("review_removed");
  const name = review.responseBody === null ? "response_submitted" : "response_updated";
  return write(review, { name, metadata: { body } }, act);
}

/**
 * Deletes the response to a review. The response to a removed review is deleted, too, because it may still be shown
 * somewhere.
 */
export function decideResponseDeletion(review: ReviewState, act: Act): ReviewDecision {
  const decision = write(review, { name: "response_deleted", metadata: {} }, act);
  return decision.kind === "nothing" ? refuse("no_response") : decision;
}

/** Opens a flag on a review. A review has at most one open flag; after it is closed the review may be flagged again. */
export function decideFlag(review: ReviewState, reason: string, act: Act): ReviewDecision {
  if (review.removedAt !== null) return refuse("review_removed");
  const decision = write(review, { name: "review_flagged", metadata: { reason } }, act);
  return decision.kind === "nothing" ? refuse("flag_open") : decision;
}

/**
 * Moves the flag of a review. Moving it to its present status writes nothing, even if that status closed the flag:
 * the caller may be repeating a request after its answer was lost. Removed reviews are accepted, because many flags
 * ask for a removal.
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
 * Assigns the review to a user. Assigning it to its present assignee writes nothing. Removed reviews are accepted,
 * because somebody may have to look into them.
 */
export function decideAssignment(review: ReviewState, userId: number, act: Act): ReviewDecision {
  return write(review, { name: "review_assigned", metadata: { user_id: userId } }, act);
}

/** Adds a note to a review. The note exists in the history only, so the same text twice is two notes. */
export function decideNote(review: ReviewState, body: string, act: Act): ReviewDecision {
  return write(review, { name: "note_added", metadata: { body } }, act);
}
