import type { TObject, TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";

import type { Clock } from "../lib/clock.ts";
import { Problem } from "../lib/problem.ts";
import { readCall, type Call } from "./call.ts";
import { hasOneHost } from "./host.ts";
import type { Caller, Principal } from "./principal.ts";
import { Meter, type RateLimiter } from "./rate-limit.ts";
import type { FieldRules } from "./rules.ts";

/** The schemas of a route, which say how its request is read. */
export interface Schemas {
  readonly body: TSchema | undefined;
  readonly query: TObject | undefined;
}

/** One request while it is answered, from its first byte to its response. */
export interface Exchange {
  readonly call: Call;
  readonly meter: Meter;
  readonly startedMs: number;
  /** The body as it came, for signatures over its bytes. */
  raw: Uint8Array;
  /** Says that the sender of the body is verified or refused; does nothing where there is no body. */
  releaseBody: () => void;
  /** Undefined until the token was verified, and on a public route. */
  principal: Principal | undefined;
  /** Undefined until the checks of the route that was found began. */
  schemas: Schemas | undefined;
  /** What was sent, as far as it was read: the validation may still refuse it. */
  body: unknown;
  query: unknown;
  rules: FieldRules | undefined;
  /** The records that the path names, by the name of the macro that looked them up. */
  readonly found: Record<string, unknown>;
}

const NOTHING = new Uint8Array();

/**
 * Elysia's context has no place that every hook sees and types, errors included; the request itself has. A WeakMap beside
 * it costs the garbage collector some percent of a short request.
 */
const EXCHANGE = Symbol("exchange");
type Begun = Request & { [EXCHANGE]?: Exchange };

export function exchangeOf(request: Begun): Exchange {
  const begun = request[EXCHANGE];
  if (begun === undefined) throw new Error("The exchange of this request was never begun.");
  return begun;
}

/** Who is behind the request, once `access` has checked the token. */
export function signedIn({ call, principal }: Exchange): Pick<Caller, keyof Caller> {
  if (principal === undefined) throw new Error("Nobody has checked the token of this request.");
  return { call, principal };
}

/** RFC 6797. It names this host alone: what else is under its domain is not ours to decide. */
const HSTS = "max-age=31536000";

interface ExchangeOptions {
  readonly clock: Clock;
  /** Whether browsers come by https. */
  readonly isSecure: boolean;
  readonly isProxy: (address: string) => boolean;
  /** Absent with `RATE_LIMITS=off`. */
  readonly limiter: RateLimiter | undefined;
}

/** Begins the exchange of each request and gives every answer the headers that all of them have (contract 2.8). */
export function exchange({ clock, isSecure, isProxy, limiter }: ExchangeOptions) {
  return new Elysia({ name: "exchange" }).onRequest(({ request, server, set }) => {
    const begun: Begun = request;
    const peer = server?.requestIP(request)?.address ?? "127.0.0.1";
    const call = readCall(request.headers, peer, isProxy);
    begun[EXCHANGE] = {
      call,
      meter: new Meter(limiter),
      startedMs: clock.monotonicMs(),
      raw: NOTHING,
      releaseBody: () => {},
      principal: undefined,
      schemas: undefined,
      body: undefined,
      query: undefined,
      rules: undefined,
      found: {},
    };
    set.headers["x-request-id"] = call.requestId;
    // Most answers carry a tenant's data and several a secret, so none may be stored unless it says otherwise.
    set.headers["cache-control"] = "no-store";
    set.headers["x-content-type-options"] = "nosniff";
    if (isSecure) set.headers["strict-transport-security"] = HSTS;
    if (!hasOneHost(request)) throw new Problem("invalid_host");
  });
}
