import { type AnyElysia, Elysia, ElysiaCustomStatusResponse, t } from "elysia";

import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { Problem } from "../lib/problem.ts";
import { BASE_PATH } from "./access.ts";
import { proxyTest } from "./request-context.ts";
import { type ErrorLook, errors, type StoreFailures } from "./errors.ts";
import { requestStates, type RequestState, requestStateOf } from "./request-state.ts";
import type { Answered } from "./metrics.ts";
import { pathOf } from "./text.ts";
import type { RateLimiter } from "./rate-limit.ts";

/** The time in seconds after which the server closes a connection on which nothing is sent. */
export const IDLE_TIMEOUT_S = 30;

interface EdgeOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** The origin at which browsers reach this service. */
  readonly serverRoot: string;
  /** Networks of proxies whose `X-Forwarded-For` header is trusted. */
  readonly trustedProxies: readonly string[];
  /** The rate limiter; undefined with `RATE_LIMITS=off`. */
  readonly limiter: RateLimiter | undefined;
  readonly looks: readonly ErrorLook[];
  readonly failures: StoreFailures;
  /** Paths at which a GET changes something. */
  readonly getHasEffect: ReadonlySet<string>;
  /** Called with each response, to count or log it; absent if nothing counts or logs responses. */
  readonly answered?: Answered;
}

/** Elysia plugin for every request of every route. It creates the request state and renders errors. */
export function edge(options: EdgeOptions) {
  const {
    clock,
    log,
    serverRoot,
    trustedProxies,
    limiter,
    looks,
    failures,
    getHasEffect,
    answered = () => {},
  } = options;
  const isSecure = serverRoot.startsWith("https:");
  return new Elysia({ name: "edge" })
    .use(requestStates({ clock, isSecure, isProxy: proxyTest(trustedProxies), limiter }))
    .use(errors({ log, looks, answered, failures, getHasEffect }))
    .onAfterHandle({ as: "global" }, ({ request, route, responseValue, set }) => {
      requestStateOf(request).rawBody.release();
      refuseUnchecked(request, route);
      const { creation } = requestStateOf(request).requestContext;
      // The content type is set here, because Bun would add a charset, which RFC 8259 does not define for JSON.
      // `mapResponse` would fit better, but Elysia treats its missing result as the response of an unknown path.
      if (isPlain(bodyOf(responseValue))) set.headers["content-type"] ??= "application/json";
      // Responses are reported in `onAfterHandle`, because `onAfterResponse`, which would fit better, starts a timer
      // for each request.
      const status = statusOf(responseValue, set.status);
      const tell = () => answered(request, route, status);
      if (creation === undefined) return tell();
      // The response waits for the commit. If that fails, `errors` reports the response.
      return creation.created(bodyOf(responseValue)).then(tell);
    });
}

/** Throws for a route that declares no access rule, so that such a route cannot expose any data. */
function refuseUnchecked(request: Request, route: string): void {
  if (route.startsWith(`${BASE_PATH}/`) && requestStateOf(request).schemas === undefined)
    throw new Error(`${route} declares neither access nor public.`);
}

/** Unwraps the body of `status(201, body)`; other values are returned as they are. */
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
  /** Paths that a page of any origin may call, so that an app in a browser can redeem its authorization code. */
  readonly open: ReadonlySet<string>;
  /** Origins whose pages may call the whole API. */
  readonly origins: readonly string[];
}

const PREFLIGHT = {
  "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
  "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, X-Request-Id",
  // Time in seconds for which a browser may cache the answer to a preflight request; browsers may shorten it.
  "access-control-max-age": "7200",
};
const EXPOSED = "X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset";

/**
 * Adds CORS headers (contract 2.11), without credentials. Other origins and paths get no CORS headers, which browsers
 * treat as a denial.
 */
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

/** Paths of the health probes. Monitoring requests them every few seconds, so they are logged at level debug. */
const QUIET = new Set(["/healthz", "/readyz"]);
/** Maximum number of characters of a method in the log, because a client may send a method name of any length. */
const METHOD_CHARS = 16;

/**
 * Logs each response with its request id, which partners are asked to quote. The log contains the pattern of the
 * path, and no path at all if it is unknown. So ids, codes and tokens in an address do not get into the log.
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

/** Returns the caller for the access log: ids of the user and company, or the address without a valid token. */
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
 * Adds a 405 response with `Allow` for all methods that an existing path does not support (RFC 9110, 15.5.6); Elysia
 * would answer 404. Call it after all routes are registered. Elysia derives HEAD from GET; where GET has an effect,
 * HEAD is a 405 too (contract 2.6).
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
 * Turns off the validation of responses. Response schemas give the handlers their types, describe the API and are
 * checked in tests. At run time the validation could only turn a committed write into an error, and would cost time.
 * Call it after all routes are registered.
 * Each route gets copies of the schemas, for two reasons. A schema may also be used for a body, where it is
 * validated. Elysia changes the schemas of a route when the route is first called, which would change the description
 * of other routes.
 */
export function trustAnswers(app: AnyElysia): void {
  for (const { hooks } of app.routes)
    for (const [status, schema] of Object.entries(Object(hooks.response)))
      hooks.response[status] = t.NoValidate({ additionalProperties: true, ...Object(schema) });
}
