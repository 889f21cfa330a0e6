import { Problem, type ProblemCode } from "../../lib/problem.ts";
import type { Components, Json, JsonObject } from "./schemas.ts";

interface Checked {
  readonly path: string;
  readonly method: string;
  readonly hooks: { readonly query?: unknown };
  readonly isCounted: boolean;
  readonly isBearer: boolean;
}

/** Every error that a route can answer, by its checks and by its own account; each is a component, referred to. */
export function refusalsOf(
  route: Checked,
  declared: readonly ProblemCode[],
  components: Components,
): JsonObject {
  const codes = new Set([...codesOfChecks(route), ...declared]);
  const byStatus = Map.groupBy(codes, (code) => new Problem(code).status);
  const statuses = [...byStatus].toSorted(([a], [b]) => a - b);
  return Object.fromEntries(
    statuses.map(([status, some]) => {
      const name = nameOf(some, route.isCounted);
      components.responses[name] ??= refusal(status, some, route.isCounted);
      return [String(status), { $ref: `#/components/responses/${name}` }];
    }),
  );
}

function codesOfChecks({ path, method, hooks, isBearer, isCounted }: Checked): ProblemCode[] {
  // A body that nobody asked for is read and refused, too.
  const takesBody = method !== "get";
  const codes: (readonly [boolean, readonly ProblemCode[]])[] = [
    [isBearer, ["unauthenticated", "forbidden", "insufficient_scope"]],
    [takesBody, ["payload_too_large", "unsupported_media_type", "invalid_json"]],
    [isBearer && path.includes("{"), ["not_found"]],
    [takesBody || hooks.query !== undefined, ["validation_failed"]],
    [isCounted, ["rate_limited"]],
    [true, ["internal_error", "unavailable"]],
  ];
  return codes.flatMap(([applies, some]) => (applies ? some : []));
}

/** Such as `ForbiddenOrInsufficientScope`. */
function nameOf(codes: readonly ProblemCode[], isCounted: boolean): string {
  const words = codes.map((code) =>
    code.replaceAll(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase()),
  );
  return words.join("Or") + (isCounted ? "" : "Uncounted");
}

function refusal(status: number, codes: readonly ProblemCode[], isCounted: boolean): JsonObject {
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
    headers: headersOf(isCounted, more),
    content: { "application/json": { schema, examples: Object.fromEntries(examples) } },
  };
}

/** Headers of every answer, and of those that the rate limits count. */
export function headersOf(
  isCounted: boolean,
  more: Readonly<Record<string, string>> = {},
): JsonObject {
  const limits = {
    "RateLimit-Limit": "RateLimitLimit",
    "RateLimit-Remaining": "RateLimitRemaining",
    "RateLimit-Reset": "RateLimitReset",
    "RateLimit-Policy": "RateLimitPolicy",
  };
  const all = { "X-Request-Id": "RequestId", ...(isCounted ? limits : {}), ...more };
  return Object.fromEntries(
    Object.entries(all).map(([name, key]) => [name, { $ref: `#/components/headers/${key}` }]),
  );
}

function exampleProblem(code: ProblemCode): JsonObject {
  const { message } = new Problem(code);
  const request_id = "01JWNB9PR0ZV8X2D3F4G5H6J7K";
  const errors = code === "validation_failed" ? { errors: { field: ["is required"] } } : {};
  return { message, code, request_id, ...errors };
}
