import type { ProblemCode } from "../lib/problem.ts";
import type { FlagMove, NativeEmail, ReviewEvent } from "./events.ts";
import type { Review } from "./model.ts";

/** The effect of an account's action on a review: one event, which changes its columns, no effect, or an error code. */
export type ReviewDecision =
  | { readonly kind: "write"; readonly event: ReviewEvent }
  | { readonly kind: "nothing" }
  | { readonly kind: "refuse"; readonly code: ProblemCode };

const write = (event: ReviewEvent): ReviewDecision => ({ kind: "write", event });

type State = Pick<Review, "removedAt" | "responseBody" | "flagStatus">;

/**
 * Decides about a response. The first response of a review is the event `response_submitted`, every later one
 * `response_updated`, even with the same text (contract 9.2).
 */
export function decideResponse(
  review: Pick<State, "removedAt" | "responseBody">,
  body: string,
): ReviewDecision {
  if (review.removedAt !== null) return { kind: "refuse", code: "review_removed" };
  const name = review.responseBody === null ? "response_submitted" : "response_updated";
  return write({ name, metadata: { body } });
}

/**
 * Deletes the response to a review. The response to a removed review is deleted, too, because it may still be shown
 * somewhere.
 */
export function decideResponseDeletion(review: State): ReviewDecision {
  if (review.responseBody === null) return { kind: "refuse", code: "no_response" };
  return write({ name: "response_deleted", metadata: {} });
}

/** Opens a flag on a review. A review has at most one open flag; after it is closed the review may be flagged again. */
export function decideFlag(review: State, reason: string): ReviewDecision {
  if (review.removedAt !== null) return { kind: "refuse", code: "review_removed" };
  if (isOpen(review)) return { kind: "refuse", code: "flag_open" };
  return write({ name: "review_flagged", metadata: { reason } });
}

/**
 * Moves the flag of a review. Moving it to its present status writes nothing, even if that status closed the flag:
 * the caller may be repeating a request after its answer was lost. Removed reviews are accepted, because many flags
 * ask for a removal.
 */
export function decideFlagStatus(
  review: Pick<State, "flagStatus">,
  to: FlagMove,
  nativeEmail: NativeEmail,
): ReviewDecision {
  const from = review.flagStatus;
  if (from === to) return { kind: "nothing" };
  if (from === null || !isOpen(review)) return { kind: "refuse", code: "no_open_flag" };
  return write({ name: "flag_status_changed", metadata: { from, to, native_email: nativeEmail } });
}

/**
 * Assigns the review to a user. Assigning it to its present assignee writes nothing. Removed reviews are accepted,
 * because somebody may have to look into them.
 */
export function decideAssignment(
  review: Pick<Review, "assignedUserId">,
  userId: number,
): ReviewDecision {
  if (review.assignedUserId === userId) return { kind: "nothing" };
  return write({ name: "review_assigned", metadata: { user_id: userId } });
}

/** Adds a note to a review. The note exists in the history only, so the same text twice is two notes. */
export function decideNote(body: string): ReviewDecision {
  return write({ name: "note_added", metadata: { body } });
}

function isOpen({ flagStatus }: Pick<State, "flagStatus">): boolean {
  return flagStatus === "open" || flagStatus === "under_review";
}
