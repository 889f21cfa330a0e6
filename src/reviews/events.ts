import { type Static, type TObject, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

import type { reviews } from "../../db/schema/reviews.ts";
import { literals } from "../http/principal.ts";
import { instantAnswer } from "../http/text.ts";
import type { ReviewEventValue } from "../outbox/event.ts";

export const FLAG_MOVES = ["under_review", "accepted", "rejected", "withdrawn"] as const;
export type FlagMove = (typeof FLAG_MOVES)[number];
export const FLAG_STATUSES = ["open", ...FLAG_MOVES] as const;
export type FlagStatus = (typeof FLAG_STATUSES)[number];

const NATIVE_EMAILS = ["queued", "suppressed", "no_address"] as const;
/** The result of a mail that this service itself sends about a review, as the history contains it (contract 9.5). */
export type NativeEmail = (typeof NATIVE_EMAILS)[number];

const anyText = Type.String();
const reviewText = { content: anyText, reviewed_at: instantAnswer() };
const native_email = literals(NATIVE_EMAILS);
const flagState = literals(FLAG_STATUSES);

/** Schemas of the `metadata` of each review event. Their fields depend on the event (contract 8.2). */
export const METADATA = {
  review_received: Type.Object(reviewText),
  review_updated: Type.Object({
    changed: Type.Array(anyText, {
      description: "Names of the changed fields: rate, reviewer, content, reviewed_at.",
    }),
    ...reviewText,
    restored: Type.Boolean({ description: "Whether the review had been removed before." }),
  }),
  review_removed: Type.Object({}),
  profanity_detected: Type.Object({
    words: Type.Array(anyText, {
      description: "Profane words that an earlier version did not contain.",
    }),
  }),
  review_flagged: Type.Object({ reason: anyText }),
  flag_status_changed: Type.Object({ from: flagState, to: flagState, native_email }),
  review_assigned: Type.Object({ user_id: Type.Integer() }),
  note_added: Type.Object({ body: anyText }),
  response_submitted: Type.Object({ body: anyText }),
  response_updated: Type.Object({ body: anyText }),
  response_deleted: Type.Object({}),
  homeowner_notified_of_response: Type.Object({ native_email }),
} satisfies Record<ReviewEventValue, TObject>;

/**
 * The `metadata` of each event about a review. The metadata of a posting event is only in the history, and not in the
 * webhook body.
 */
export type Metadata = { [E in ReviewEventValue]: Static<(typeof METADATA)[E]> } & {
  response_post_succeeded: Record<string, never>;
  response_post_failed: { error_code: string };
};

/** An event about a review with its metadata. */
export type ReviewEvent = {
  [E in ReviewEventValue]: { readonly name: E; readonly metadata: Metadata[E] };
}[ReviewEventValue];

type ReviewColumns = typeof reviews.$inferSelect;

/** The columns of a review that an event changes; an absent column keeps its value. */
export type ReviewChanges = Partial<
  Pick<
    ReviewColumns,
    | "removedAt"
    | "responseBody"
    | "responseUserId"
    | "respondedAt"
    | "flagStatus"
    | "flagReason"
    | "assignedUserId"
  >
>;

/** Forbids all other columns of a review, because TypeScript accepts additional fields in a function's result. */
type NoOtherColumns = Partial<Record<Exclude<keyof ReviewColumns, keyof ReviewChanges>, never>>;

/** The columns of a review that decide whether an event has an effect. */
export type ReviewState = Pick<
  ReviewColumns,
  "removedAt" | "responseBody" | "flagStatus" | "assignedUserId"
>;

/** The origin of an event. */
export interface Act {
  /** The acting user; null if the review site caused the event. */
  readonly userId: number | null;
  /** The time of the action. */
  readonly at: Date;
}

/**
 * The columns that an event changes. "unchanged" means that the review already is in the state that the event reports,
 * so nothing is recorded.
 */
type EventEffect = ReviewChanges | "unchanged";

export function isOpen({ flagStatus }: Pick<ReviewState, "flagStatus">): boolean {
  return flagStatus === "open" || flagStatus === "under_review";
}

const changesNothing = () => ({});
const respond = (
  _review: ReviewState,
  { body }: { readonly body: string },
  { userId, at }: Act,
) => ({ responseBody: body, responseUserId: userId, respondedAt: at });

/**
 * The rule of each event: the columns that it changes, or that it has no effect. Actions of accounts and of services
 * both use this table (contract 9.2 and 9.7).
 */
const EVENT_EFFECTS: {
  readonly [E in ReviewEventValue]: (
    review: ReviewState,
    metadata: (typeof METADATA)[E]["static"],
    act: Act,
  ) => (ReviewChanges & NoOtherColumns) | "unchanged";
} = {
  // If a provider reports the review, src/intake/decide.ts sets its text.
  review_received: () => ({ removedAt: null }),
  review_updated: (_, { restored }) => (restored ? { removedAt: null } : {}),
  review_removed: ({ removedAt }, _, { at }) =>
    removedAt === null ? { removedAt: at } : "unchanged",
  profanity_detected: changesNothing,
  review_flagged: (review, { reason }) =>
    isOpen(review) ? "unchanged" : { flagStatus: "open", flagReason: reason },
  // A service may report a new status of a flag without having reported the flag (contract 9.7). The reason is then
  // unknown and stored as an empty text.
  flag_status_changed: ({ flagStatus }, { to }) =>
    flagStatus === to
      ? "unchanged"
      : { flagStatus: to, ...(flagStatus === null && { flagReason: "" }) },
  review_assigned: ({ assignedUserId }, { user_id: userId }) =>
    assignedUserId === userId ? "unchanged" : { assignedUserId: userId },
  note_added: changesNothing,
  response_submitted: respond,
  response_updated: respond,
  response_deleted: ({ responseBody }) =>
    responseBody === null
      ? "unchanged"
      : { responseBody: null, responseUserId: null, respondedAt: null },
  homeowner_notified_of_response: changesNothing,
};

const isReviewEvent = (event: string): event is ReviewEventValue => Object.hasOwn(METADATA, event);

/** Returns the columns that an event with valid metadata changes in its review. An event about a site changes none. */
export function decideEvent(
  review: ReviewState,
  event: { readonly name: string; readonly metadata: unknown },
  act: Act,
): EventEffect {
  return isReviewEvent(event.name) ? effectOf(review, event.name, event.metadata, act) : {};
}

// The type parameter connects the schema of an event with its effect.
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
function effectOf<E extends ReviewEventValue>(
  review: ReviewState,
  event: E,
  metadata: unknown,
  act: Act,
) {
  if (!Value.Check(METADATA[event], metadata))
    throw new Error("Validated metadata does not match its schema.");
  return EVENT_EFFECTS[event](review, metadata, act);
}
