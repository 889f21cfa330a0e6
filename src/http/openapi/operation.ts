import { KindGuard, type TSchema } from "@sinclair/typebox";

import { Problem, type ProblemCode } from "../../lib/problem.ts";
import { exampleInPath, exampleOf } from "./examples.ts";
import { FIELDS } from "./fields.ts";
import {
  type Components,
  describe,
  describeSchema,
  type Json,
  type JsonObject,
  objectIn,
  shared,
} from "./schemas.ts";

/** The part of Elysia's route declaration that the OpenAPI description uses. */
interface RouteHooks {
  readonly body?: TSchema;
  readonly query?: TSchema;
  readonly response?: Readonly<Record<string, TSchema>>;
  readonly detail?: Readonly<Record<string, unknown>> & {
    readonly operationId?: string;
    readonly summary?: string;
  };
}

export interface DescribedRoute {
  readonly path: string;
  /** The HTTP method in lower case. */
  readonly method: string;
  /** Whether a request may change data. */
  readonly hasEffect: boolean;
  readonly hooks: RouteHooks;
  /** The operation ids that other routes use already, so that each id is unique. */
  readonly names: Set<string>;
}

/** Describes the operation of a route by its schemas, its `detail` and the rules of its checks. */
export function describeOperation(route: DescribedRoute, components: Components): JsonObject {
  const { responses, requestBody, parameters, ...described } = asJson(route.hooks.detail ?? {});
  const { "x-may-be-empty": mayBeEmpty, "x-uncounted": isUncounted, ...operation } = described;
  const { hooks } = route;
  const summary = hooks.detail?.summary ?? "";
  const completed = { ...operation, operationId: nameOf(summary, route) };
  // A route outside of the base path describes its responses itself, because it answers with forms and pages, which
  // have no schema. It also gets 405, because linters require the response to an error.
  if (hooks.response === undefined)
    return {
      ...completed,
      ...(Array.isArray(parameters) && { parameters: parameters.map(completeParameter) }),
      ...(requestBody !== undefined && { requestBody: withComponents(requestBody, components) }),
      responses: { ...METHOD_NOT_ALLOWED, ...writtenOut(responses ?? null, components) },
    };
  const isBearer = JSON.stringify(operation["security"] ?? "").includes("bearer");
  const checked = {
    ...route,
    takesBody: takesFields(hooks.body),
    isCounted: isUncounted === undefined,
    isBearer,
    isKeyed: route.method === "post" && isBearer && hooks.response["201"] !== undefined,
    asksForProof: operation["x-step-up"] === true,
  };
  return {
    ...completed,
    ...parametersOf(checked, components),
    ...(takesFields(hooks.body) && {
      requestBody: requestBodyOf(hooks.body, mayBeEmpty === undefined, components),
    }),
    responses: {
      // A route without a response body also gets `default`, because linters require a success response. It stands for
      // the response after a redirect, which is not described here.
      ...(!hasBody(hooks.response) && { default: { $ref: "#/components/responses/500" } }),
      ...successResponsesOf(hooks.response, components),
      ...errorResponsesOf(checked, declaredProblems(hooks), components),
    },
  };
}

/** Converts the detail of a route to plain JSON, without the symbols that TypeBox adds to schemas. */
function asJson(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value));
}

/**
 * Returns the operation id of a route: the declared id, or an id made from the summary. If another route uses that
 * id, the method is appended.
 */
function nameOf(summary: string, { method, names, hooks }: DescribedRoute): string {
  const words = summary.split(/[^A-Za-z0-9]+/).filter((word) => !ARTICLES.has(word));
  const [first = "", ...rest] = words;
  const plain = hooks.detail?.operationId ?? lowerFirst(first) + rest.map(upperFirst).join("");
  const name = names.has(plain) ? `${plain}By${upperFirst(method)}` : plain;
  names.add(name);
  return name;
}

const ARTICLES = new Set(["", "a", "an", "the"]);
const lowerFirst = (word: string) => word.charAt(0).toLowerCase() + word.slice(1);
const upperFirst = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

/** Completes a parameter that the route declares itself with an example and the general description of its name. */
function completeParameter(parameter: Json): JsonObject {
  const { name: given, required, ...rest } = objectIn(parameter);
  const name = typeof given === "string" ? given : "";
  return {
    name,
    ...(FIELDS[name] !== undefined && { description: FIELDS[name] }),
    ...(required === true && { required }),
    ...rest,
    example: exampleOf(objectIn(rest["schema"]), { name }),
  };
}

/** Completes responses that an operation declares itself; responses with a `title` become components. */
function writtenOut(responses: Json, components: Components): JsonObject {
  return Object.fromEntries(
    Object.entries(objectIn(responses)).map(([status, answer]) => {
      const { title, ...one } = objectIn(answer);
      const described = withComponents({ ...one, ...headersOf(Number(status)) }, components);
      const names = typeof title === "string" ? [`${title}${status}`] : [];
      return [status, shared(components, "responses", names, described)];
    }),
  );
}

/** Replaces the schemas of a request body or a response by references to components, if the schemas have a title. */
function withComponents(written: Json, components: Components): JsonObject {
  const { content, ...rest } = objectIn(written);
  if (content === undefined) return rest;
  const described = Object.entries(objectIn(content)).map(([type, one]) => {
    const { schema, ...more } = objectIn(one);
    return [
      type,
      { ...(schema !== undefined && { schema: describe(schema, components) }), ...more },
    ];
  });
  return { ...rest, content: Object.fromEntries(described) };
}

const IDEMPOTENCY_KEY = {
  name: "Idempotency-Key",
  in: "header",
  description:
    "A request with the key of an earlier request of the last 24 hours gets the same response and creates nothing.",
  schema: { type: "string", minLength: 1, maxLength: 255 },
  example: "8e03978e-40d5-43dd-bc93-6894a57f9324",
};

function parametersOf(
  { path, hooks, isKeyed }: DescribedRoute & { readonly isKeyed: boolean },
  components: Components,
): JsonObject {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    ...(FIELDS[name] !== undefined && { description: FIELDS[name] }),
    schema: { type: "string" },
    example: exampleInPath(path, name),
  }));
  const query = KindGuard.IsObject(hooks.query) ? hooks.query : undefined;
  const inQuery = Object.entries(query?.properties ?? {}).map(([name, one]) => {
    const { description = FIELDS[name], ...schema } = describeSchema(one, components);
    const isRequired = query?.required?.includes(name) ?? false;
    const example = exampleOf(schema, { name, schemas: components.schemas });
    return {
      name,
      in: "query",
      ...(isRequired && { required: true }),
      ...(description !== undefined && { description }),
      schema,
      example,
    };
  });
  const parameters = [...inPath, ...inQuery, ...(isKeyed ? [IDEMPOTENCY_KEY] : [])].map((one) =>
    shared(components, "parameters", namesOf(one), one),
  );
  return parameters.length === 0 ? {} : { parameters };
}

/**
 * Returns possible names for the component of a parameter, such as `EventIdPath` and `EventIdPath2`. Generators name
 * types after all components, so the parameter's location is part of the name to distinguish it from schemas and other
 * parameters.
 */
function namesOf(parameter: { readonly name: string; readonly in: string }): string[] {
  const words = [...parameter.name.split(/[^A-Za-z0-9]+/), parameter.in];
  const name = words.map(upperFirst).join("");
  return [name, ...Array.from({ length: 19 }, (_, at) => `${name}${at + 2}`)];
}

function takesFields(body: TSchema | undefined): body is TSchema {
  return (
    body !== undefined && !(KindGuard.IsObject(body) && Object.keys(body.properties).length === 0)
  );
}

function requestBodyOf(body: TSchema, isRequired: boolean, components: Components): JsonObject {
  const content = { "application/json": contentOf(body, components) };
  const whole = { ...(isRequired && { required: true }), content };
  return body.title === undefined
    ? whole
    : shared(components, "requestBodies", [body.title], whole);
}

function successResponsesOf(
  response: NonNullable<RouteHooks["response"]>,
  components: Components,
): JsonObject {
  const successes = Object.entries(response).filter(([status]) => Number(status) < 400);
  return Object.fromEntries(
    successes.map(([status, answer]) => {
      const { contentType = "application/json", ...rest } = answer;
      const isEmpty = KindGuard.IsVoid(answer);
      const name = isEmpty ? "Nothing" : (answer.title ?? "Stream");
      const whole = {
        description: `${inWords(name)}.`,
        ...headersOf(Number(status)),
        ...(!isEmpty && { content: { [contentType]: contentOf(rest, components) } }),
      };
      return [status, shared(components, "responses", [name], whole)];
    }),
  );
}

/** Converts the name of a schema to words, such as `OAuthClientPage` to `OAuth client page`. */
function inWords(name: string): string {
  return name.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/**
 * Describes the content of a body. A body with a title refers to a component, which has its own example. A body without
 * a title is a stream.
 */
function contentOf(schema: TSchema, components: Components): JsonObject {
  const described = describeSchema(schema, components);
  if (schema.title !== undefined) return { schema: described };
  return { schema: described, example: exampleOf(described, { name: "stream" }) };
}

function hasBody(response: NonNullable<RouteHooks["response"]>): boolean {
  return Object.keys(response).some((status) => Number(status) < 300);
}

/** Returns the error codes that a route declares with `errorResponse`, in addition to those of its checks. */
function declaredProblems({ response = {} }: RouteHooks): ProblemCode[] {
  return Object.values(response).flatMap((schema): ProblemCode[] => schema["problems"] ?? []);
}

interface CheckedRoute {
  readonly hasEffect: boolean;
  readonly path: string;
  readonly hooks: { readonly query?: unknown };
  readonly takesBody: boolean;
  readonly isCounted: boolean;
  readonly isBearer: boolean;
  /** Whether the route accepts an `Idempotency-Key`. */
  readonly isKeyed: boolean;
  readonly asksForProof: boolean;
}

/**
 * Describes every error response of a route, both of its checks and of its own declaration. Each response becomes a
 * component.
 */
function errorResponsesOf(
  route: CheckedRoute,
  declared: readonly ProblemCode[],
  components: Components,
): JsonObject {
  const checked = new Set(codesOfChecks(route));
  const codes = checked.union(new Set(declared));
  const byStatus = Map.groupBy(codes, (code) => new Problem(code).status);
  return Object.fromEntries(
    [...byStatus].map(([status, some]) => {
      // Responses that contain only errors of the checks are equal for all routes. All routes share their component,
      // which is named after the status; this keeps the document small.
      const isOfChecks = some.every((code) => checked.has(code) || code in ERROR_SUFFIXES);
      const suffixes = some.map((code) => ERROR_SUFFIXES[code] ?? "");
      const name = isOfChecks ? `${status}${suffixes.join("")}` : errorNameOf(some);
      return [String(status), shared(components, "responses", [name], errorResponse(some))];
    }),
  );
}

/** Error codes of checks that only some routes have, with the suffix for the name of their response component. */
const ERROR_SUFFIXES: Partial<Record<ProblemCode, string>> = {
  step_up_required: "StepUp",
};

function codesOfChecks(route: CheckedRoute): ProblemCode[] {
  const { hasEffect, path, hooks, takesBody, isBearer, isKeyed, isCounted, asksForProof } = route;
  const codes: (readonly [boolean, readonly ProblemCode[]])[] = [
    [isBearer, ["unauthenticated", "forbidden", "insufficient_scope"]],
    [asksForProof, ["step_up_required"]],
    [takesBody, ["invalid_json"]],
    [isBearer && path.includes("{"), ["not_found"]],
    [takesBody || isKeyed || hooks.query !== undefined, ["validation_failed"]],
    [isCounted, ["rate_limited"]],
    [hasEffect, ["unavailable", "outcome_unknown"]],
  ];
  return codes.flatMap(([applies, some]) => (applies ? some : []));
}

/** Builds the name of an error component, for example `AlreadyQueuedOrSubscriptionDisabled`. */
function errorNameOf(codes: readonly ProblemCode[]): string {
  return codes
    .map((code) => code.replaceAll(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase()))
    .join("Or");
}

const METHOD_NOT_ALLOWED: JsonObject = { "405": { $ref: "#/components/responses/405" } };

const HEADERS: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: { "WWW-Authenticate": "WwwAuthenticate" },
  405: { Allow: "Allow" },
  429: {
    "Retry-After": "RetryAfter",
    "RateLimit-Limit": "RateLimitLimit",
    "RateLimit-Remaining": "RateLimitRemaining",
    "RateLimit-Reset": "RateLimitReset",
    "RateLimit-Policy": "RateLimitPolicy",
  },
  503: { "Retry-After": "RetryAfter" },
};

/** Describes the error response for these error codes, which have the same HTTP status. */
export function errorResponse(codes: readonly ProblemCode[]): JsonObject {
  const problems = codes.map((code) => new Problem(code));
  const [status = 0] = problems.map((one) => one.status);
  const content = contentOfErrors(codes, status);
  return {
    description: problems.map(({ code, message }) => `\`${code}\`: ${message}`).join(" "),
    ...headersOf(status),
    content: { "application/json": content },
  };
}

function contentOfErrors(codes: readonly ProblemCode[], status: number): JsonObject {
  if (codes.includes("account_locked"))
    return { schema: anyOf("ValidationProblem", "Problem"), example: LOCKED_SIGN_IN };
  if (codes.includes("second_factor_required"))
    return { schema: anyOf("SecondFactorProblem", "Problem") };
  return { schema: referenceTo(status === 422 ? "ValidationProblem" : "Problem") };
}

const anyOf = (...schemas: string[]): JsonObject => ({ anyOf: schemas.map(referenceTo) });
const referenceTo = (schema: string) => ({ $ref: `#/components/schemas/${schema}` });

/** Example of a locked sign-in, whose response has `errors` although it is not a 422 (contract 4.9). */
const LOCKED_SIGN_IN: JsonObject = {
  message: new Problem("account_locked").message,
  code: "account_locked",
  request_id: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  errors: { email: ["is locked after too many wrong passwords; try again in 60 s"] },
};

/**
 * Returns references to the response headers of a status. The introduction of the document describes the headers that
 * all responses have.
 */
function headersOf(status: number): JsonObject {
  const own = Object.entries(HEADERS[status] ?? {});
  if (own.length === 0) return {};
  const headers = own.map(([name, key]) => [name, { $ref: `#/components/headers/${key}` }]);
  return { headers: Object.fromEntries(headers) };
}
