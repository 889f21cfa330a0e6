import type { AnyElysia } from "elysia";

import { toYaml } from "../../lib/bun.ts";
import { servedFiles } from "../files.ts";
import { SCOPES } from "../principal.ts";
import { completeExamples } from "./examples.ts";
import { describeOperation, errorResponse } from "./operation.ts";
import { PROBLEM, SECOND_FACTOR_PROBLEM, VALIDATION_PROBLEM } from "./problems.ts";
import { type Components, type Json, type JsonObject, objectIn } from "./schemas.ts";

/** Function that describes webhook requests for the OpenAPI document. `src/webhooks` provides it. */
export type DescribeWebhooks = (components: Components) => JsonObject;

interface DescriptionOptions {
  readonly serverRoot: string;
  /** Paths where a GET request changes data. */
  readonly getHasEffect: ReadonlySet<string>;
  readonly describeWebhooks: DescribeWebhooks;
}

/**
 * Returns a function that builds the OpenAPI 3.1 document from the routes of `app` at its first call and caches it. So
 * the document also contains routes that are added to `app` before the first call.
 */
export function apiDocument(app: AnyElysia, given: DescriptionOptions): () => JsonObject {
  let made: JsonObject | undefined;
  return () => (made ??= describeApi(app, given));
}

/**
 * Serves `/openapi.json` and `/openapi.yaml`. They are stored as bytes, because serialising 250 KB for each anonymous
 * request would delay all other requests.
 */
export function apiDescription(describe: () => JsonObject) {
  return servedFiles([
    {
      path: "/openapi.json",
      contentType: "application/json",
      body: () => JSON.stringify(describe()),
      detail: {
        tags: ["Documents"],
        operationId: "getOpenapiJson",
        summary: "Get this document",
        description: "`info.version` is incremented with every change.",
        responses: {
          "200": {
            description: "The document.",
            content: {
              "application/json": { schema: { type: "object" }, example: { openapi: "3.1.0" } },
            },
          },
        },
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
        description: "The same document in YAML.",
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
 * Builds the OpenAPI document from the declarations of the routes: their schemas and details, the errors of their
 * checks, headers of responses, examples, operation ids, and references to schemas with a title. Each such schema then
 * occurs only once.
 */
function describeApi(
  app: AnyElysia,
  { serverRoot, getHasEffect, describeWebhooks }: DescriptionOptions,
): JsonObject {
  const components: Components = {
    schemas: {
      Problem: PROBLEM,
      ValidationProblem: VALIDATION_PROBLEM,
      SecondFactorProblem: SECOND_FACTOR_PROBLEM,
    },
    responses: {
      405: errorResponse(["method_not_allowed"]),
      500: errorResponse(["internal_error"]),
    },
    parameters: {},
    requestBodies: {},
  };
  const names = new Set<string>();
  const paths: Record<string, JsonObject> = {};
  for (const { path: route, method: verb, hooks } of app.routes) {
    const method = verb.toLowerCase();
    if (hooks.detail?.hide === true || UNDESCRIBED_METHODS.has(method)) continue;
    const path = describedPath(route);
    const hasEffect = method !== "get" || getHasEffect.has(route);
    const operation = describeOperation({ path, method, hasEffect, hooks, names }, components);
    (paths[path] ??= {})[method] = withoutDefaultSecurity(operation);
  }
  const webhooks = describeWebhooks(components);
  const { responses, requestBodies } = components;
  const bodies = { paths, webhooks, responses, requestBodies };
  completeExamples(components, namesOfSchemas(bodies));
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
    webhooks,
    components: {
      ...components,
      headers: HEADERS,
      securitySchemes: securitySchemes(serverRoot),
    },
  });
}

/** Methods of routes that answer for other routes. */
const UNDESCRIBED_METHODS = new Set(["all", "head", "options"]);

/** Converts the path of a route to the form of OpenAPI: `/path/:id` becomes `/path/{id}`. */
const describedPath = (path: string) => path.replaceAll(/:(\w+)/g, "{$1}");

/** The default security requirement of the OpenAPI document, which applies to most operations. */
const DEFAULT_SECURITY = [{ bearer: ["*"] }, { oauth: ["*"] }];

/** Omits the security requirement of an operation if it equals the document's default. */
function withoutDefaultSecurity({ security = [], ...operation }: JsonObject): JsonObject {
  const isDefault = JSON.stringify(security) === JSON.stringify(DEFAULT_SECURITY);
  return isDefault ? operation : { ...operation, security };
}

/** Returns the names of the schemas that a part of the document references. */
function namesOfSchemas(part: JsonObject): Set<string> {
  const references = JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g);
  return new Set([...references].map(([, name = ""]) => name));
}

function tagsOf(operation: Json | undefined): string[] {
  const { tags } = objectIn(operation);
  return Array.isArray(tags) ? tags.filter((one) => typeof one === "string") : [];
}

const SCOPE_MEANINGS: Readonly<Record<(typeof SCOPES)[number], string>> = {
  "*": "Full access of the user.",
  "reviews:read": "Read reviews.",
  "reviews:write": "Respond to, flag, assign and annotate reviews.",
  "webhooks:read": "Read subscriptions and deliveries.",
  "webhooks:write": "Create, change, test and delete subscriptions; redeliver events.",
  "clients:write": "Manage OAuth clients.",
  impersonate: "Act as the owner of an account.",
};

/** Declares the security schemes of the OpenAPI document, and the meaning of each scope. */
function securitySchemes(serverRoot: string): JsonObject {
  const scopes = Object.fromEntries(SCOPES.map((scope) => [scope, SCOPE_MEANINGS[scope]]));
  const tokenUrl = `${serverRoot}/oauth/token`;
  const flow = { tokenUrl, refreshUrl: tokenUrl, scopes };
  return {
    bearer: {
      type: "http",
      scheme: "bearer",
      bearerFormat: "JWT",
      description: "A personal access token, or a token from a sign-in.",
    },
    oauth: {
      type: "oauth2",
      description:
        "A token issued to an OAuth client. The `password` flow is for first-party clients only.",
      flows: {
        authorizationCode: { authorizationUrl: `${serverRoot}/oauth/authorize`, ...flow },
        password: flow,
      },
    },
    client: {
      type: "http",
      scheme: "basic",
      description:
        "`client_id` and `client_secret` of an OAuth client, which may also be form fields.",
    },
    provider: {
      type: "apiKey",
      in: "header",
      name: "X-Provider-Signature",
      description:
        "`sha256=` and the hex HMAC-SHA256 of the exact body, keyed with the secret of the review site. With `X-Provider-Timestamp`, of the timestamp, a dot and the body.",
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
  const components = objectIn(document["components"]);
  const usedOnce = new Map<Json, Json>();
  for (const kind of ["responses", "parameters", "requestBodies"]) {
    const ones = objectIn(components[kind]);
    for (const [name, one] of Object.entries(ones)) {
      const ref = `#/components/${kind}/${name}`;
      if (counts.get(ref) !== 1) continue;
      usedOnce.set(ref, one);
      Reflect.deleteProperty(ones, name);
    }
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

/** The version of the description, incremented with every change of it; see docs/openapi-changelog.md. */
const VERSION = "1.7.0";

const INTRODUCTION = `Every error has the shape of \`Problem\`; programs read \`code\`. A 422 lists all invalid fields.
Instants are ISO 8601 with offset and milliseconds. A list returns \`data\` and \`next_cursor\`; send \`next_cursor\` as \`cursor\` to get the next page. Without \`cursor\` you get the first page.
The rate limit is 600 requests a minute per user or, without a token, 1,200 per address (300 where passwords and codes are checked); tokens of services are exempt. Every counted response has \`RateLimit-*\` headers with the remaining requests.
Every response has an \`X-Request-Id\`. It equals the \`X-Request-Id\` of the request if that has up to 128 letters, digits, \`.\`, \`_\` and \`-\`.
Every operation rejects a body that is too long (413) or of another type (415); one without a body still rejects what is not JSON (400).
Any operation may return 500 \`internal_error\` (the server failed) or 503 \`unavailable\` (a store cannot be reached; see \`Retry-After\`). A retry may succeed.
A path or a header longer than about 16,000 bytes, or more than 150 headers, gets 431 without a body. An HTTP version other than 1.0 and 1.1 gets 505. The connection then closes.
A method that a path does not support gets 405 \`method_not_allowed\`, with \`Allow\`.
A token needs the scopes that an operation lists; \`*\` covers all.`;

const header = (description: string, type = "string"): JsonObject => ({
  description,
  schema: { type },
});
const HEADERS: Record<string, Json> = {
  RateLimitLimit: header("Maximum burst of requests.", "integer"),
  RateLimitRemaining: header("Requests left now.", "integer"),
  RateLimitReset: header("Seconds until the full limit is available again.", "integer"),
  RateLimitPolicy: header("Requests restored per minute, and the burst."),
  RetryAfter: header("Seconds to wait before a retry.", "integer"),
  Allow: header("Methods that the path supports."),
  WwwAuthenticate: header("`Bearer`; under `/oauth`, `Basic` if the client used it."),
};

/** The tags of operations, in the order in which the API reference shows them. */
export const TAGS = [
  {
    name: "Webhooks",
    description: "Subscriptions of a partner, their deliveries and their health.",
  },
  { name: "Partner", description: "A partner's team, accounts, clients and tokens." },
  {
    name: "Reviews",
    description: "Reviews of an account, with responses, flags, notes and assignments.",
  },
  { name: "Self-service", description: "Sessions and tokens of the signed-in user." },
  { name: "Administration", description: "Operations of the platform's super-admins." },
  { name: "Platform", description: "Operations of the platform's own services." },
  { name: "Review sites", description: "Events reported by the pullers of review sites." },
  { name: "OAuth clients", description: "OAuth clients that sign users in." },
  { name: "Sign-in", description: "Signing in and out, tokens, passwords." },
  { name: "OAuth", description: "OAuth 2.0 endpoints (RFC 6749, 7009 and 7662)." },
  { name: "Documents", description: "Public documents at the root of the server." },
] as const;
