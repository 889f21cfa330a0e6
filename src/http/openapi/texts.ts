import type { Json, JsonObject } from "./schemas.ts";

/** Of the description: raised with every change of it, as docs/openapi-changelog.md says. */
export const VERSION = "1.2.0";

export const INTRODUCTION = `Every error has the shape of \`Problem\`; programs read \`code\`. A 422 names every bad field at once.
Instants are ISO 8601 with offset and milliseconds. Lists answer \`data\` and \`next_cursor\`; send it back as \`cursor\` for the next page.
Requests are counted per user (600 a minute) or, without a token, per address (1,200 a minute; 300 where passwords and codes are tried); every counted answer carries \`RateLimit-*\`, which says what is left.
Every answer carries \`X-Request-Id\`, taken over from the request where that sent up to 128 letters, digits, \`.\`, \`_\` and \`-\`.
A body that an operation does not ask for is refused all the same if it is too long (413), of another type (415) or no JSON (400).
Any operation may be answered 500 \`internal_error\`: the fault is ours, and a repeat may go through.
A path or a header longer than about 16,000 bytes, or more than 150 headers, is answered 431 without a body, and the connection ends.
The scopes of an operation are what the token has to cover; \`*\` covers all.`;

const REQUEST_ID = "01JWNB9PR0ZV8X2D3F4G5H6J7K";

export const PROBLEM: JsonObject = {
  type: "object",
  description: "What every error under the base URL looks like.",
  required: ["message", "code", "request_id"],
  properties: {
    message: { type: "string", description: "For people." },
    // No `enum`: clients that were made of this document must outlive a new code.
    code: {
      type: "string",
      description: "For programs; each status has its own in its description.",
    },
    request_id: {
      type: "string",
      description: "Also in `X-Request-Id`; name it when you ask for help.",
    },
  },
  examples: [{ message: "Not found.", code: "not_found", request_id: REQUEST_ID }],
};

export const VALIDATION_PROBLEM: JsonObject = {
  description: "A problem with the fields of a request.",
  allOf: [
    { $ref: "#/components/schemas/Problem" },
    {
      type: "object",
      required: ["errors"],
      properties: {
        errors: {
          type: "object",
          description: "Every bad field, as `events.3.review.rate`, with what is wrong with it.",
          additionalProperties: { type: "array", items: { type: "string" } },
        },
      },
    },
  ],
  examples: [
    {
      message: "The request is not valid.",
      code: "validation_failed",
      request_id: REQUEST_ID,
      errors: { label: ["is required"] },
    },
  ],
};

const header = (description: string, type = "string"): JsonObject => ({
  description,
  schema: { type },
});
export const HEADERS: Record<string, Json> = {
  RateLimitLimit: header("How many requests may come at once.", "integer"),
  RateLimitRemaining: header("How many are left at this moment.", "integer"),
  RateLimitReset: header("Seconds until the limit is whole again.", "integer"),
  RateLimitPolicy: header("How many a minute come back, and the limit."),
  RetryAfter: header("Seconds to wait before the next try.", "integer"),
  Allow: header("The methods of the path."),
  WwwAuthenticate: header("`Bearer`; below `/oauth`, `Basic` where the client came by it."),
};

/** What the tags of operations stand for, in the order of the reference. */
export const TAGS = [
  {
    name: "Webhooks",
    description: "Subscriptions of a partner, their deliveries and their health.",
  },
  { name: "Partner", description: "What a partner does with its accounts and clients." },
  { name: "Reviews", description: "Reviews of an account, and what its people do about them." },
  { name: "Self-service", description: "Sessions and tokens of the signed-in user." },
  { name: "Administration", description: "For the platform's own administrators." },
  { name: "Review sites", description: "What the pullers of review sites report." },
  { name: "OAuth clients", description: "Clients that sign users in." },
  { name: "Sign-in", description: "Signing in and out, tokens, passwords." },
  { name: "OAuth", description: "RFC 6749 and its companions." },
  { name: "Documents", description: "Public documents at the root of the server." },
] as const;
