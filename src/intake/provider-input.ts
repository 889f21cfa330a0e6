import { Type } from "@sinclair/typebox";

import { checkedByHandler, examine, examineUnder, validPartsOf } from "../http/fields.ts";
import { addMs, parseInstant } from "../lib/clock.ts";
import { isMailAddress } from "../lib/email.ts";
import { type Fields, fieldsOf, isRecord } from "../lib/fields.ts";
import type { Axis, ConnectionEventValue } from "../outbox/event.ts";
import type { Change, ReadEvents, Reference } from "./change.ts";
import {
  commonFields,
  EVENT_SCHEMAS,
  MAX_AHEAD_MS,
  MAX_EVENTS,
  ProviderEventsBody,
  type ProviderEventType,
  type RawEvent,
} from "./provider-model.ts";

/** The body as the OpenAPI document describes it; `readEvents` validates it. */
export const providerEventsBody = checkedByHandler(ProviderEventsBody);

const Envelope = Type.Object(
  {
    events: Type.Array(Type.Unknown(), {
      minItems: 1,
      maxItems: MAX_EVENTS,
      explain: `must be a list of 1 to ${MAX_EVENTS} events`,
    }),
  },
  { additionalProperties: false },
);

/** The schema for an event of unknown type. Only its valid parts are used. */
const AnyEvent = Type.Unsafe<RawEvent>(Type.Object(commonFields));

function isEventType(type: unknown): type is ProviderEventType {
  return typeof type === "string" && Object.hasOwn(EVENT_SCHEMAS, type);
}

/** Validates each event of a request separately. The database decides later whether its references exist. */
export function readEvents(body: unknown, now: Date): ReadEvents {
  const envelope = examine(Envelope, body);
  const given = validPartsOf(envelope)?.events ?? [];
  const read = given.map((one, index) => readEvent(one, index, now));
  const own = read.flatMap(({ fieldErrors }) => Object.entries(fieldErrors));
  return {
    changes: read.flatMap(({ change }) => change ?? []),
    references: read.flatMap(({ reference }) => reference ?? []),
    fieldErrors: {
      ...("fieldErrors" in envelope && envelope.fieldErrors),
      ...Object.fromEntries(own),
    },
  };
}

function readEvent(given: unknown, index: number, now: Date) {
  const prefix = `events.${index}.`;
  if (!isRecord(given)) return { fieldErrors: { [`events.${index}`]: ["must be an object"] } };
  const { type } = given;
  const times = timesOf(given);
  const broken = ruleErrors(given, times, now);
  if (!isEventType(type))
    broken.push(["type", `must be one of ${Object.keys(EVENT_SCHEMAS).join(", ")}`]);
  const shape = examineUnder(prefix, isEventType(type) ? EVENT_SCHEMAS[type] : AnyEvent, given);
  const reference = referenceOf({ ...validPartsOf(shape) }, index);
  if ("value" in shape && broken.length === 0)
    return { reference, change: toChange(shape.value, index, times), fieldErrors: {} };
  const rules = Object.fromEntries(broken.map(([name, text]) => [prefix + name, [text]]));
  return { reference, fieldErrors: { ...rules, ...("fieldErrors" in shape && shape.fieldErrors) } };
}

function referenceOf(fields: Fields, index: number): Reference {
  const { id, type, store_review_site_id: siteId, external_review_id: own, review } = fields;
  const external = own ?? fieldsOf(review)["external_review_id"];
  return {
    index,
    type: isEventType(type) ? type : undefined,
    id: typeof id === "string" ? id : undefined,
    siteId: typeof siteId === "number" ? siteId : undefined,
    externalReviewId: typeof external === "string" ? external : undefined,
  };
}

/** The instants of an event, each parsed once; undefined where the field is missing or malformed. */
type EventTimes = Readonly<Record<"occurredAt" | "reviewedAt", Date | undefined>>;

function timesOf({ occurred_at: occurredAt, review }: Fields): EventTimes {
  const reviewedAt = fieldsOf(review)["reviewed_at"];
  return { occurredAt: instantOf(occurredAt), reviewedAt: instantOf(reviewedAt) };
}

function instantOf(text: unknown): Date | undefined {
  return typeof text === "string" ? parseInstant(text) : undefined;
}

/**
 * Checks rules that a schema cannot express. The fields may have wrong types, because the schema is checked afterwards.
 */
function ruleErrors(
  { type, review, connected, error_code: code }: Fields,
  { occurredAt, reviewedAt }: EventTimes,
  now: Date,
): [string, string][] {
  const fieldErrors: [string, string][] = [];
  if (occurredAt !== undefined && occurredAt > addMs(now, MAX_AHEAD_MS))
    fieldErrors.push(["occurred_at", "is more than 5 minutes in the future"]);
  if (isTooOld(occurredAt)) fieldErrors.push(["occurred_at", TOO_OLD]);
  if (isTooOld(reviewedAt)) fieldErrors.push(["review.reviewed_at", TOO_OLD]);
  const email = fieldsOf(review)["reviewer_email"];
  // An address that cannot receive mail is refused here, because the mail queue would discard its mail after the event
  // was accepted.
  if (typeof email === "string" && !isMailAddress(email))
    fieldErrors.push(["review.reviewer_email", "must be null or an email address"]);
  if (type === "connection.changed") {
    if (connected === false && (code === undefined || code === null))
      fieldErrors.push(["error_code", "is required when the axis is disconnected"]);
    if (connected === true && code !== undefined && code !== null)
      fieldErrors.push(["error_code", "must be null when the axis is connected"]);
  }
  return fieldErrors;
}

const TOO_OLD = "is before 1970";

/**
 * Returns whether an instant is before 1970. Such instants are rejected: no review is older, and PostgreSQL rejects
 * year 0.
 */
function isTooOld(at: Date | undefined): boolean {
  return at !== undefined && at.getTime() < 0;
}

function toChange(raw: RawEvent, index: number, times: EventTimes): Change {
  const { id, store_review_site_id: siteId } = raw;
  const common = { index, id, occurredAt: validInstant(times.occurredAt) };
  if (raw.type === "connection.changed") {
    const { axis, connected } = raw;
    const errorCode = connected ? null : (raw.error_code ?? null);
    const event = CONNECTION_EVENT[axis][connected ? "connected" : "disconnected"];
    return { ...common, subject: { siteId }, what: eventOf(event, { errorCode }) };
  }
  const { external_review_id: externalReviewId } = "review" in raw ? raw.review : raw;
  const subject = { siteId, externalReviewId };
  switch (raw.type) {
    case "review.created":
    case "review.updated": {
      const { rate, reviewer, reviewer_email: reviewerEmail } = raw.review;
      // The text of a rating without text is stored as an empty string.
      const content = raw.review.content ?? "";
      const review = {
        rate,
        reviewer,
        reviewerEmail,
        content,
        reviewedAt: validInstant(times.reviewedAt),
      };
      const creates = raw.type === "review.created";
      return { ...common, subject, what: { kind: "report", creates, review } };
    }
    case "review.removed":
      return { ...common, subject, what: eventOf("review_removed") };
    case "response.posted":
      return {
        ...common,
        subject,
        what: eventOf("response_post_succeeded", { isAnnounced: true }),
      };
    case "response.failed": {
      const { error_code: errorCode } = raw;
      const metadata = { error_code: errorCode };
      return { ...common, subject, what: eventOf("response_post_failed", { errorCode, metadata }) };
    }
  }
}

type EventChange = Extract<Change["what"], { kind: "event" }>;

const eventOf = (event: EventChange["event"], more: Partial<EventChange> = {}): EventChange => ({
  kind: "event",
  event,
  metadata: {},
  errorCode: null,
  isAnnounced: false,
  ...more,
});

const CONNECTION_EVENT = {
  pull: { connected: "review_pull_connected", disconnected: "review_pull_disconnected" },
  post: { connected: "response_post_connected", disconnected: "response_post_disconnected" },
} as const satisfies Record<Axis, Record<string, ConnectionEventValue>>;

/** Returns an instant that the schema has validated, without undefined in its type. */
function validInstant(at: Date | undefined): Date {
  if (at === undefined) throw new Error("An instant is valid by its schema, but cannot be parsed.");
  return at;
}
