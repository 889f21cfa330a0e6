import type { TSchema } from "@sinclair/typebox";
import { type AnyElysia, Elysia, ElysiaCustomStatusResponse, t } from "elysia";

import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { Problem } from "../lib/problem.ts";
import { BASE_PATH } from "./access.ts";
import { NO_BODY } from "./body.ts";
import { proxyTest, readRequestContext } from "./request-context.ts";
import { type ErrorLook, errors, type StoreFailures } from "./errors.ts";
import { declaresRequestState, type RequestState } from "./request-state.ts";
import type { Answered } from "./metrics.ts";
import { pathOf } from "./text.ts";
import { Meter, type RateLimiter } from "./rate-limit.ts";

/** Time in seconds after which the server closes a connection without traffic. */
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
  /** Paths where a GET request changes data. */
  readonly getHasEffect: ReadonlySet<string>;
  /** Called with each response, to count or log it. */
  readonly answered?: Answered;
}

/** Elysia plugin that all routes use. It creates the request state, reports responses, and renders errors. */
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
    .use(declaresRequestState())
    .onAfterHandle({ as: "global" }, ({ request, requestState, route, responseValue, set }) => {
      requestState.rawBody.release();
      refuseUnchecked(requestState, route);
      const { creation } = requestState.requestContext;
      // The content type is set here, because Bun would add a charset, which RFC 8259 does not define for JSON.
      // `mapResponse` would fit better, but Elysia treats its missing result as the response of an unknown path.
      if (isPlain(bodyOf(responseValue))) set.headers["content-type"] ??= "application/json";
      // Responses are reported in `onAfterHandle`, because `onAfterResponse`, which would fit better, starts a timer
      // for each request.
      const status = statusOf(responseValue, set.status);
      const report = () => answered({ request, requestState, route }, status);
      if (creation === undefined) return report();
      // The response waits for the commit. If that fails, `errors` reports the response.
      return creation.created(bodyOf(responseValue)).then(report);
    });
}

/**
 * Value of the HSTS header (RFC 6797). It covers this host only, because other hosts of its domain may belong to
 * other services.
 */
const HSTS = "max-age=31536000";

interface RequestStateOptions {
  readonly clock: Clock;
  /** Whether browsers reach the service over https. */
  readonly isSecure: boolean;
  readonly isProxy: (address: string) => boolean;
  /** The rate limiter; undefined with `RATE_LIMITS=off`. */
  readonly limiter: RateLimiter | undefined;
}

/** Creates the state of each request, and sets the headers that all responses have (contract 2.8). */
function requestStates({ clock, isSecure, isProxy, limiter }: RequestStateOptions) {
  return new Elysia({ name: "request-states" }).onRequest((context) => {
    const { request, server, set } = context;
    const peer = server?.requestIP(request)?.address ?? "127.0.0.1";
    const requestContext = readRequestContext(request.headers, peer, isProxy);
    const requestState: RequestState = {
      requestContext,
      meter: new Meter(limiter),
      startedMs: clock.monotonicMs(),
      rawBody: NO_BODY,
      principal: undefined,
      schemas: undefined,
      body: undefined,
      query: {},
      rules: undefined,
      found: {},
    };
    Object.assign(context, { requestState });
    set.headers["x-request-id"] = requestContext.requestId;
    // Most responses contain a tenant's data and several a secret, so caching is forbidden unless a route permits it.
    set.headers["cache-control"] = "no-store";
    set.headers["x-content-type-options"] = "nosniff";
    if (isSecure) set.headers["strict-transport-security"] = HSTS;
    if (!hasOneHost(request)) throw new Problem("invalid_host");
  });
}

/** Matches a Host header: a DNS name or an address with an optional port, as RFC 9110, 7.2 permits. */
const HOST = /^(?:[a-z0-9._-]{1,255}|\[[0-9a-f:.]{2,45}\])(?::(\d{1,5}))?$/i;
const MAX_PORT = 65_535;

/**
 * Returns whether the request names exactly one host in an unambiguous form. Several Host headers are refused: Bun
 * joins them with a comma. Without a Host header the URL must be absolute. That is so for a request that was created in
 * this process, but not for a request of HTTP/1.0, which permits a missing header.
 */
function hasOneHost({ headers, url }: Pick<Request, "headers" | "url">): boolean {
  const host = headers.get("host");
  if (host === null) return URL.canParse(url);
  const found = HOST.exec(host);
  return found !== null && Number(found[1] ?? 0) <= MAX_PORT;
}

/** Throws if a route declares no access rule, so that such a route cannot expose any data. */
function refuseUnchecked({ schemas }: RequestState, route: string): void {
  if (route.startsWith(`${BASE_PATH}/`) && schemas === undefined)
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
  /** Paths that pages of any origin may call, so that an app in a browser can redeem its authorization code. */
  readonly open: ReadonlySet<string>;
  /** Origins whose pages may call the whole API. */
  readonly origins: readonly string[];
}

const PREFLIGHT_HEADERS = {
  "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
  "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, X-Request-Id",
  // Time in seconds for which a browser may cache the answer to a preflight request; browsers may shorten it.
  "access-control-max-age": "7200",
};
const EXPOSED_HEADERS =
  "X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset";

/**
 * Adds CORS headers (contract 2.11), without credentials. For all other origins and paths than these, a response has no
 * CORS headers, which browsers treat as a denial.
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
    set.headers["access-control-expose-headers"] = EXPOSED_HEADERS;
    if (allow !== "*") set.headers["vary"] = "Origin";
    const isPreflight =
      request.method === "OPTIONS" && request.headers.has("access-control-request-method");
    if (!isPreflight) return;
    Object.assign(set.headers, PREFLIGHT_HEADERS);
    return new Response(null, { status: 204 });
  });
}

/** Paths of the health probes. Monitoring requests them every few seconds, so they are logged at level debug. */
const QUIET_PATHS = new Set(["/healthz", "/readyz"]);
/** Maximum number of characters of a method in the log, because a client may send a method name of any length. */
const METHOD_CHARS = 16;

/**
 * Returns a function that logs each response with its request id, which partners are asked to quote. Instead of the
 * path it logs the pattern of the route, or null for an unknown path. So ids, codes and tokens in a URL do not get into
 * the log.
 */
export function accessLog(clock: Clock, log: Log): Answered {
  return ({ request, requestState, route }, status) => {
    const line = {
      request_id: requestState.requestContext.requestId,
      method: request.method.slice(0, METHOD_CHARS),
      route: route ?? null,
      status,
      duration_ms: Math.round((clock.monotonicMs() - requestState.startedMs) * 10) / 10,
      ...callerOf(requestState),
    };
    if (route !== undefined && QUIET_PATHS.has(route)) log.debug("request.answered", line);
    else log.info("request.answered", line);
  };
}

/**
 * Returns the caller for the access log: the ids of the user and company, or the network address if no token was
 * verified.
 */
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
 * would respond with 404. Elysia derives HEAD from GET; where GET changes data, HEAD is a 405, too (contract 2.6). Call
 * this function after all routes are registered.
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
 * checked in tests. At run time their validation could only turn a committed write into an error, and would take time.
 * Call this function after all routes are registered.
 *
 * Each route gets copies of the schemas, for two reasons. A schema may also be used for a body, where it is validated.
 * And Elysia changes the schemas of a route when the route is first called, which would change the description of other
 * routes.
 */
export function trustAnswers(app: AnyElysia): void {
  for (const { hooks } of app.routes) {
    const response: Record<string, TSchema> = hooks.response ?? {};
    for (const [status, schema] of Object.entries(response))
      response[status] = t.NoValidate({ additionalProperties: true, ...schema });
  }
}
