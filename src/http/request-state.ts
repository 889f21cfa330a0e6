import type { TObject, TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";

import type { Clock } from "../lib/clock.ts";
import { type FieldErrors, Problem } from "../lib/problem.ts";
import { NO_BODY, type RequestBody } from "./body.ts";
import { type RequestContext, readRequestContext } from "./request-context.ts";
import type { Caller, Principal } from "./principal.ts";
import { Meter, type RateLimiter } from "./rate-limit.ts";
import { type FieldRules, toFieldErrors } from "./rules.ts";

/** The schemas of a route, by which body and query are read. */
export interface Schemas {
  readonly body: TSchema | undefined;
  readonly query: TObject | undefined;
}

/** The state of a request from its first byte to its response. */
export interface RequestState {
  readonly requestContext: RequestContext;
  readonly meter: Meter;
  readonly startedMs: number;
  /** The body as it was sent, for signatures over its bytes; empty before it is read. */
  rawBody: RequestBody;
  /** The user of the token; undefined until the token was verified, and on public routes. */
  principal: Principal | undefined;
  /** The schemas of the matched route; undefined until its checks begin. */
  schemas: Schemas | undefined;
  /** The values of body and query as they were read; the validation may still reject them. */
  body: unknown;
  query: unknown;
  rules: FieldRules | undefined;
  /** Objects that the path names, by the name of the macro that loaded them. */
  readonly found: Record<string, unknown>;
}

/**
 * Property of the request object that holds the request state. Elysia's context has no typed field that every hook
 * can read, including error hooks. A WeakMap would cost the garbage collector a few percent of the time of a short
 * request.
 */
const REQUEST_STATE = Symbol("requestState");
type WithState = Request & { [REQUEST_STATE]?: RequestState };

export function requestStateOf(request: WithState): RequestState {
  const withState = request[REQUEST_STATE];
  if (withState === undefined) throw new Error("This request has no state.");
  return withState;
}

/** Returns the signed-in caller of a request whose token `access` has checked. */
export function signedIn({ requestContext, principal }: RequestState): Pick<Caller, keyof Caller> {
  if (principal === undefined) throw new Error("The token of this request was not checked.");
  return { requestContext, principal };
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
export function requestStates({ clock, isSecure, isProxy, limiter }: RequestStateOptions) {
  return new Elysia({ name: "request-state" }).onRequest(({ request, server, set }) => {
    const withState: WithState = request;
    const peer = server?.requestIP(request)?.address ?? "127.0.0.1";
    const requestContext = readRequestContext(request.headers, peer, isProxy);
    withState[REQUEST_STATE] = {
      requestContext,
      meter: new Meter(limiter),
      startedMs: clock.monotonicMs(),
      rawBody: NO_BODY,
      principal: undefined,
      schemas: undefined,
      body: undefined,
      query: undefined,
      rules: undefined,
      found: {},
    };
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
 * Returns whether the request names exactly one host in an unambiguous form. Bun joins several Host headers with a
 * comma. Without a Host header, which HTTP/1.0 permits, Bun's URL has no origin. A request that was created in this
 * process has an origin and no header.
 */
function hasOneHost({ headers, url }: Pick<Request, "headers" | "url">): boolean {
  const host = headers.get("host");
  if (host === null) return URL.canParse(url);
  const found = HOST.exec(host);
  return found !== null && Number(found[1] ?? 0) <= MAX_PORT;
}

/**
 * Makes an Elysia macro that loads the object which the path names, if the caller may access it, and passes it to the
 * handler under `name`. The macro throws `not_found` or `forbidden`, which take precedence over field errors.
 */
export function loads<const N extends string, T>(
  name: N,
  find: (input: LoaderInput) => Promise<T>,
): Record<N, LoaderMacro<N, T>> {
  const macro: LoaderMacro<N, T> = {
    async transform({ request, params }) {
      const requestState = requestStateOf(request);
      requestState.found[name] = await find({ ...signedIn(requestState), params });
    },
    resolve({ request }) {
      // The cast is safe, because the transform above has set this property.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return { [name]: requestStateOf(request).found[name] } as Record<N, T>;
    },
  };
  // The cast is needed, because TypeScript types a computed key as string.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { [name]: macro } as Record<N, LoaderMacro<N, T>>;
}

interface LoaderInput extends Caller {
  readonly params: Readonly<Record<string, string>>;
}

interface LoaderMacro<N extends string, T> {
  transform(context: {
    readonly request: Request;
    readonly params: Readonly<Record<string, string>>;
  }): Promise<void>;
  resolve(context: { readonly request: Request }): Record<N, T>;
}

/** Runs the field rules of a route and returns their errors; a route without rules has no such errors. */
export async function runRules(
  rules: FieldRules | undefined,
  { found, principal, requestContext }: RequestState,
  { body, query }: { readonly body: unknown; readonly query: unknown },
): Promise<FieldErrors> {
  if (rules === undefined) return {};
  // The input type of the rules follows from the schemas of their route, which the type of this function cannot
  // express.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const input = { ...found, principal, requestContext, body, query } as never;
  return toFieldErrors(await rules(input));
}
