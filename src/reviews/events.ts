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
/** The result of one of our own mails, as the history shows it (contract 9.5). */
export type NativeEmail = (typeof NATIVE_EMAILS)[number];

const text = Type.String();
const reviewText = { content: text, reviewed_at: instantAnswer() };
const native_email = literals(NATIVE_EMAILS);
const flagState = literals(FLAG_STATUSES);

/** Schemas of the `metadata` of each review event (contract 8.2: their content depends on the action). */
export const METADATA = {
  review_received: Type.Object(reviewText),
  review_updated: Type.Object({
    changed: Type.Array(text, {
      description: "Names of the changed fields: rate, reviewer, content, reviewed_at.",
    }),
    ...reviewText,
    restored: Type.Boolean({ description: "Whether the review had been removed before." }),
  }),
  review_removed: Type.Object({}),
  profanity_detected: Type.Object({
    words: Type.Array(text, {
      description: "Profane words that an earlier version did not contain.",
    }),
  }),
  review_flagged: Type.Object({ reason: text }),
  flag_status_changed: Type.Object({ from: flagState, to: flagState, native_email }),
  review_assigned: Type.Object({ user_id: Type.Integer() }),
  note_added: Type.Object({ body: text }),
  response_submitted: Type.Object({ body: text }),
  response_updated: Type.Object({ body: text }),
  response_deleted: Type.Object({}),
  homeowner_notified_of_response: Type.Object({ native_email }),
} satisfies Record<ReviewEventValue, TObject>;

/**
 * The `metadata` of each event of a review. The body of a posting event has no metadata; the history keeps it.
 */
export type Metadata = { [E in ReviewEventValue]: Static<(typeof METADATA)[E]> } & {
  response_post_succeeded: Record<string, never>;
  response_post_failed: { error_code: string };
};

/** An event of a review with its metadata. */
export type ReviewEvent = {
  [E in ReviewEventValue]: { readonly name: E; readonly metadata: Metadata[E] };
}[ReviewEventValue];

type Columns = typeof reviews.$inferSelect;

/** The columns of a review that events change; an absent column keeps its value. */
export type ReviewChanges = Partial<
  Pick<
    Columns,
    | "removedAt"
    | "responseBody"
    | "responseUserId"
    | "respondedAt"
    | "flagStatus"
    | "flagReason"
    | "assignedUserId"
  >
>;

/** No other column, because the type check accepts additional fields of a function's result. */
type NoOther = Partial<Record<Exclude<keyof Columns, keyof ReviewChanges>, never>>;

/** The columns of a review that decide whether an event changes something. */
export type ReviewState = Pick<
  Columns,
  "removedAt" | "responseBody" | "flagStatus" | "assignedUserId"
>;

/** The origin of an event. */
export interface Act {
  /** The acting user; null if the review site caused the event. */
  readonly userId: number | null;
  /** The time of the action. */
  readonly at: Date;
}

/** The changes of an event, or that the review is already as the event says, so that nothing is recorded. */
type Effect = ReviewChanges | "unchanged";

export function isOpen({ flagStatus }: Pick<ReviewState, "flagStatus">): boolean {
  return flagStatus === "open" || flagStatus === "under_review";
}

const nothing = () => ({});
const respond = (
  _review: ReviewState,
  { body }: { readonly body: string },
  { userId, at }: Act,
) => ({ responseBody: body, responseUserId: userId, respondedAt: at });

/**
 * The rule of each event: the columns of the review that it changes, or that it changes nothing. Actions of accounts and
 * of services both use this table (contract 9.2 and 9.7).
 */
const EFFECTS: {
  readonly [E in ReviewEventValue]: (
    review: ReviewState,
    metadata: (typeof METADATA)[E]["static"],
    act: Act,
  ) => (ReviewChanges & NoOther) | "unchanged";
} = {
  // The reports of providers write the text of the review themselves (`src/intake/decide.ts`).
  review_received: () => ({ removedAt: null }),
  review_updated: (_, { restored }) => (restored ? { removedAt: null } : {}),
  review_removed: ({ removedAt }, _, { at }) =>
    removedAt === null ? { removedAt: at } : "unchanged",
  profanity_detected: nothing,
  review_flagged: (review, { reason }) =>
    isOpen(review) ? "unchanged" : { flagStatus: "open", flagReason: reason },
  // A service may report the new status of a flag without having reported the flag (contract 9.7): its reason is unknown.
  flag_status_changed: ({ flagStatus }, { to }) =>
    flagStatus === to
      ? "unchanged"
      : { flagStatus: to, ...(flagStatus === null && { flagReason: "" }) },
  review_assigned: ({ assignedUserId }, { user_id: userId }) =>
    assignedUserId === userId ? "unchanged" : { assignedUserId: userId },
  note_added: nothing,
  response_submitted: respond,
  response_updated: respond,
  response_deleted: ({ responseBody }) =>
    responseBody === null
      ? "unchanged"
      : { responseBody: null, responseUserId: null, respondedAt: null },
  homeowner_notified_of_response: nothing,
};

const isReviewEvent = (event: string): event is ReviewEventValue => Object.hasOwn(METADATA, event);

/**
 * Decides what an event with validated metadata changes at its review. An event about a site changes none of the columns.
 */
export function decideEvent(
  review: ReviewState,
  event: { readonly name: string; readonly metadata: unknown },
  act: Act,
): Effect {
  return isReviewEvent(event.name) ? effectOf(review, event.name, event.metadata, act) : {};
}

// The type parameter ties the schema of an event to its effect.
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
function effectOf<E extends ReviewEventValue>(
  review: ReviewState,
  event: E,
  metadata: unknown,
  act: Act,
) {
  if (!Value.Check(METADATA[event], metadata))
    throw new Error("Validated metadata does not match its schema.");
  return EFFECTS[event](review, metadata, act);
}
