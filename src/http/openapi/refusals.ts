import { Problem, type ProblemCode } from "../../lib/problem.ts";
import { shared, type Components, type JsonObject } from "./schemas.ts";

interface Checked {
  readonly path: string;
  readonly hooks: { readonly query?: unknown };
  readonly takesBody: boolean;
  readonly isCounted: boolean;
  readonly isBearer: boolean;
}

/** What every operation may be answered: its path has no such method. */
export const ALWAYS: JsonObject = { "405": { $ref: "#/components/responses/405" } };

/** Every error that a route can answer, by its checks and by its own account; each is a component, referred to. */
export function refusalsOf(
  route: Checked,
  declared: readonly ProblemCode[],
  components: Components,
): JsonObject {
  const checked = new Set(codesOfChecks(route));
  const codes = checked.union(new Set(declared));
  const byStatus = Map.groupBy(codes, (code) => new Problem(code).status);
  return Object.fromEntries(
    [...byStatus].map(([status, some]) => {
      // Those of the checks alone are everywhere, and alike: their name is the status, which keeps the document small.
      const name = some.every((code) => checked.has(code)) ? String(status) : nameOf(some);
      return [String(status), shared(components, "responses", [name], refusal(some))];
    }),
  );
}

function codesOfChecks({ path, hooks, takesBody, isBearer, isCounted }: Checked): ProblemCode[] {
  const codes: (readonly [boolean, readonly ProblemCode[]])[] = [
    [isBearer, ["unauthenticated", "forbidden", "insufficient_scope"]],
    [takesBody, ["payload_too_large", "unsupported_media_type", "invalid_json"]],
    [isBearer && path.includes("{"), ["not_found"]],
    [takesBody || hooks.query !== undefined, ["validation_failed"]],
    [isCounted, ["rate_limited"]],
    [true, ["unavailable"]],
  ];
  return codes.flatMap(([applies, some]) => (applies ? some : []));
}

/** Such as `AlreadyQueuedOrSubscriptionDisabled`. */
function nameOf(codes: readonly ProblemCode[]): string {
  return codes
    .map((code) => code.replaceAll(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase()))
    .join("Or");
}

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

/** The answer of these codes, which have one status. */
export function refusal(codes: readonly ProblemCode[]): JsonObject {
  const problems = codes.map((code) => new Problem(code));
  const [status = 0] = problems.map((one) => one.status);
  const schema = {
    $ref: `#/components/schemas/${status === 422 ? "ValidationProblem" : "Problem"}`,
  };
  return {
    description: problems.map(({ code, message }) => `\`${code}\`: ${message}`).join(" "),
    ...headersOf(status),
    content: { "application/json": { schema } },
  };
}

/** What the answers of a status have; the introduction tells of the headers that all of them have. */
export function headersOf(status: number): JsonObject {
  const own = Object.entries(HEADERS[status] ?? {});
  if (own.length === 0) return {};
  const headers = own.map(([name, key]) => [name, { $ref: `#/components/headers/${key}` }]);
  return { headers: Object.fromEntries(headers) };
}
