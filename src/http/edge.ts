import { type AnyElysia, Elysia, ElysiaCustomStatusResponse, t } from "elysia";

import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { Problem } from "../lib/problem.ts";
import { BASE_PATH } from "./access.ts";
import { proxyTest } from "./request-context.ts";
import { type ErrorLook, errors } from "./errors.ts";
import { requestStates, type RequestState, requestStateOf } from "./request-state.ts";
import type { Answered } from "./metrics.ts";
import { pathOf } from "./text.ts";
import type { RateLimiter } from "./rate-limit.ts";

interface EdgeOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** What browsers know this service by. */
  readonly serverRoot: string;
  /** Networks whose `X-Forwarded-For` counts. */
  readonly trustedProxies: readonly string[];
  /** Absent with `RATE_LIMITS=off`. */
  readonly limiter: RateLimiter | undefined;
  readonly looks: readonly ErrorLook[];
  readonly isStoreFailure: (error: unknown) => boolean;
  /** Absent where nobody counts. */
  readonly answered?: Answered;
}

/** What every request meets, whatever its route: its exchange, and one way of telling what went wrong. */
export function edge(options: EdgeOptions) {
  const {
    clock,
    log,
    serverRoot,
    trustedProxies,
    limiter,
    looks,
    isStoreFailure,
    answered = () => {},
  } = options;
  const isSecure = serverRoot.startsWith("https:");
  return new Elysia({ name: "edge" })
    .use(requestStates({ clock, isSecure, isProxy: proxyTest(trustedProxies), limiter }))
    .use(errors({ log, looks, answered, isStoreFailure }))
    .onAfterHandle({ as: "global" }, ({ request, route, responseValue, set }) => {
      refuseUnchecked(request, route);
      // Without this Bun adds a charset, which RFC 8259 does not know for JSON. A `mapResponse` would be the place, but
      // Elysia takes what it does not return for the answer of an unknown path.
      if (isPlain(bodyOf(responseValue))) set.headers["content-type"] ??= "application/json";
      // `onAfterResponse` would be the place, but it is a timer of its own for each request.
      answered(request, route, statusOf(responseValue, set.status));
    });
}

/** A route that forgot to declare who may use it shows nothing to anybody. */
function refuseUnchecked(request: Request, route: string): void {
  if (route.startsWith(`${BASE_PATH}/`) && requestStateOf(request).schemas === undefined)
    throw new Error(`${route} declares neither access nor public.`);
}

/** What `status(201, body)` wraps, or the value itself. */
function bodyOf(value: unknown): unknown {
  return value instanceof ElysiaCustomStatusResponse ? value.response : value;
}

function statusOf(value: unknown, set: number | string | undefined): number {
  if (value instanceof Response) return value.status;
  return Number(value instanceof ElysiaCustomStatusResponse ? value.code : (set ?? 200));
}

function isPlain(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
}

interface CorsOptions {
  /** Paths that any origin may use, so that an app in a browser can redeem its code. */
  readonly open: ReadonlySet<string>;
  /** Origins that may use the API besides. */
  readonly origins: readonly string[];
}

const PREFLIGHT = {
  "access-control-allow-methods": "GET, POST, PATCH, DELETE",
  "access-control-allow-headers": "Authorization, Content-Type, X-Request-Id",
  // In seconds; browsers take less of it.
  "access-control-max-age": "7200",
};
const EXPOSED = "X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset";

/** Contract 2.11, without credentials. What is not named here gets no header, which browsers take for a no. */
export function cors({ open, origins }: CorsOptions) {
  const allowed = new Set(origins);
  const allowedFor = (origin: string, path: string): string | undefined => {
    if (open.has(path)) return "*";
    return allowed.has(origin) && path.startsWith(`${BASE_PATH}/`) ? origin : undefined;
  };
  return new Elysia({ name: "cors" }).onRequest(({ request, set }) => {
    const origin = request.headers.get("origin");
    if (origin === null) return;
    const allow = allowedFor(origin, pathOf(request));
    if (allow === undefined) return;
    set.headers["access-control-allow-origin"] = allow;
    set.headers["access-control-expose-headers"] = EXPOSED;
    if (allow !== "*") set.headers["vary"] = "Origin";
    const isPreflight =
      request.method === "OPTIONS" && request.headers.has("access-control-request-method");
    if (!isPreflight) return;
    Object.assign(set.headers, PREFLIGHT);
    return new Response(null, { status: 204 });
  });
}

/** Asked for every few seconds by whoever runs us, so that they would drown everything else. */
const QUIET = new Set(["/healthz", "/readyz"]);
/** The name of a method may be anything. */
const METHOD_CHARS = 16;

/**
 * One line for each answered request, by its id, which partners are told to quote. The route is the pattern of the path,
 * and a path that is none of ours is not shown: ids, codes and tokens that somebody put into an address stay out.
 */
export function accessLog(clock: Clock, log: Log): Answered {
  return (request, route, status) => {
    const requestState = requestStateOf(request);
    const line = {
      request_id: requestState.requestContext.requestId,
      method: request.method.slice(0, METHOD_CHARS),
      route: route ?? null,
      status,
      duration_ms: Math.round((clock.monotonicMs() - requestState.startedMs) * 10) / 10,
      ...callerOf(requestState),
    };
    if (route !== undefined && QUIET.has(route)) log.debug("request.answered", line);
    else log.info("request.answered", line);
  };
}

/** Who asked, by ids; without a token that counts, from where. */
function callerOf({ principal, requestContext }: RequestState) {
  if (principal === undefined) return { ip: requestContext.ip };
  const { userId, companyId, clientId, impersonatorId, tokenKind } = principal;
  return {
    user_id: userId,
    company_id: companyId,
    token: tokenKind,
    ...(clientId !== null && { client_id: clientId }),
    ...(impersonatorId !== null && { impersonator_id: impersonatorId }),
  };
}

/**
 * Answers every other method of the paths that exist with a 405 and `Allow` (RFC 9110, 15.5.6); Elysia would say 404.
 * Call it when all routes are there. Elysia answers HEAD from GET; where GET has an effect, HEAD is refused here
 * (contract 2.6).
 */
export function refuseOtherMethods(app: AnyElysia, getHasEffect: ReadonlySet<string>): void {
  const methods = new Map<string, string[]>();
  for (const { path, method } of app.routes)
    methods.set(path, [...(methods.get(path) ?? []), method]);
  for (const [path, known] of methods) {
    const answersHead = !getHasEffect.has(path);
    const allow = known
      .flatMap((method) => (method === "GET" && answersHead ? ["GET", "HEAD"] : [method]))
      .join(", ");
    const refuse = () => {
      throw new Problem("method_not_allowed", { headers: { Allow: allow } });
    };
    if (getHasEffect.has(path)) app.head(path, refuse, { detail: { hide: true } });
    app.all(path, refuse, { parse: "none", detail: { hide: true } });
  }
}

/**
 * Lets answers pass unchecked: their schemas type the handlers, describe the API and hold its tests. At run time a check
 * could only turn a write that is committed already into an error, and cost time. Call it when all routes are there.
 *
 * Each route gets copies. A schema may stand in a body as well, where it is checked; and Elysia, which closes the schemas
 * of a route when that is first called, would otherwise change what the description says elsewhere.
 */
export function trustAnswers(app: AnyElysia): void {
  for (const { hooks } of app.routes)
    for (const [status, schema] of Object.entries(Object(hooks.response)))
      hooks.response[status] = t.NoValidate({ additionalProperties: true, ...Object(schema) });
}
