import { KindGuard, type TSchema } from "@sinclair/typebox";

import type { ProblemCode } from "../../lib/problem.ts";
import { exampleOf } from "./examples.ts";
import { headersOf, refusalsOf } from "./refusals.ts";
import { describeSchema, type Components, type Json, type JsonObject } from "./schemas.ts";

/** What Elysia keeps of a route's declaration, as far as it is described. */
export interface RouteHooks {
  readonly body?: TSchema;
  readonly query?: TSchema;
  readonly response?: Readonly<Record<string, TSchema>>;
  readonly emptyBody?: true;
  readonly uncounted?: true;
  readonly detail?: { readonly operationId?: string; readonly summary?: string };
}

export interface DescribedRoute {
  readonly path: string;
  /** In lower case. */
  readonly method: string;
  readonly hooks: RouteHooks;
  /** The names of operations that are taken. */
  readonly names: Set<string>;
}

/** What the HTTP server below says, before any route is found. */
const TOO_LONG: JsonObject = { "431": { $ref: "#/components/responses/TooLong" } };

/** Completes what @elysiajs/openapi made of a route. */
export function completeOperation(
  made: JsonObject,
  route: DescribedRoute,
  components: Components,
): JsonObject {
  const { responses, requestBody, parameters, ...operation } = made;
  const { hooks } = route;
  const summary = hooks.detail?.summary ?? "";
  const completed = { ...operation, operationId: nameOf(summary, route) };
  // A route at the root describes itself: its forms and pages have no schema of ours.
  if (hooks.response === undefined)
    return {
      ...completed,
      ...(parameters !== undefined && { parameters }),
      ...(requestBody !== undefined && { requestBody }),
      responses: { ...Object(responses ?? { "200": plainDocument(summary) }), ...TOO_LONG },
    };
  const isCounted = hooks.uncounted === undefined;
  const isBearer = operation["security"] !== undefined;
  return {
    ...completed,
    parameters: [...parametersOf(route, components), { $ref: "#/components/parameters/RequestId" }],
    ...(takesFields(hooks.body) && { requestBody: requestBodyOf(hooks, hooks.body, components) }),
    responses: {
      ...answersOf(hooks.response, isCounted, components),
      ...refusalsOf({ ...route, isCounted, isBearer }, declaredProblems(hooks), components),
      ...TOO_LONG,
    },
  };
}

/** The name that the route gives itself, or one from the summary; where two operations share one, the method is added to the later. */
function nameOf(summary: string, { method, names, hooks }: DescribedRoute): string {
  const given = hooks.detail?.operationId;
  if (given !== undefined) return given;
  const words = summary.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  const [first = "", ...rest] = words;
  const plain = lowerFirst(first) + rest.map(upperFirst).join("");
  const name = names.has(plain) ? `${plain}By${upperFirst(method)}` : plain;
  names.add(name);
  return name;
}

const lowerFirst = (word: string) => word.charAt(0).toLowerCase() + word.slice(1);
const upperFirst = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

function plainDocument(description: string): JsonObject {
  return { description, content: { "application/json": { schema: { type: "object" } } } };
}

function parametersOf({ path, hooks }: DescribedRoute, components: Components): Json[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]): JsonObject => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
    example: exampleOf({ type: "string" }, name),
  }));
  const query = KindGuard.IsObject(hooks.query) ? hooks.query : undefined;
  const inQuery = Object.entries(query?.properties ?? {}).map(([name, schema]): JsonObject => ({
    name,
    in: "query",
    required: query?.required?.includes(name) ?? false,
    schema: describeSchema(schema, components),
  }));
  return [...inPath, ...inQuery];
}

function takesFields(body: TSchema | undefined): body is TSchema {
  return (
    body !== undefined && !(KindGuard.IsObject(body) && Object.keys(body.properties).length === 0)
  );
}

function requestBodyOf(hooks: RouteHooks, body: TSchema, components: Components): JsonObject {
  const schema = describeSchema(body, components);
  return {
    required: hooks.emptyBody !== true,
    content: { "application/json": { schema, example: exampleOf(schema, "", components) } },
  };
}

const SUCCESS: Readonly<Record<string, string>> = {
  "200": "Done.",
  "201": "Made.",
  "202": "Queued.",
  "204": "Done; no body.",
};

function answersOf(
  response: NonNullable<RouteHooks["response"]>,
  isCounted: boolean,
  components: Components,
): JsonObject {
  const successes = Object.entries(response).filter(([status]) => Number(status) < 400);
  return Object.fromEntries(
    successes.map(([status, answer]) => {
      const head = { description: SUCCESS[status] ?? "Done.", headers: headersOf(isCounted) };
      if (KindGuard.IsVoid(answer)) return [status, shared(`NoBody${status}`, head, components)];
      const { contentType = "application/json", ...rest } = answer;
      const schema = describeSchema(rest, components);
      const isJson = contentType === "application/json";
      const example = exampleOf(schema, isJson ? "" : "stream", components);
      const whole = { ...head, content: { [contentType]: { schema, example } } };
      const { $ref } = schema;
      if (typeof $ref !== "string") return [status, whole];
      return [status, shared(`${$ref.split("/").at(-1) ?? ""}${status}`, whole, components)];
    }),
  );
}

/** Several operations answer the same, so it stands among the components, once, unless the name is another answer's. */
function shared(name: string, answer: JsonObject, components: Components): JsonObject {
  const known = (components.responses[name] ??= answer);
  const isSame = JSON.stringify(known) === JSON.stringify(answer);
  return isSame ? { $ref: `#/components/responses/${name}` } : answer;
}

/** The codes that the route declares besides those of its checks, as `problem` wrote them into its schemas. */
function declaredProblems({ response = {} }: RouteHooks): ProblemCode[] {
  return Object.values(response).flatMap((schema): ProblemCode[] => schema["problems"] ?? []);
}
