import type { DocumentDecoration } from "elysia";

/*
 * OpenAPI descriptions of the endpoints at `/oauth`. RFCs define the forms and responses of these endpoints, which
 * have no TypeBox schema, so the operations are written by hand.
 */

type RequestBody = Exclude<NonNullable<DocumentDecoration["requestBody"]>, { $ref: string }>;
type Responses = NonNullable<DocumentDecoration["responses"]>;
/** A schema of OpenAPI 3.1. Elysia's types describe OpenAPI 3.0, in which a schema has no `examples`. */
type Schema = NonNullable<RequestBody["content"][string]["schema"]> & {
  readonly examples?: readonly unknown[];
};

const text = (description = ""): Schema => ({
  type: "string",
  ...(description !== "" && { description }),
});

function form(
  required: string[],
  properties: Record<string, Schema>,
  example: unknown,
): RequestBody {
  const schema: Schema = {
    type: "object",
    ...(required.length > 0 && { required }),
    properties,
  };
  return {
    required: true,
    content: { "application/x-www-form-urlencoded": { schema, example } },
  };
}

const ERROR_SCHEMA: Schema = {
  title: "OAuthError",
  examples: [{ error: "invalid_grant", error_description: "The refresh token is expired." }],
  description: "Error response under `/oauth` (RFC 6749, 5.2).",
  type: "object",
  required: ["error"],
  properties: { error: text(), error_description: text() },
};

/** Describes error responses of an OAuth endpoint by status (RFC 6749, 5.2). */
function errorResponses(byStatus: Readonly<Record<string, readonly string[]>>): Responses {
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, codes]) => {
      const content = {
        "application/json": { schema: ERROR_SCHEMA, example: { error: codes[0] } },
      };
      const title = codes.length > 1 ? "OAuthRefused" : "OAuth";
      return [status, { title, description: `${codes.join(", ")}.`, content }];
    }),
  );
}

function answer(description: string, schema: Schema, example: unknown): Responses[string] {
  return { description, content: { "application/json": { schema, example } } };
}

const page = (description: string): Responses[string] & { title: string } => ({
  title: "Page",
  description,
  content: { "text/html": { schema: { type: "string" } } },
});
const COMMON_ERROR_PAGES: Responses = {
  "405": page("Method not supported."),
  "429": page("Too many requests."),
  "500": page("Something went wrong on our side."),
  "503": page("Try again soon."),
};
const parameter = (name: string, required = false) => ({
  name,
  in: "query",
  required,
  schema: text(),
});

const COMMON_ERRORS = {
  "405": ["invalid_request"],
  "413": ["invalid_request"],
  "429": ["temporarily_unavailable"],
  "500": ["server_error"],
  "503": ["temporarily_unavailable"],
};
const CLIENT_PARAMETERS = {
  client_id: text("Client id. Id and secret may be sent with HTTP Basic instead."),
  client_secret: text("Secret of a confidential client."),
};
const EXAMPLE_CLIENT = {
  client_id: "3f0e8f7c-5a56-4f1b-9d0c-2f6f3c1f6b7a",
  client_secret: "c7a91f04d3be8652a07f1c9e4d6b83205fa1e7c4908d2b6f35c8e0a1749d2b6f",
};

const TOKEN_ANSWER: Schema = {
  title: "OAuthToken",
  type: "object",
  required: ["token_type", "expires_in", "access_token"],
  properties: {
    token_type: { type: "string", enum: ["Bearer"] },
    expires_in: { type: "integer" },
    access_token: text(),
    refresh_token: text("Single use."),
    scope: text(),
  },
};

/**
 * JSON schema of the introspection response (RFC 7662, 2.2). For an inactive token, the response contains only
 * `active`.
 */
const INTROSPECTION: Schema = {
  title: "Introspection",
  type: "object",
  required: ["active"],
  properties: {
    active: { type: "boolean" },
    scope: text(),
    client_id: text(),
    token_type: { type: "string", enum: ["Bearer"] },
    exp: { type: "integer" },
    iat: { type: "integer" },
    sub: text(),
    aud: text(),
    iss: text(),
    jti: text(),
    act: { type: "object", properties: { sub: text() } },
  },
  examples: [
    {
      active: true,
      scope: "webhooks:read",
      client_id: EXAMPLE_CLIENT.client_id,
      token_type: "Bearer",
      exp: 1_780_401_600,
      iat: 1_780_315_200,
      sub: "31",
      aud: "https://reviews.partner.example/api",
      iss: "https://reviews.partner.example",
      jti: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
    },
  ],
};

export const TOKEN_DETAIL: DocumentDecoration = {
  operationId: "requestToken",
  security: [{}, { client: [] }],
  summary: "Get a token",
  description: "Grant types `password`, `refresh_token` and `authorization_code` (RFC 6749).",
  requestBody: form(
    ["grant_type"],
    {
      grant_type: { type: "string", enum: ["password", "refresh_token", "authorization_code"] },
      ...CLIENT_PARAMETERS,
      username: text("The user's email address."),
      password: text(),
      refresh_token: text(),
      code: text(),
      redirect_uri: text(),
      code_verifier: text("PKCE verifier (RFC 7636)."),
      scope: text("Separated by spaces; `*` for all."),
    },
    { grant_type: "refresh_token", refresh_token: "eyJhbGciOiJSUzI1NiJ9…", ...EXAMPLE_CLIENT },
  ),
  responses: {
    "200": answer("A token.", TOKEN_ANSWER, {
      token_type: "Bearer",
      expires_in: 86_400,
      access_token: "eyJhbGciOiJSUzI1NiJ9…",
      refresh_token: "eyJhbGciOiJSUzI1NiJ9…",
      scope: "*",
    }),
    ...errorResponses({
      "400": [
        "invalid_request",
        "invalid_grant",
        "invalid_scope",
        "unauthorized_client",
        "unsupported_grant_type",
      ],
      "401": ["invalid_client"],
      ...COMMON_ERRORS,
      // Status 429 has two codes: `temporarily_unavailable` if the rate limit is exceeded, and `invalid_grant` if the
      // sign-in is locked (contract 4.9).
      "429": ["invalid_grant", "temporarily_unavailable"],
    }),
  },
};

export const REVOKE_DETAIL: DocumentDecoration = {
  operationId: "revokeOAuthToken",
  security: [{}, { client: [] }],
  summary: "Revoke a token",
  description: "RFC 7009. A token of another client is not revoked, but the response is the same.",
  requestBody: form(
    ["token"],
    { token: text(), token_type_hint: text(), ...CLIENT_PARAMETERS },
    { token: "eyJhbGciOiJSUzI1NiJ9…", ...EXAMPLE_CLIENT },
  ),
  responses: {
    "200": answer("The token is revoked or was invalid.", { type: "object" }, {}),
    ...errorResponses({ "400": ["invalid_request"], "401": ["invalid_client"], ...COMMON_ERRORS }),
  },
};

export const INTROSPECT_DETAIL: DocumentDecoration = {
  operationId: "introspectToken",
  security: [{}, { client: [] }],
  summary: "Introspect a token",
  description: "RFC 7662. A client sees only its own tokens.",
  requestBody: form(
    ["token"],
    { token: text(), ...CLIENT_PARAMETERS },
    { token: "eyJhbGciOiJSUzI1NiJ9…", ...EXAMPLE_CLIENT },
  ),
  responses: {
    "200": answer("Current state of the token.", INTROSPECTION, { active: false }),
    ...errorResponses({ "400": ["invalid_request"], "401": ["invalid_client"], ...COMMON_ERRORS }),
  },
};

export const AUTHORIZE_DETAIL: DocumentDecoration = {
  operationId: "authorize",
  summary: "Start the authorization code flow",
  description:
    "The browser shows the sign-in and consent pages, then returns to `redirect_uri` with a code.",
  parameters: [
    parameter("response_type", true),
    parameter("client_id", true),
    parameter("redirect_uri", true),
    ...["scope", "state", "code_challenge", "code_challenge_method"].map((name) => parameter(name)),
  ],
  responses: {
    "200": page("Sign-in or consent page."),
    "302": { description: "Redirect to `redirect_uri` with an error." },
    "400": page("Unknown client or redirect_uri, so no redirect."),
    ...COMMON_ERROR_PAGES,
  },
};

export const AUTHORIZE_RETURN_DETAIL: DocumentDecoration = {
  operationId: "returnFromProvider",
  summary: "Continue the authorization code flow after single sign-on",
  description: "The service's own page redirects here. The ticket is valid only in that browser.",
  parameters: [parameter("ticket", true), parameter("code"), parameter("error")],
  responses: {
    "200": page("The consent page."),
    "302": { description: "Redirect to `redirect_uri` with a code or an error." },
    "400": page("The sign-in failed or was started in another browser."),
    ...COMMON_ERROR_PAGES,
  },
};

export const ANSWER_AUTHORIZE_DETAIL: DocumentDecoration = {
  operationId: "answerAuthorizePage",
  summary: "Submit the page of the authorization code flow",
  description: "The service's own page sends this form.",
  requestBody: form([], {}, {}),
  responses: {
    "200": page("The page again, with its errors."),
    "303": { description: "Redirect to `redirect_uri` with a code or an error." },
    "403": page("The form was sent from another site."),
    "400": page("Unknown or expired form."),
    "413": page("The form is too large."),
    ...COMMON_ERROR_PAGES,
  },
};
