import { Type } from "@sinclair/typebox";

import { literals } from "../http/principal.ts";
import type { RowOf } from "../http/shown.ts";
import {
  instantAnswer,
  instantText,
  orNull,
  rowId,
  searchText,
  storableText,
  ulidText,
} from "../http/text.ts";
import { CATALOG } from "../outbox/event.ts";
import {
  AttemptSummaryObject,
  DELIVERY_STATES,
  type DeliveryState,
  type Outcome,
  OUTCOMES,
} from "./delivery-model.ts";

/**
 * The number of newest attempts that a message contains. The list of attempts and the delivery have the older ones,
 * too.
 */
export const ATTEMPTS_OF_MESSAGE = 20;
const EXTERNAL_ID_CHARS = 255;

/** An event of a subscription, with its review and its attempts (contract 6.19). */
export const MessageObject = Type.Object(
  {
    event_id: Type.String(),
    event: Type.String(),
    sequence: Type.Integer({ description: "Sequence of its last round." }),
    state: literals(DELIVERY_STATES, { description: "State of the event's last round." }),
    created_at: instantAnswer(),
    settled_at: orNull(instantAnswer()),
    review_id: orNull(Type.Integer()),
    external_review_id: orNull(Type.String()),
    rate: orNull(Type.Integer()),
    store_id: orNull(Type.Integer()),
    store_name: orNull(Type.String()),
    // The number of entries that the retry of this event blocks; null unless the event waits for a retry.
    waiting_behind: orNull(Type.Integer()),
    attempts: Type.Array(AttemptSummaryObject, {
      description: `The newest ${ATTEMPTS_OF_MESSAGE} attempts, oldest first.`,
    }),
  },
  {
    title: "EventMessage",
    examples: [
      {
        sequence: 1_042,
        state: "delivered",
        settled_at: "2026-06-01T12:00:00.000+00:00",
        waiting_behind: null,
      },
    ],
  },
);

export type Message = RowOf<typeof MessageObject>;

/** A value of the outcome filter that matches every outcome except `delivered`. */
const NOT_DELIVERED = "not_delivered";
const ATTEMPT_OUTCOMES = [...OUTCOMES, NOT_DELIVERED] as const;

/** Filters of the list of messages (contract 6.19). */
export const messageFilters = {
  review_id: Type.Optional(rowId()),
  external_review_id: Type.Optional(storableText([1, EXTERNAL_ID_CHARS])),
  event: Type.Optional(literals(CATALOG.map((one) => one.value))),
  event_id: Type.Optional(ulidText()),
  state: Type.Optional(
    literals(DELIVERY_STATES, { description: "State of the event's last round." }),
  ),
  outcome: Type.Optional(literals(ATTEMPT_OUTCOMES)),
  status: Type.Optional(
    Type.String({
      pattern: "^([1-5]xx|[1-5][0-9][0-9]|none)$",
      examples: ["5xx"],
      explain: "must be a status such as 404, a class such as 5xx, or none",
      description: "A status code, a class such as `5xx`, or `none` for no response.",
    }),
  ),
  q: Type.Optional(searchText()),
  since: Type.Optional(instantText()),
  until: Type.Optional(instantText()),
};

type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

export interface MessageFilter {
  readonly reviewId: number | undefined;
  readonly externalReviewId: string | undefined;
  readonly event: string | undefined;
  readonly eventId: string | undefined;
  readonly state: DeliveryState | undefined;
  readonly outcome: AttemptOutcome | undefined;
  readonly status: string | undefined;
  readonly q: string | undefined;
  readonly since: Date | undefined;
  readonly until: Date | undefined;
}

/** A condition on one attempt of a message. */
export interface AttemptCondition {
  readonly outcomes: readonly Outcome[];
  /** A pattern of SQL's `like` for the status code, or for `none` where no response came. */
  readonly status: string;
  /** Text that the error code or the response contains; empty for any. */
  readonly text: string;
}

/**
 * Derives the condition on attempts from a filter; undefined if the filter has no such condition, so that a message
 * needs no attempt.
 */
export function attemptConditionOf({
  outcome,
  status,
  q,
}: Partial<Pick<MessageFilter, "outcome" | "status" | "q">>): AttemptCondition | undefined {
  if (outcome === undefined && status === undefined && q === undefined) return undefined;
  const named = outcomesNamed(outcome).filter(
    (one) => status === undefined || mayHave(one, status),
  );
  return {
    outcomes: q === undefined ? named : named.filter((one) => one !== "delivered"),
    status: status?.replaceAll("x", "_") ?? "%",
    text: q ?? "",
  };
}

function outcomesNamed(outcome: AttemptOutcome | undefined): readonly Outcome[] {
  if (outcome === undefined) return OUTCOMES;
  return OUTCOMES.filter(
    (one) => one === outcome || (outcome === NOT_DELIVERED && one !== "delivered"),
  );
}

/** Whether an outcome and a status may occur together: an attempt is delivered if and only if its status is 2xx. */
function mayHave(outcome: Outcome, status: string): boolean {
  return status.startsWith("2") === (outcome === "delivered");
}

/**
 * The cursor of a page of messages. The list merges two walks in descending order of their keys: attempts by id, and
 * entries by sequence. All rows from these keys upwards have been read.
 */
export interface MessageCursor {
  readonly attempt: string;
  readonly entry: number;
}

/** The cursor of the first page, above all rows. */
export const FIRST_CURSOR: MessageCursor = {
  attempt: "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
  entry: Number.MAX_SAFE_INTEGER,
};

const CURSOR = /^([0-7][0-9A-HJKMNP-TV-Z]{25})\.(\d{1,16})$/;

export function messageCursorText({ attempt, entry }: MessageCursor): string {
  return `${attempt}.${entry}`;
}

/** Parses a cursor; undefined if the text is not the canonical form of a cursor. */
export function readMessageCursor(text: string): MessageCursor | undefined {
  const [, attempt = "", entry = ""] = CURSOR.exec(text) ?? [];
  const cursor = { attempt, entry: Number(entry) };
  const isValid = attempt !== "" && Number.isSafeInteger(cursor.entry);
  return isValid && messageCursorText(cursor) === text ? cursor : undefined;
}
