import { type ObjectOptions, type TProperties, type TSchema, Type } from "@sinclair/typebox";

import examples from "../docs/event-examples.json";
import { literals } from "../http/principal.ts";
import { FIELDS } from "../http/openapi/fields.ts";
import type { Json } from "../http/openapi/schemas.ts";
import { instantAnswer, orNull } from "../http/text.ts";
import { type Fields, fieldsOf } from "../lib/fields.ts";
import { CATALOG, type EventValue, type PayloadMode } from "../outbox/event.ts";
import { METADATA } from "../reviews/events.ts";
import { EventActor, EventReview } from "../reviews/model.ts";
import { BATCH_INTERVAL_HOURS, eventId } from "./model.ts";

/*
 * Schemas of the bodies of deliveries (contract 8), for the OpenAPI document and the catalog.
 * src/outbox/payload-format.ts composes the bodies.
 */

const id = Type.Integer();
const text = Type.String();
const withId = (title: string, example: number, description: string) =>
  Type.Object({ id }, { title, description, examples: [{ id: example }] });

const identityFields = {
  event_id: eventId,
  occurred_at: instantAnswer(),
};
const partner = withId("EventPartner", 7, "The partner that receives the event.");
const commonFields = { ...identityFields, delivered_at: instantAnswer(), partner };
const store = withId("EventStore", 3, "The store.");

const reviewSite = Type.Object(
  {
    store_review_site_id: Type.Integer(),
    review_site_id: Type.Integer(),
    name: text,
    connection_status: literals(["connected", "disconnected"], {
      description: "Status of the event's axis.",
    }),
    disconnect_reason: orNull(text, { description: "Error code; null if connected." }),
  },
  {
    title: "EventReviewSite",
    examples: [{ name: "Google" }],
    description: "The store's connection to the review site.",
  },
);

const testMetadata = Type.Object(
  { test: Type.Literal(true, { description: "Marks a test." }) },
  { title: "TestMetadata", description: "Metadata of a test event." },
);

function metadataOf(event: string): TSchema {
  const own = Object.entries(METADATA).find(([name]) => name === event)?.[1];
  return own === undefined ? testMetadata : Type.Union([own, testMetadata]);
}

/** Makes the title of an event's schema: `review_received` becomes `ReviewReceivedEvent`. */
function titleOf(event: string): string {
  const words = event.split(/[_.]/).map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join("")}Event`;
}

const reviewBody = Type.Object(
  { ...commonFields, actor: EventActor, review: EventReview },
  { title: "ReviewEventBody", description: "Fields that all review events share." },
);

function reviewEvent(value: string, description: string): TSchema {
  const own = Type.Object({ event: Type.Literal(value), metadata: metadataOf(value) });
  return Type.Intersect([reviewBody, own], { title: titleOf(value), description });
}

const siteBody = Type.Object(
  {
    ...commonFields,
    store,
    review_site: reviewSite,
    error_code: orNull(text),
    reason: orNull(text, { description: "Explanation for end users; null if connected." }),
  },
  {
    title: "SiteEventBody",
    examples: [{ reason: null }],
    description: "Fields that all site-connection events share.",
  },
);
const valuesOf = (category: "posting" | "connection") =>
  CATALOG.filter((one) => one.category === category).map((one) => one.value);
function siteEvent(own: TProperties, options: ObjectOptions): TSchema {
  return Type.Intersect([siteBody, Type.Object(own)], options);
}
const postingEvent = siteEvent(
  {
    event: literals(valuesOf("posting")),
    axis: literals(["post"]),
    review_id: Type.Integer(),
    review_history_id: Type.Integer(),
  },
  { title: "PostingEvent", description: "The review site published a response, or failed to." },
);
const connectionEvent = siteEvent(
  { event: literals(valuesOf("connection")), axis: literals(["pull", "post"]) },
  {
    title: "ConnectionEvent",
    description: "An axis of a review site was connected or disconnected.",
  },
);

function fullBody({ value, category, description }: (typeof CATALOG)[number]): TSchema {
  if (category === "posting") return postingEvent;
  return category === "connection" ? connectionEvent : reviewEvent(value, description);
}

/** Schemas of the bodies for a subscription with `payload_mode: full`, and for every batch. */
export const FULL_BODIES: ReadonlyMap<EventValue, TSchema> = new Map(
  CATALOG.map((one) => [one.value, fullBody(one)]),
);

const valuesWithEnvelope = (envelope: "review" | "site_connection") =>
  CATALOG.filter((one) => one.envelope === envelope).map((one) => one.value);
const review_history_id = Type.Integer();

const reviewId = withId("EventReviewId", 42, "The review.");
const minimalReview = Type.Object(
  {
    event: literals(valuesWithEnvelope("review")),
    ...identityFields,
    partner,
    review: reviewId,
    review_history_id,
  },
  { title: "MinimalReviewEvent", description: "Names the review to fetch again." },
);
const minimalSite = Type.Object(
  {
    event: literals(valuesWithEnvelope("site_connection")),
    ...identityFields,
    partner,
    store,
    review_site: Type.Object(
      { store_review_site_id: Type.Integer() },
      {
        title: "EventReviewSiteId",
        examples: [{ store_review_site_id: 11 }],
        description: "The store's connection to the review site.",
      },
    ),
    axis: literals(["pull", "post"]),
    review: Type.Optional(reviewId),
    review_history_id,
  },
  {
    title: "MinimalSiteEvent",
    description:
      "Names the connection, and the review of a posted response. `GET /partner/review-history?after=` with `review_history_id` minus 1 and `limit=1` returns the event.",
  },
);

/** Schemas of the bodies for a subscription with `payload_mode: minimal`. */
export const MINIMAL_BODIES: ReadonlyMap<EventValue, TSchema> = new Map(
  CATALOG.map(({ value, envelope }) => [
    value,
    envelope === "review" ? minimalReview : minimalSite,
  ]),
);

/** Meanings of fields for readers of the catalog, by path. They are more precise than those by name in `FIELDS`. */
const MEANINGS: Readonly<Record<string, string>> = {
  event: "Name of the event.",
  event_id:
    "ULID, the same in every attempt: use it to recognize a repeat. It equals `X-SVC-Delivery`.",
  occurred_at: "When it happened.",
  delivered_at: "When this attempt was sent.",
  partner: "Your company.",
  "partner.id": "Id of your company.",
  "actor.type": "`system` for a review site.",
  "actor.id": "Id of the user; null for a review site.",
  "actor.name": "Name of the user, or short name of the review site.",
  "review.id": "Id of the review, as in `GET /partner/reviews/{id}`.",
  "review.store_id": "Id of the reviewed store.",
  "review.source_platform": "Short name of the review site, such as `google`.",
  "metadata.user_id": "Id of the user to whom the review is assigned.",
  "metadata.test": "Marks a test, whose metadata has no other fields.",
  "store.id": "Id of the store.",
  "review.review_site_id": "Id of the review site.",
  "review_site.review_site_id": "Id of the review site.",
  "review_site.name": "Name of the review site.",
  review_history_id: "Id of the row in the review history.",
  review_id: "Id of the review.",
};

/** Every event value with the JSON Schema of its full body and an example (contract 6.10). */
export const CATALOG_EVENTS = CATALOG.map((one) => ({
  ...one,
  schema: asJsonSchema(one.value),
  example: fieldsOf(exampleBodyOf(one.value, "full")),
}));

/** Converts a TypeBox schema to plain JSON Schema: symbols, which only TypeBox understands, are dropped. */
function asJsonSchema(event: EventValue): Record<string, unknown> {
  return withMeanings(fieldsOf(JSON.parse(JSON.stringify(FULL_BODIES.get(event)))));
}

/** Describes each field of a schema, and of the objects in it. `path` is that of the schema in the body. */
function withMeanings(schema: Fields, path = ""): Record<string, unknown> {
  const all = (name: string) => {
    const parts = schema[name];
    return (
      Array.isArray(parts) && { [name]: parts.map((one) => withMeanings(fieldsOf(one), path)) }
    );
  };
  const properties = Object.entries(fieldsOf(schema["properties"])).map(([name, value]) => {
    const ofField = path === "" ? name : `${path}.${name}`;
    const field = withMeanings(fieldsOf(value), ofField);
    const description = MEANINGS[ofField] ?? field["description"] ?? FIELDS[name];
    return [name, { ...field, ...(description !== undefined && { description }) }];
  });
  return {
    ...schema,
    ...all("allOf"),
    ...all("anyOf"),
    ...(properties.length > 0 && { properties: Object.fromEntries(properties) }),
  };
}

/** Returns an example body, which scripts/vectors.ts has made with the payload format. */
export function exampleBodyOf(event: EventValue, mode: PayloadMode): Json {
  return JSON.parse(examples[event][mode]);
}

/** The answer of the catalog of events. */
export const CatalogAnswer = Type.Object(
  {
    events: Type.Array(
      Type.Object({
        value: Type.String(),
        category: Type.String(),
        envelope: literals(["review", "site_connection"]),
        description: Type.String(),
        in_batch: Type.Boolean(),
        subscribable: Type.Boolean(),
        schema: Type.Record(Type.String(), Type.Unknown(), {
          description: "JSON Schema of the full body.",
          examples: [{ type: "object", required: ["event", "event_id"] }],
        }),
        example: Type.Record(Type.String(), Type.Unknown(), {
          description: "A full body.",
          examples: [JSON.parse(examples.review_received.full)],
        }),
      }),
    ),
    batch_interval_hours: Type.Array(Type.Integer(), { examples: [[...BATCH_INTERVAL_HOURS]] }),
  },
  { title: "EventCatalog" },
);
