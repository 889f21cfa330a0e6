import type { TObject, TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";

import type { Clock } from "../lib/clock.ts";
import { type FieldErrors, Problem } from "../lib/problem.ts";
import { type RequestContext, readRequestContext } from "./request-context.ts";
import type { Caller, Principal } from "./principal.ts";
import { Meter, type RateLimiter } from "./rate-limit.ts";
import { type FieldRules, toFieldErrors } from "./rules.ts";

/** The schemas of a route, which say how its request is read. */
export interface Schemas {
  readonly body: TSchema | undefined;
  readonly query: TObject | undefined;
}

/** One request while it is answered, from its first byte to its response. */
export interface RequestState {
  readonly requestContext: RequestContext;
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
type Begun = Request & { [EXCHANGE]?: RequestState };

export function requestStateOf(request: Begun): RequestState {
  const begun = request[EXCHANGE];
  if (begun === undefined) throw new Error("The exchange of this request was never begun.");
  return begun;
}

/** Who is behind the request, once `access` has checked the token. */
export function signedIn({ requestContext, principal }: RequestState): Pick<Caller, keyof Caller> {
  if (principal === undefined) throw new Error("Nobody has checked the token of this request.");
  return { requestContext, principal };
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
export function requestStates({ clock, isSecure, isProxy, limiter }: ExchangeOptions) {
  return new Elysia({ name: "exchange" }).onRequest(({ request, server, set }) => {
    const begun: Begun = request;
    const peer = server?.requestIP(request)?.address ?? "127.0.0.1";
    const requestContext = readRequestContext(request.headers, peer, isProxy);
    begun[EXCHANGE] = {
      requestContext,
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
    set.headers["x-request-id"] = requestContext.requestId;
    // Most answers carry a tenant's data and several a secret, so none may be stored unless it says otherwise.
    set.headers["cache-control"] = "no-store";
    set.headers["x-content-type-options"] = "nosniff";
    if (isSecure) set.headers["strict-transport-security"] = HSTS;
    if (!hasOneHost(request)) throw new Problem("invalid_host");
  });
}

/** A name of DNS or an address, and perhaps a port: what RFC 9110, 7.2 lets a client name us by. */
const HOST = /^(?:[a-z0-9._-]{1,255}|\[[0-9a-f:.]{2,45}\])(?::(\d{1,5}))?$/i;
const MAX_PORT = 65_535;

/**
 * Whether the request names exactly one host in a form that nobody reads in two ways. Bun joins several by a comma. Where
 * there is none, as HTTP/1.0 allows, the URL that it makes has no origin; a request of our own making has one and no header.
 */
function hasOneHost({ headers, url }: Pick<Request, "headers" | "url">): boolean {
  const host = headers.get("host");
  if (host === null) return URL.canParse(url);
  const found = HOST.exec(host);
  return found !== null && Number(found[1] ?? 0) <= MAX_PORT;
}

/**
 * A macro that looks up the record which the path names, scoped to the caller, and hands it to the handler by this
 * name. It throws `not_found` or `forbidden`, which come before any fault of the fields.
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
      // The transform above put it there.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return { [name]: requestStateOf(request).found[name] } as Record<N, T>;
    },
  };
  // A computed key widens to string.
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

/** Asks a route's rules; without a body to speak of they have nothing to say. */
export async function runRules(
  rules: FieldRules | undefined,
  { found, principal, requestContext }: RequestState,
  { body, query }: { readonly body: unknown; readonly query: unknown },
): Promise<FieldErrors> {
  if (rules === undefined) return {};
  // What the rules take follows from the schemas of their own route, which no type of this function can say.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const input = { ...found, principal, requestContext, body, query } as never;
  return toFieldErrors(await rules(input));
}
