import type { DescribeWebhooks } from "../http/openapi/description.ts";
import {
  describeSchema,
  type Components,
  type Json,
  type JsonObject,
  objectIn,
} from "../http/openapi/schemas.ts";
import type { PayloadMode } from "../outbox/event.ts";
import { exampleBodyOf, FULL_BODIES, MINIMAL_BODIES } from "./event-model.ts";

const SIGNATURE_DESCRIPTION =
  "`sha256=` and 64 hex digits: the HMAC-SHA256 of the exact bytes of the body, with the subscription's secret as text. Compare in constant time, before parsing.";
const SVC_HEADERS: readonly (readonly [name: string, description: string, isOptional?: true])[] = [
  ["X-SVC-Event", "Event value."],
  [
    "X-SVC-Delivery",
    "Id of the event. It is equal in every attempt, so that a receiver recognises repeats.",
  ],
  ["X-SVC-Attempt", "Number of the attempt, 1 to 4."],
  ["X-SVC-Signature", SIGNATURE_DESCRIPTION],
  [
    "X-SVC-Signature-Previous",
    "Signature with the previous secret, during the grace period of a rotation.",
    true,
  ],
  ["X-SVC-Test", "`1` on a test event.", true],
];

const RECEIVER_RESPONSES = {
  "2XX": { description: "The event is delivered." },
  "410": { description: "The endpoint is gone; the event is not retried." },
};

/** Describes the POSTs to subscribers, as the `webhooks` part of the OpenAPI document (contract 7 and 8). */
export const describeEvents: DescribeWebhooks = (components) => {
  components.schemas["Event"] = unionOf("full", "Full body of an event.", components);
  components.schemas["MinimalEvent"] = unionOf("minimal", "Minimal body of an event.", components);
  return {
    event: { post: operation("Event", "receiveEvent", "Receive an event in full", "full") },
    minimalEvent: {
      post: operation("MinimalEvent", "receiveMinimalEvent", "Receive a minimal event", "minimal"),
    },
  };
};

/**
 * Describes deliveries a second time, as callbacks of the operation that creates a subscription. oapi-codegen drops
 * schemas that no path uses, so it would drop those that only `webhooks` uses.
 */
export const EVENT_CALLBACKS = {
  event: callbackWith("Event", "deliverEvent", "Deliver an event in full"),
  minimalEvent: callbackWith("MinimalEvent", "deliverMinimalEvent", "Deliver a minimal event"),
};

function callbackWith(body: string, operationId: string, summary: string) {
  return {
    "{$request.body#/webhook_url}": {
      post: {
        operationId,
        summary,
        description: "`webhooks` describes the request and its headers.",
        security: [],
        requestBody: {
          required: true,
          content: { "application/json": { schema: referenceTo(body) } },
        },
        responses: RECEIVER_RESPONSES,
      },
    },
  };
}

function unionOf(mode: PayloadMode, description: string, components: Components): JsonObject {
  const bodies = mode === "full" ? FULL_BODIES : MINIMAL_BODIES;
  const refs = [...bodies].map(([value, schema]): [string, Json] => [
    value,
    describeSchema(schema, components)["$ref"] ?? null,
  ]);
  // The examples are added after all bodies are described. Events may share a body, and `describeSchema` requires that
  // a shared body equals its component.
  for (const [value, { title = "" }] of [...bodies].toReversed())
    Object.assign(objectIn(components.schemas[title]), { examples: [exampleBodyOf(value, mode)] });
  return {
    description,
    examples: [exampleBodyOf("review_received", mode)],
    oneOf: [...new Set(refs.map(([, $ref]) => $ref))].map(($ref) => ({ $ref })),
    discriminator: { propertyName: "event", mapping: Object.fromEntries(refs) },
  };
}

const OPERATION_DESCRIPTIONS = {
  full: "Sent to a subscription's `webhook_url`. A 2xx within 15 seconds settles the event. A 410 fails it immediately. After any other result, it is sent again after 60, 300 and 1,800 seconds.",
  minimal: "Sent if `payload_mode` is `minimal`. Responses count as for a full event.",
} as const;

function operation(
  name: string,
  operationId: string,
  summary: string,
  mode: "full" | "minimal",
): JsonObject {
  return {
    operationId,
    summary,
    description: OPERATION_DESCRIPTIONS[mode],
    tags: ["Webhooks"],
    security: [],
    // Keeps openapi-generator from writing a client's method, because a client never sends this request.
    "x-internal": true,
    parameters: SVC_HEADERS.map(([header, about, isOptional]) => ({
      name: header,
      in: "header",
      ...(isOptional !== true && { required: true }),
      description: about,
      schema: { type: "string" },
    })),
    requestBody: {
      required: true,
      content: {
        "application/json": { schema: referenceTo(name) },
      },
    },
    responses: RECEIVER_RESPONSES,
  };
}

function referenceTo(schema: string): JsonObject {
  return { $ref: `#/components/schemas/${schema}` };
}
