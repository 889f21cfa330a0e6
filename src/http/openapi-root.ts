import type { Json } from "./openapi-examples.ts";

type Node = Record<string, Json>;

/** A route at `{server_root}`; forms and answers of RFC 6749 have no schema of ours, so they are described here. */
export interface RootOperation {
  readonly method: string;
  readonly path: string;
}

/** Describes a route at the root by its RFC; one that is not known here gets what can be said of any. */
export function describeRoot({ method, path }: RootOperation, operationId: string): Node {
  const known = KNOWN[`${method} ${path}`];
  return {
    operationId,
    tags: ["OAuth"],
    ...(known ?? { summary: `${method} ${path}`, responses: { "200": { description: "Done." } } }),
  };
}

const text = (description = ""): Node => ({
  type: "string",
  ...(description !== "" && { description }),
});

function form(required: string[], properties: Record<string, Node>, example: Node): Node {
  const schema: Node = { type: "object", required, properties };
  return {
    required: true,
    content: { "application/x-www-form-urlencoded": { schema, example } },
  };
}

const ERROR_SCHEMA: Node = {
  type: "object",
  required: ["error"],
  properties: { error: text(), error_description: text() },
};

/** RFC 6749, 5.2. */
function refusals(byStatus: Readonly<Record<string, readonly string[]>>): Node {
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, codes]) => {
      const examples = Object.fromEntries(codes.map((error) => [error, { value: { error } }]));
      const content = { "application/json": { schema: ERROR_SCHEMA, examples } };
      return [status, { description: codes.join(", "), content }];
    }),
  );
}

function answer(description: string, schema: Node, example: Json): Node {
  return { description, content: { "application/json": { schema, example } } };
}

const page = (description: string): Node => ({
  description,
  content: { "text/html": { schema: { type: "string" } } },
});
const ALWAYS = {
  "405": ["invalid_request"],
  "413": ["invalid_request"],
  "429": ["temporarily_unavailable"],
  "500": ["server_error"],
};
const CLIENT = {
  client_id: text("Or both by HTTP Basic."),
  client_secret: text("Of a confidential client."),
};
const EXAMPLE_CLIENT = { client_id: "3f0e8f7c-5a56-4f1b-9d0c-2f6f3c1f6b7a", client_secret: "…" };

const TOKEN_ANSWER: Node = {
  type: "object",
  required: ["token_type", "expires_in", "access_token"],
  properties: {
    token_type: { const: "Bearer" },
    expires_in: { type: "integer" },
    access_token: text(),
    refresh_token: text("Single use."),
    scope: text(),
  },
};

/** RFC 7662, 2.2; without `active` there is nothing more. */
const INTROSPECTION: Node = {
  type: "object",
  required: ["active"],
  properties: {
    active: { type: "boolean" },
    scope: text(),
    client_id: text(),
    token_type: { const: "Bearer" },
    exp: { type: "integer" },
    iat: { type: "integer" },
    sub: text(),
    aud: text(),
    iss: text(),
    jti: text(),
    act: { type: "object", properties: { sub: text() } },
  },
};

const KNOWN: Readonly<Record<string, Node>> = {
  "POST /oauth/token": {
    summary: "Get a token",
    description: "Grant types `password`, `refresh_token` and `authorization_code` (RFC 6749).",
    requestBody: form(
      ["grant_type"],
      {
        grant_type: { enum: ["password", "refresh_token", "authorization_code"] },
        ...CLIENT,
        username: text("The user's email address."),
        password: text(),
        refresh_token: text(),
        code: text(),
        redirect_uri: text(),
        code_verifier: text("RFC 7636."),
        scope: text("Separated by spaces; `*` for all."),
      },
      { grant_type: "refresh_token", refresh_token: "eyJ…", ...EXAMPLE_CLIENT },
    ),
    responses: {
      "200": answer("A token.", TOKEN_ANSWER, {
        token_type: "Bearer",
        expires_in: 86_400,
        access_token: "eyJ…",
        refresh_token: "eyJ…",
        scope: "*",
      }),
      ...refusals({
        "400": [
          "invalid_request",
          "invalid_grant",
          "invalid_scope",
          "unauthorized_client",
          "unsupported_grant_type",
        ],
        "401": ["invalid_client"],
        ...ALWAYS,
        // The lock of sign-in, besides the rate limit (decisions.md 2).
        "429": ["invalid_grant", "temporarily_unavailable"],
        "503": ["temporarily_unavailable"],
      }),
    },
  },
  "POST /oauth/revoke": {
    summary: "Revoke a token",
    description:
      "RFC 7009; a token that is not the client's own is left alone and answered the same.",
    requestBody: form(
      ["token"],
      { token: text(), token_type_hint: text(), ...CLIENT },
      { token: "eyJ…", ...EXAMPLE_CLIENT },
    ),
    responses: {
      "200": answer("It is revoked, or was none.", { type: "object" }, {}),
      ...refusals({ "400": ["invalid_request"], "401": ["invalid_client"], ...ALWAYS }),
    },
  },
  "POST /oauth/introspect": {
    summary: "Ask about a token",
    description: "RFC 7662; a client sees its own tokens only.",
    requestBody: form(
      ["token"],
      { token: text(), ...CLIENT },
      { token: "eyJ…", ...EXAMPLE_CLIENT },
    ),
    responses: {
      "200": answer("What the token is worth at this moment.", INTROSPECTION, { active: false }),
      ...refusals({ "400": ["invalid_request"], "401": ["invalid_client"], ...ALWAYS }),
    },
  },
  "GET /oauth/authorize": {
    summary: "Begin the authorization code flow",
    description:
      "For a browser: our sign-in page, consent, then back to `redirect_uri` with a code.",
    parameters: [
      ["response_type", true],
      ["client_id", true],
      ["redirect_uri", true],
      ["scope", false],
      ["state", false],
      ["code_challenge", false],
      ["code_challenge_method", false],
    ].map(([name = "", required = false]) => ({ name, in: "query", required, schema: text() })),
    responses: {
      "200": page("The page that the user is to answer."),
      "302": { description: "Back to `redirect_uri`, with an error." },
      "400": page("The client or its redirect_uri is not known: nothing to go back to."),
      "429": page("Too many requests."),
      "500": page("Something went wrong on our side."),
    },
  },
  "GET /oauth/authorize/sso": {
    summary: "Go on with the authorization code flow after single sign-on",
    description: "Where our own page sends the browser: the ticket is good in that browser only.",
    parameters: ["ticket", "code", "error"].map((name) => ({
      name,
      in: "query",
      required: name === "ticket",
      schema: text(),
    })),
    responses: {
      "200": page("The consent page."),
      "302": { description: "Back to `redirect_uri`, with a code or an error." },
      "400": page("The sign-in did not work, or the page is not this browser's."),
      "429": page("Too many requests."),
      "500": page("Something went wrong on our side."),
    },
  },
  "POST /oauth/authorize": {
    summary: "Answer the page of the authorization code flow",
    description: "Sent by our own page.",
    requestBody: form([], {}, {}),
    responses: {
      "200": page("The page again, with what was wrong."),
      "303": { description: "Back to `redirect_uri`, with a code or an error." },
      "403": page("The form was sent from another site."),
      "400": page("The form is not ours, or too old."),
      "413": page("The form is too large."),
      "429": page("Too many requests."),
      "500": page("Something went wrong on our side."),
    },
  },
};
