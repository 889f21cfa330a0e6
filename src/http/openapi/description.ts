import { toOpenAPISchema } from "@elysiajs/openapi";
import type { AnyElysia } from "elysia";

import { toYaml } from "../../lib/yaml.ts";
import { servedFiles } from "../files.ts";
import { type Scope, SCOPES } from "../principal.ts";
import { completeOperation, errorResponse, type RouteHooks } from "./operation.ts";
import type { Components, Json, JsonObject } from "./schemas.ts";

/** Function that describes webhook requests for the OpenAPI document. The domain that sends webhooks provides it. */
export type DescribeWebhooks = (components: Components) => JsonObject;

/**
 * Serves `/openapi.json` and `.yaml`: the API as OpenAPI 3.1. The document is made from the routes of `app` at the
 * first request and kept as bytes. Serialising 250 KB for each anonymous request would delay all other requests.
 */
export function apiDescription(app: AnyElysia, serverRoot: string, webhooks: DescribeWebhooks) {
  let made: JsonObject | undefined;
  const describe = () => (made ??= describeApi(app, serverRoot, webhooks));
  return servedFiles([
    {
      path: "/openapi.json",
      contentType: "application/json",
      body: () => JSON.stringify(describe()),
      detail: {
        tags: ["Documents"],
        operationId: "getOpenapiJson",
        summary: "Get this document",
        description: "`info.version` counts its changes.",
      },
    },
    {
      path: "/openapi.yaml",
      contentType: "application/yaml",
      body: () => toYaml(describe()),
      detail: {
        tags: ["Documents"],
        operationId: "getOpenapiYaml",
        summary: "Get this document as YAML",
        description: "The same, word for word.",
        responses: {
          "200": {
            description: "The document.",
            content: {
              "application/yaml": { schema: { type: "object" }, example: { openapi: "3.1.0" } },
            },
          },
        },
      },
    },
  ]);
}

/**
 * Makes the OpenAPI document with @elysiajs/openapi and adds the parts that the plugin does not create: errors of the
 * checks, headers of responses, examples, operation ids, and references to schemas with a title, so that each such
 * schema occurs once.
 */
function describeApi(
  app: AnyElysia,
  serverRoot: string,
  describeWebhooks: DescribeWebhooks,
): JsonObject {
  const components: Components = {
    schemas: { Problem: PROBLEM, ValidationProblem: VALIDATION_PROBLEM },
    responses: {
      405: errorResponse(["method_not_allowed"]),
      500: errorResponse(["internal_error"]),
    },
    parameters: {},
    requestBodies: {},
  };
  const hooks = hooksByOperation(app);
  const names = new Set<string>();
  const made = toOpenAPISchema(app, { methods: ["all", "head", "options"], staticFile: false });
  const paths: Record<string, JsonObject> = {};
  for (const [path, item] of Object.entries(made.paths))
    for (const [method, operation] of Object.entries(Object(item))) {
      const route = { path, method, hooks: hooks.get(`${method} ${path}`) ?? {}, names };
      const completed = completeOperation(asJson(operation), route, components);
      (paths[path] ??= {})[method] = withoutDefaultSecurity(completed);
    }
  const used = new Set(Object.values(paths).flatMap((item) => Object.values(item).flatMap(tagsOf)));
  return inlineSingleUses({
    openapi: "3.1.0",
    info: {
      title: "ReviewRelay API",
      version: VERSION,
      summary: "Sign-in, reviews and partner webhooks",
      description: INTRODUCTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: serverRoot }],
    security: DEFAULT_SECURITY,
    tags: TAGS.filter(({ name }) => used.has(name)).map((tag) => ({ ...tag })),
    paths,
    webhooks: describeWebhooks(components),
    components: {
      ...components,
      headers: HEADERS,
      securitySchemes: securitySchemes(serverRoot),
    },
  });
}

/** Indexes the declarations of routes by method and path, such as `get /path/{id}`. */
function hooksByOperation(app: AnyElysia): Map<string, RouteHooks> {
  return new Map(
    app.routes.map(({ method, path, hooks }) => [
      `${method.toLowerCase()} ${path.replaceAll(/:(\w+)/g, "{$1}")}`,
      hooks,
    ]),
  );
}

/** The default security requirement of the OpenAPI document, which applies to most operations. */
const DEFAULT_SECURITY = [{ bearer: ["*"] }, { oauth: ["*"] }];

/** Omits the security requirement of an operation if it equals the document's default. */
function withoutDefaultSecurity({ security = [], ...operation }: JsonObject): JsonObject {
  const isDefault = JSON.stringify(security) === JSON.stringify(DEFAULT_SECURITY);
  return isDefault ? operation : { ...operation, security };
}

/** Converts a schema to plain JSON. This removes the symbols and functions that TypeBox adds to schemas. */
function asJson(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value));
}

function tagsOf(operation: Json | undefined): string[] {
  const tags: unknown = Reflect.get(Object(operation), "tags");
  return Array.isArray(tags) ? tags.filter((one) => typeof one === "string") : [];
}

const MEANINGS: Readonly<Record<Scope, string>> = {
  "*": "Everything that the user may do.",
  "reviews:read": "Read reviews.",
  "reviews:write": "Answer, flag, assign and note reviews.",
  "webhooks:read": "Read subscriptions and deliveries.",
  "webhooks:write": "Make, change, test and repeat them.",
  "clients:write": "Manage OAuth clients.",
  impersonate: "Act as the owner of an account.",
};

/** Declares the security schemes of the OpenAPI document, and the meaning of each scope. */
function securitySchemes(serverRoot: string): JsonObject {
  const scopes = Object.fromEntries(SCOPES.map((scope) => [scope, MEANINGS[scope]]));
  const tokenUrl = `${serverRoot}/oauth/token`;
  const flow = { tokenUrl, refreshUrl: tokenUrl, scopes };
  return {
    bearer: {
      type: "http",
      scheme: "bearer",
      bearerFormat: "JWT",
      description: "A personal access token, or one from a sign-in.",
    },
    oauth: {
      type: "oauth2",
      description: "A token that a client was given. `password` is for first-party clients only.",
      flows: {
        authorizationCode: { authorizationUrl: `${serverRoot}/oauth/authorize`, ...flow },
        password: flow,
      },
    },
    client: {
      type: "http",
      scheme: "basic",
      description: "`client_id` and `client_secret` of an OAuth client; or both in the form.",
    },
    provider: {
      type: "apiKey",
      in: "header",
      name: "X-Provider-Signature",
      description:
        "`sha256=` and the hex HMAC of the exact body, with the secret of the review site.",
    },
  };
}

/**
 * Inlines responses, parameters and request bodies that are referenced only once, because a component makes the
 * document smaller only if it is shared. Schemas stay components, because generators name types after them.
 */
function inlineSingleUses(document: JsonObject): JsonObject {
  const counts = new Map<string, number>();
  for (const [, ref = ""] of JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g))
    counts.set(ref, (counts.get(ref) ?? 0) + 1);
  const components = Object(document["components"]);
  const usedOnce = new Map<Json, Json>();
  for (const kind of ["responses", "parameters", "requestBodies"])
    for (const [name, one] of Object.entries<Json>(components[kind])) {
      const ref = `#/components/${kind}/${name}`;
      if (counts.get(ref) !== 1) continue;
      usedOnce.set(ref, one);
      Reflect.deleteProperty(components[kind], name);
    }
  const inlined = (value: Json): Json => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(inlined);
    return usedOnce.get(value["$ref"] ?? null) ?? objectOf(value, inlined);
  };
  return objectOf(document, inlined);
}

function objectOf(value: JsonObject, change: (one: Json) => Json): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, change(one)]));
}

/** The version of the OpenAPI description, incremented with every change of it; see docs/openapi-changelog.md. */
const VERSION = "1.2.0";

const INTRODUCTION = `Every error has the shape of \`Problem\`; programs read \`code\`. A 422 names every bad field at once.
Instants are ISO 8601 with offset and milliseconds. Lists answer \`data\` and \`next_cursor\`; send it back as \`cursor\` for the next page.
Requests are counted per user (600 a minute) or, without a token, per address (1,200 a minute; 300 where passwords and codes are tried); every counted answer carries \`RateLimit-*\`, which says what is left.
Every answer carries \`X-Request-Id\`, taken over from the request where that sent up to 128 letters, digits, \`.\`, \`_\` and \`-\`.
A body that an operation does not ask for is refused all the same if it is too long (413), of another type (415) or no JSON (400).
Any operation may be answered 500 \`internal_error\`: the fault is ours, and a repeat may go through.
A path or a header longer than about 16,000 bytes, or more than 150 headers, is answered 431 without a body, and the connection ends.
The scopes of an operation are what the token has to cover; \`*\` covers all.`;

const REQUEST_ID = "01JWNB9PR0ZV8X2D3F4G5H6J7K";

const PROBLEM: JsonObject = {
  type: "object",
  description: "What every error under the base URL looks like.",
  required: ["message", "code", "request_id"],
  properties: {
    message: { type: "string", description: "For people." },
    // The schema has no `enum`, because generated clients must accept error codes that are added later.
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

const VALIDATION_PROBLEM: JsonObject = {
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
const HEADERS: Record<string, Json> = {
  RateLimitLimit: header("How many requests may come at once.", "integer"),
  RateLimitRemaining: header("How many are left at this moment.", "integer"),
  RateLimitReset: header("Seconds until the limit is whole again.", "integer"),
  RateLimitPolicy: header("How many a minute come back, and the limit."),
  RetryAfter: header("Seconds to wait before the next try.", "integer"),
  Allow: header("The methods of the path."),
  WwwAuthenticate: header("`Bearer`; below `/oauth`, `Basic` where the client came by it."),
};

/** The tags of operations, in the order in which the API reference shows them. */
const TAGS = [
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
