import type { TObject, TSchema } from "@sinclair/typebox";

import { Problem, type ProblemCode } from "../lib/problem.ts";
import { exampleOf, type Json } from "./openapi-examples.ts";
import { describeSchema, type Components } from "./openapi-schemas.ts";
import { describeRoot, type RootOperation } from "./openapi-root.ts";
import type { Route } from "./route.ts";

export interface ApiDescription {
  /** `{server_root}`. */
  readonly serverRoot: string;
  /** What every path of a route begins with. */
  readonly basePath: string;
  readonly routes: readonly Route[];
  /** Routes at `{server_root}`. */
  readonly roots?: readonly RootOperation[];
  /** Public documents at `{server_root}`: path → what it is. */
  readonly documents: Readonly<Record<string, string>>;
}

type Node = Record<string, Json>;

/** The whole API as an OpenAPI 3.1 document, from the same declarations that serve it. */
export function openApiDocument(api: ApiDescription): Node {
  const components: Components = { schemas: {} };
  const paths: Record<string, Node> = {};
  const names = operationNames(api.routes);
  for (const one of api.routes) {
    const path = api.basePath + one.path.replaceAll(/:(\w+)/g, "{$1}");
    const operation = operationOf(one, components, names.get(one) ?? "");
    (paths[path] ??= {})[one.method.toLowerCase()] = operation;
  }
  for (const one of api.roots ?? []) {
    const operationId = camel(`${one.method.toLowerCase()} ${one.path}`, false);
    (paths[one.path] ??= {})[one.method.toLowerCase()] = describeRoot(one, operationId);
  }
  for (const [path, summary] of Object.entries(api.documents))
    paths[path] = documentPath(path, summary);
  return {
    openapi: "3.1.0",
    info: {
      title: "ReviewRelay API",
      version: "1.0.0",
      summary: "Sign-in, reviews and partner webhooks",
      description: INTRODUCTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: api.serverRoot }],
    security: [],
    tags: tagsOf(api),
    paths,
    components: {
      schemas: { ...components.schemas, Problem: PROBLEM, ValidationProblem: VALIDATION_PROBLEM },
      parameters: { RequestId: REQUEST_ID_PARAMETER },
      headers: HEADERS,
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          bearerFormat: "JWT",
          description: "A personal access token, or one from a sign-in.",
        },
      },
    },
  };
}

const INTRODUCTION = `Every error has the shape of \`Problem\`; programs read \`code\`. A 422 names every bad field at once.
Instants are ISO 8601 with offset and milliseconds. Lists answer \`data\` and \`next_cursor\`; send it back as \`cursor\` for the next page.
Requests are counted per token (600 a minute) or, without one, per address (1,200 a minute); \`RateLimit-*\` says what is left.
A path that exists answers another method with 405 and \`Allow\`.`;

const PROBLEM: Node = {
  type: "object",
  required: ["message", "code", "request_id"],
  properties: {
    message: { type: "string", description: "For people." },
    code: { type: "string", description: "For programs." },
    request_id: {
      type: "string",
      description: "Also in `X-Request-Id`; name it when you ask for help.",
    },
  },
};
const VALIDATION_PROBLEM: Node = {
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
};

const REQUEST_ID_PARAMETER: Node = {
  name: "X-Request-Id",
  in: "header",
  required: false,
  description:
    "Taken over into the answer if it is a token of up to 128 letters, digits, `.`, `_` and `-`.",
  schema: { type: "string" },
};

const header = (description: string, type = "string"): Node => ({ description, schema: { type } });
const HEADERS: Record<string, Node> = {
  RequestId: header("Identifies the request in our logs."),
  RateLimitLimit: header("How many requests may come at once.", "integer"),
  RateLimitRemaining: header("How many are left at this moment.", "integer"),
  RateLimitReset: header("Seconds until the limit is whole again.", "integer"),
  RateLimitPolicy: header("How many a minute come back, and the limit."),
  RetryAfter: header("Seconds to wait before the next try.", "integer"),
  Allow: header("The methods of the path."),
  WwwAuthenticate: header("`Bearer`."),
};

function documentPath(path: string, summary: string): Node {
  const responses: Node = { "200": documentAnswer(summary) };
  if (path === "/readyz")
    responses["503"] = documentAnswer("A store is away; `checks` says which.");
  const operationId = `get${camel(path.replaceAll(/\W+/g, " "), true)}`;
  return { get: { operationId, summary, tags: ["Documents"], responses } };
}

function documentAnswer(description: string): Node {
  return { description, content: { "application/json": { schema: { type: "object" } } } };
}

function operationOf(route: Route, components: Components, operationId: string): Node {
  const bearer = route.access.kind === "bearer";
  return {
    operationId,
    summary: route.summary,
    ...(route.description !== undefined && { description: route.description }),
    tags: [tagOf(route)],
    ...(bearer && { security: [{ bearer: [] }] }),
    parameters: parametersOf(route, components),
    ...(route.body !== undefined && { requestBody: requestBody(route, route.body, components) }),
    responses: { ...successes(route, components), ...failures(route) },
  };
}

function parametersOf(route: Route, components: Components): Json[] {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name = ""]): Node => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
    example: exampleOf({ type: "string" }, name),
  }));
  const query: TObject["properties"] = route.query?.properties ?? {};
  const inQuery = Object.entries(query).map(([name, schema]): Node => ({
    name,
    in: "query",
    required: route.query?.required?.includes(name) ?? false,
    schema: describeSchema(schema, components),
  }));
  return [...inPath, ...inQuery, { $ref: "#/components/parameters/RequestId" }];
}

function requestBody(route: Route, body: TSchema, components: Components): Node {
  const schema = describeSchema(body, components);
  return {
    required: route.bodyOptional !== true,
    content: { "application/json": { schema, example: exampleOf(schema, "", components) } },
  };
}

/** Headers of every answer, and of those that are counted. */
function headersOf(route: Route, more: Readonly<Record<string, string>> = {}): Node {
  const limits = {
    "RateLimit-Limit": "RateLimitLimit",
    "RateLimit-Remaining": "RateLimitRemaining",
    "RateLimit-Reset": "RateLimitReset",
    "RateLimit-Policy": "RateLimitPolicy",
  };
  const all = { "X-Request-Id": "RequestId", ...(route.unlimited ? {} : limits), ...more };
  return Object.fromEntries(
    Object.entries(all).map(([name, key]) => [name, { $ref: `#/components/headers/${key}` }]),
  );
}

function successes(route: Route, components: Components): Node {
  return Object.fromEntries(
    Object.entries(route.answers).map(([status, answer]) => {
      const head = { description: SUCCESS[status] ?? "Done.", headers: headersOf(route) };
      if (answer === null) return [status, head];
      const schema = describeSchema(answer, components);
      const type = route.contentType ?? "application/json";
      const example = exampleOf(schema, type === "application/json" ? "" : "stream", components);
      return [status, { ...head, content: { [type]: { schema, example } } }];
    }),
  );
}

const SUCCESS: Readonly<Record<string, string>> = {
  "200": "Done.",
  "201": "Made.",
  "202": "Queued.",
  "204": "Done; no body.",
};

function failures(route: Route): Node {
  const byStatus = Map.groupBy(problemsOf(route), (code) => new Problem(code).status);
  const statuses = [...byStatus].toSorted(([a], [b]) => a - b);
  return Object.fromEntries(
    statuses.map(([status, codes]) => [String(status), failure(route, status, codes)]),
  );
}

function failure(route: Route, status: number, codes: readonly ProblemCode[]): Node {
  const more: Record<string, string> = {};
  if (status === 401) more["WWW-Authenticate"] = "WwwAuthenticate";
  if (status === 429 || status === 503) more["Retry-After"] = "RetryAfter";
  const name = status === 422 ? "ValidationProblem" : "Problem";
  const examples = codes.map((code): [string, Json] => [code, { value: exampleProblem(code) }]);
  const schema = {
    allOf: [
      { $ref: `#/components/schemas/${name}` },
      { properties: { code: { enum: [...codes] } } },
    ],
  };
  return {
    description: codes.map((code) => new Problem(code).message).join(" "),
    headers: headersOf(route, more),
    content: { "application/json": { schema, examples: Object.fromEntries(examples) } },
  };
}

function exampleProblem(code: ProblemCode): Node {
  const { message } = new Problem(code);
  const request_id = "01JWNB9PR0ZV8X2D3F4G5H6J7K";
  const errors = code === "validation_failed" ? { errors: { field: ["is required"] } } : {};
  return { message, code, request_id, ...errors };
}

/** What the route can be answered with, by the pipeline of `serve` and by its own account. */
export function problemsOf(route: Route): ProblemCode[] {
  const bearer = route.access.kind === "bearer";
  // A body that nobody asked for is read and refused, too.
  const takesBody = route.method !== "GET";
  const checksFields = takesBody || route.query !== undefined;
  const codes: ProblemCode[] = [
    ...(bearer ? (["unauthenticated", "forbidden", "insufficient_scope"] as const) : []),
    ...(takesBody
      ? (["payload_too_large", "unsupported_media_type", "invalid_json"] as const)
      : []),
    ...(route.find !== undefined || (bearer && route.path.includes(":"))
      ? (["not_found"] as const)
      : []),
    ...(checksFields ? (["validation_failed"] as const) : []),
    ...(route.problems ?? []),
    ...(route.unlimited ? [] : (["rate_limited"] as const)),
    "internal_error",
  ];
  return [...new Set(codes)];
}

/** The longest prefix decides. */
const TAGS: readonly (readonly [prefix: string, tag: string, description: string])[] = [
  [
    "/partner/webhooks",
    "Webhooks",
    "Subscriptions of a partner, their deliveries and their health.",
  ],
  ["/partner", "Partner", "What a partner does with its accounts and clients."],
  ["/account/review", "Reviews", "Reviews of an account, and what its people do about them."],
  ["/account/users", "Reviews", ""],
  ["/account", "Self-service", "Sessions and tokens of the signed-in user."],
  ["/admin", "Administration", "For the platform's own administrators."],
  ["/providers", "Review sites", "What the pullers of review sites report."],
  ["/sso/clients", "OAuth clients", "Clients that sign users in."],
  ["", "Sign-in", "Signing in and out, tokens, passwords."],
];

function tagOf({ path }: Pick<Route, "path">): string {
  const found = TAGS.find(([prefix]) => path.startsWith(prefix));
  return found?.[1] ?? "Sign-in";
}

function tagsOf({ routes, roots = [] }: ApiDescription): Json[] {
  const used = new Set(routes.map(tagOf));
  const known = TAGS.filter(([, name, description]) => used.has(name) && description !== "");
  return [
    ...known.map(([, name, description]): Node => ({ name, description })),
    ...(roots.length === 0 ? [] : [{ name: "OAuth", description: "RFC 6749 and its companions." }]),
    { name: "Documents", description: "Public documents at the root of the server." },
  ];
}

/** Names from the summaries; where two routes share one, the method is added to the later. */
function operationNames(routes: readonly Route[]): Map<Route, string> {
  const names = new Map<Route, string>();
  const taken = new Set<string>();
  for (const one of routes) {
    const plain = camel(one.summary, false);
    const name = taken.has(plain) ? `${plain}By${camel(one.method.toLowerCase(), true)}` : plain;
    taken.add(name);
    names.set(one, name);
  }
  return names;
}

function camel(text: string, upper: boolean): string {
  const words = text
    .replaceAll(/[^A-Za-z0-9 ]/g, " ")
    .split(" ")
    .filter((word) => word !== "");
  return words
    .map((word, i) =>
      i === 0 && !upper
        ? word.charAt(0).toLowerCase() + word.slice(1)
        : word.charAt(0).toUpperCase() + word.slice(1),
    )
    .join("");
}
