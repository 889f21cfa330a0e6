import type { JsonObject } from "./schemas.ts";

const REQUEST_ID = "01JWNB9PR0ZV8X2D3F4G5H6J7K";

export const PROBLEM: JsonObject = {
  type: "object",
  description: "Error response of every operation under the base URL.",
  required: ["message", "code", "request_id"],
  properties: {
    message: { type: "string", description: "Message for people." },
    // There is no `enum`: generated clients must accept codes that are added later.
    code: {
      type: "string",
      description: "Error code for programs; the description of each status lists its codes.",
    },
    request_id: {
      type: "string",
      description: "Id of the request, also in `X-Request-Id`; quote it in support requests.",
    },
  },
  examples: [{ message: "Not found.", code: "not_found", request_id: REQUEST_ID }],
};

export const VALIDATION_PROBLEM: JsonObject = {
  description: "Error response for invalid fields of a request.",
  allOf: [
    { $ref: "#/components/schemas/Problem" },
    {
      type: "object",
      required: ["errors"],
      properties: {
        errors: {
          type: "object",
          description: "Error messages by field path, such as `events.3.review.rate`.",
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

/**
 * The error of a sign-in that waits for a second factor. src/auth/factors/model.ts defines the members of the
 * challenge.
 */
export const SECOND_FACTOR_PROBLEM: JsonObject = {
  description: "Error response of a sign-in that waits for a second factor.",
  allOf: [
    { $ref: "#/components/schemas/Problem" },
    {
      type: "object",
      required: ["second_factor"],
      properties: {
        second_factor: {
          type: "object",
          description: "How to continue the sign-in.",
          required: ["challenge_token", "expires_in", "methods", "enrol"],
          properties: {
            challenge_token: {
              type: "string",
              description: "A bearer token for the second-factor routes.",
            },
            expires_in: { type: "integer", description: "Lifetime of the token in seconds." },
            methods: {
              type: "array",
              description: "What the user can prove: `totp`, `passkey` or `recovery_code`.",
              items: { type: "string" },
            },
            enrol: { type: "boolean", description: "Whether the user must set up a factor first." },
          },
        },
      },
    },
  ],
  examples: [
    {
      message: "A second factor is required.",
      code: "second_factor_required",
      request_id: REQUEST_ID,
      second_factor: {
        challenge_token: "eyJhbGciOiJSUzI1NiJ9…",
        expires_in: 300,
        methods: ["totp", "recovery_code"],
        enrol: false,
      },
    },
  ],
};
