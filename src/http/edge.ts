import { Elysia, ElysiaCustomStatusResponse } from "elysia";

import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { BASE_PATH } from "./base-path.ts";
import { proxyTest } from "./call.ts";
import { errors, type ErrorLook } from "./errors.ts";
import { exchange, exchangeOf } from "./exchange.ts";
import type { Answered } from "./metrics.ts";
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
    .use(exchange({ clock, isSecure, isProxy: proxyTest(trustedProxies), limiter }))
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
  if (route.startsWith(`${BASE_PATH}/`) && exchangeOf(request).schemas === undefined)
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
