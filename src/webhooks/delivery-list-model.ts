import { FormatRegistry, Type } from "@sinclair/typebox";

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
import { type EventNumbers, MAX_NUMBERS, readNumbers } from "../outbox/event-numbers.ts";
import {
  AttemptSummaryObject,
  DELIVERY_STATES,
  deliverySequence,
  type Outcome,
  OUTCOMES,
} from "./delivery-model.ts";

/**
 * Maximum number of attempts that each delivery in the list of deliveries contains: the newest ones. Older attempts are
 * in the list of attempts and in the response for a single delivery.
 */
export const ATTEMPTS_LISTED = 20;
const EXTERNAL_ID_CHARS = 255;

/** The state under which the list shows events that wait for the next batch, and have no delivery yet. */
export const WAITING_FOR_BATCH = "waiting_for_batch";
const LISTED_STATES = [...DELIVERY_STATES, WAITING_FOR_BATCH] as const;
type ListedState = (typeof LISTED_STATES)[number];

/** An event of a subscription, with its review and its attempts (contract 6.19). */
export const ListedDeliveryObject = Type.Object(
  {
    event_id: Type.String(),
    event: Type.String(),
    sequence: deliverySequence,
    state: literals(LISTED_STATES, { description: "State of the delivery's last round." }),
    created_at: instantAnswer(),
    settled_at: orNull(instantAnswer()),
    listed_at: instantAnswer(),
    review_id: orNull(Type.Integer()),
    external_review_id: orNull(Type.String()),
    rate: orNull(Type.Integer()),
    store_id: orNull(Type.Integer()),
    store_name: orNull(Type.String()),
    // The number of entries that the retry of this event blocks; null unless the event waits for a retry.
    waiting_behind: orNull(Type.Integer()),
    attempts: Type.Array(AttemptSummaryObject, {
      description: `The newest ${ATTEMPTS_LISTED} attempts, oldest first.`,
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

export type ListedDelivery = RowOf<typeof ListedDeliveryObject>;

export interface DeliveryPage {
  readonly rows: readonly ListedDelivery[];
  /** The cursor of the next page; undefined at the end of the list. */
  readonly next: string | undefined;
}

/** A value of the outcome filter that matches every outcome except `delivered`. */
const NOT_DELIVERED = "not_delivered";
const ATTEMPT_OUTCOMES = [...OUTCOMES, NOT_DELIVERED] as const;

/** A rough pattern for clients. The format checks each number and range. */
const NUMBERS_PATTERN = "^[1-9][0-9,-]*$";
const NUMBERS_FORMAT = "event numbers";
FormatRegistry.Set(NUMBERS_FORMAT, (text) => readNumbers(text) !== undefined);

/** Filters of the list of deliveries (contract 6.19). */
export const deliveryFilters = {
  review_id: Type.Optional(rowId()),
  external_review_id: Type.Optional(storableText([1, EXTERNAL_ID_CHARS])),
  event: Type.Optional(literals(CATALOG.map((one) => one.value))),
  event_id: Type.Optional(ulidText()),
  sequence: Type.Optional(
    Type.String({
      pattern: NUMBERS_PATTERN,
      format: NUMBERS_FORMAT,
      // The OpenAPI description omits the format, which clients do not know.
      characters: { format: undefined },
      examples: ["17-25,31"],
      explain: `must be numbers from 1 to ${Number.MAX_SAFE_INTEGER} and ranges, ${MAX_NUMBERS} in all, such as 17-25,31`,
      description: `Numbers of events (\`X-SVC-Sequence\`) and ranges, at most ${MAX_NUMBERS} in all.`,
    }),
  ),
  state: Type.Optional(
    literals(LISTED_STATES, { description: "State of the delivery's last round." }),
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

export interface DeliveryFilter {
  readonly reviewId: number | undefined;
  readonly externalReviewId: string | undefined;
  readonly event: string | undefined;
  readonly eventId: string | undefined;
  readonly numbers: readonly EventNumbers[] | undefined;
  readonly state: ListedState | undefined;
  readonly outcome: AttemptOutcome | undefined;
  readonly status: string | undefined;
  readonly q: string | undefined;
  readonly since: Date | undefined;
  readonly until: Date | undefined;
}

/** A condition on one attempt of a delivery. */
export interface AttemptCondition {
  readonly outcomes: readonly Outcome[];
  /** A pattern of SQL's `like` for the status code. An attempt without a response has the status `none`. */
  readonly status: string;
  /** Text that the error code or the response must contain; empty if any text matches. */
  readonly text: string;
}

/**
 * Derives the condition on attempts from a filter; undefined if the filter has no such condition, so that deliveries
 * without an attempt match as well.
 */
export function attemptConditionOf({
  outcome,
  status,
  q,
}: Partial<Pick<DeliveryFilter, "outcome" | "status" | "q">>): AttemptCondition | undefined {
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
 * The cursor of a page of deliveries. The list merges two walks in descending order of their keys: attempts by id, and
 * entries by sequence. All rows from these keys upwards have been read.
 */
export interface DeliveryCursor {
  readonly attempt: string;
  readonly entry: number;
}

/** The cursor of the first page, above all rows. */
export const FIRST_CURSOR: DeliveryCursor = {
  attempt: "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
  entry: Number.MAX_SAFE_INTEGER,
};

const CURSOR_PATTERN = /^([0-7][0-9A-HJKMNP-TV-Z]{25})\.(\d{1,16})$/;

export function deliveryCursorText({ attempt, entry }: DeliveryCursor): string {
  return `${attempt}.${entry}`;
}

/** Parses a cursor; undefined if the text is not the canonical form of a cursor. */
export function readDeliveryCursor(text: string): DeliveryCursor | undefined {
  const [, attempt = "", entry = ""] = CURSOR_PATTERN.exec(text) ?? [];
  const cursor = { attempt, entry: Number(entry) };
  const isValid = attempt !== "" && Number.isSafeInteger(cursor.entry);
  return isValid && deliveryCursorText(cursor) === text ? cursor : undefined;
}
