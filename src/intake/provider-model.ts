import { Type, type Static, type TProperties } from "@sinclair/typebox";

import { instantText, orNull, rowId, storableText } from "../http/text.ts";

// Limits for a provider's input. Numbers that contract 9.1 does not specify were chosen here.
export const MAX_EVENTS = 500;
/** Maximum size in bytes of a request with provider events: 1 MiB (contract 2.7). */
export const BODY_LIMIT = 1024 * 1024;
/** Time in ms by which a provider's clock may be ahead of this service's clock (contract 8). */
export const MAX_AHEAD_MS = 5 * 60_000;
/** The pattern of a provider's slug in paths and bodies. */
export const PROVIDER_SLUG = "^[a-z0-9][a-z0-9_-]{0,63}$";
const EVENT_ID_CHARS = 200;
const EXTERNAL_ID_CHARS = 255;
const REVIEWER_CHARS = 200;
/** Maximum length of a mail address in characters (RFC 5321, 4.5.3.1). */
const EMAIL_CHARS = 254;
const CONTENT_CHARS = 20_000;

/**
 * Reasons why an axis is disconnected or a posting failed: a code that never changes its meaning, and a sentence that
 * may be shown to an end user (contract 8.6). The contract specifies E-001, E-002, E-007 and E-008; the other codes
 * were chosen here by the same rule.
 */
export const ERROR_REASONS: Readonly<Record<string, string>> = {
  "E-001": "No URL is configured for this review site.",
  "E-002": "The sign-in details for this review site have expired; please sign in again.",
  "E-003": "The review site did not accept the sign-in details; please enter them again.",
  "E-004": "The business was not found at the configured URL.",
  "E-005": "The connected user may not manage this business on the review site.",
  "E-006": "The account on the review site is locked or suspended.",
  "E-007": "The review site asks for two-factor authentication; please confirm the sign-in.",
  "E-008": "Collecting data from this review site is paused.",
  "E-009": "The review site cannot be reached at the moment.",
  "E-010": "The review site limits how often it may be asked; the connection will be tried again.",
  "E-011": "The review site has changed and our connection is being adapted.",
  "E-012": "The review site rejected the response because of its content rules.",
  "E-013": "The response is too long for the review site.",
  "E-014": "The review site does not take responses to this review.",
  "E-015": "The review no longer exists on the review site.",
};
const CODE_CHARS = 64;

/** Returns the reason for an error code; `Unknown` for a code that only the review site knows. */
export function reasonOf(code: string | null): string | null {
  if (code === null) return null;
  return (Object.hasOwn(ERROR_REASONS, code) && ERROR_REASONS[code]) || "Unknown";
}

const closedObject = { additionalProperties: false };
/** Schema of an error code. It also accepts codes that are not in `ERROR_REASONS` (contract 9.2). */
const errorCode = storableText([1, CODE_CHARS]);

const email = storableText([3, EMAIL_CHARS]);

/** The id has a title, which makes it a named schema of the API description, because several bodies share it. */
const externalId = Object.assign(storableText([1, EXTERNAL_ID_CHARS]), {
  title: "ExternalReviewId",
  examples: ["g-7781"],
  description: "The review's id at its site.",
});
const eventId = Object.assign(storableText([1, EVENT_ID_CHARS]), {
  title: "SiteEventId",
  examples: ["google-2026-06-01-5521"],
  description: "The event's id at its site.",
});
const storeReviewSiteId = Object.assign(rowId(), {
  title: "StoreReviewSiteId",
  examples: [11],
  description: "Id of the store's connection to the review site.",
});

const reviewFields = {
  external_review_id: externalId,
  rate: Type.Integer({ minimum: 1, maximum: 5 }),
  reviewer: orNull(storableText([1, REVIEWER_CHARS]), {
    explain: `must be null, or text of 1 to ${REVIEWER_CHARS} characters`,
  }),
  reviewer_email: Type.Optional(orNull(email, { explain: "must be null or an email address" })),
  content: orNull(storableText([1, CONTENT_CHARS]), {
    explain: `must be null for a rating without text, or text of 1 to ${CONTENT_CHARS} characters`,
  }),
  reviewed_at: instantText(),
};

/** Fields that every event has. */
export const commonFields = {
  id: eventId,
  occurred_at: instantText(),
  store_review_site_id: storeReviewSiteId,
};

export const ReportedReview = Type.Object(reviewFields, {
  ...closedObject,
  title: "ReportedReview",
  description: "A review as reported by its site.",
});
/** The schema of a removal requires only the id of the review. */
const reportedRemoval = Type.Object(
  { ...Type.Partial(Type.Object(reviewFields)).properties, external_review_id: externalId },
  {
    ...closedObject,
    title: "ReportedRemoval",
    examples: [{ external_review_id: "g-7781" }],
    description: "The review that was removed.",
  },
);

function eventOf<T extends string, F extends TProperties>(type: T, fields: F) {
  return Type.Object({ ...commonFields, type: Type.Literal(type), ...fields }, closedObject);
}

/** One schema per event type, so that an error names `review.rate` and not a branch of a union. */
export const EVENT_SCHEMAS = {
  "review.created": eventOf("review.created", { review: ReportedReview }),
  "review.updated": eventOf("review.updated", { review: ReportedReview }),
  "review.removed": eventOf("review.removed", { review: reportedRemoval }),
  "response.posted": eventOf("response.posted", {
    external_review_id: externalId,
    // Null is allowed because some pullers always send every field, as in connection.changed.
    error_code: Type.Optional(
      Type.Null({
        explain: "must be null or absent: the response was posted",
        description: "Null, because the response was posted.",
        // The API description shows a string or null, because code generators support no type that consists of null
        // alone.
        characters: { type: ["string", "null"] },
      }),
    ),
  }),
  "response.failed": eventOf("response.failed", {
    external_review_id: externalId,
    error_code: errorCode,
  }),
  "connection.changed": eventOf("connection.changed", {
    axis: Type.Union([Type.Literal("pull"), Type.Literal("post")]),
    connected: Type.Boolean(),
    error_code: Type.Optional(
      orNull(errorCode, {
        explain: `must be text of 1 to ${CODE_CHARS} characters, or null when connected`,
      }),
    ),
  }),
};

export type ProviderEventType = keyof typeof EVENT_SCHEMAS;

/** Describes the body in the OpenAPI document; `readEvents` validates each event with its own schema. */
export const ProviderEventsBody = Type.Object(
  {
    events: Type.Array(Type.Union(Object.values(EVENT_SCHEMAS)), {
      minItems: 1,
      maxItems: MAX_EVENTS,
    }),
  },
  { ...closedObject, title: "ProviderEvents" },
);

export const AcceptedAnswer = Type.Object(
  { accepted: Type.Integer(), duplicates: Type.Integer() },
  { title: "AcceptedEvents", examples: [{ accepted: 12, duplicates: 1 }] },
);

export type RawEvent = Static<(typeof EVENT_SCHEMAS)[keyof typeof EVENT_SCHEMAS]>;

/** A review as the provider reports it. */
export interface ReportedReview {
  readonly rate: number;
  readonly reviewer: string | null;
  /** The reviewer's email. Undefined if the report does not contain it; the stored email is then kept. */
  readonly reviewerEmail: string | null | undefined;
  readonly content: string;
  readonly reviewedAt: Date;
}

/**
 * Returns the associated data of a provider's sealed secret. Because of it, a ciphertext that is copied to another
 * provider cannot be opened.
 */
export function providerSecretContext(slug: string): string {
  return `provider:${slug}`;
}
