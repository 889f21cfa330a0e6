import { TypeGuard, type TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { Problem } from "../lib/problem.ts";
import { type Access, type Authenticator, BASE_PATH } from "./access.ts";
import { BODY_LIMIT, isJson, parseJson, type ReadOptions, RequestBodies } from "./body.ts";
import { beginKeyed, type KeyedRequests } from "./idempotency.ts";
import type { RequestContext } from "./request-context.ts";
import {
  runRules,
  requestStateOf,
  signedIn,
  type RequestState,
  type Schemas,
} from "./request-state.ts";
import { readQuery } from "./fields.ts";
import { type FieldRules, throwFieldErrors } from "./rules.ts";
import { queryOf } from "./text.ts";
import type { Principal } from "./principal.ts";
import type { Subject } from "./rate-limit.ts";

/** Options of a public route, which needs no bearer token. */
interface PublicOptions {
  /** The body limit in bytes; 64 KiB if absent. */
  readonly bodyLimit?: number;
  /** Returns whether `verify` could accept a request with these headers; otherwise its body is not kept. */
  readonly mayVerify?: (requestContext: RequestContext) => boolean;
  /** Verifies the raw bytes of the body before they are parsed, for example by a signature. */
  readonly verify?: (input: Received) => Promise<void>;
  /** Verifies a request again that passed `verify`, before it is rejected for its syntax. */
  readonly verifyAgain?: (input: Received) => Promise<void>;
}

export interface Received {
  readonly requestContext: RequestContext;
  readonly params: Readonly<Record<string, string>>;
  readonly raw: Uint8Array;
}

/** The fields of Elysia's context that the checks use. */
export interface CheckContext extends Fields {
  readonly request: Request;
  readonly params: Readonly<Record<string, string>>;
  readonly route: string;
  readonly set: { readonly headers: Record<string, string | number | undefined> };
  readonly status: (code: 201, body: unknown) => unknown;
}

/**
 * Macros with which a route declares its checks. The checks run in a fixed order (contract 2.6):
 * 1. status 413, while the body is read
 * 2. status 401 and 403, by `access`
 * 3. status 415 and 400, for the syntax of the body
 * 4. status 404 and 403, by the macros that `loads` makes
 * 5. status 422, by schemas and `rules` together
 * Elysia validates after `transform`, so every check before the 422 is a transform, and a route must name `access` or
 * `public` before its loaders. The parser is a function, because with `parse: "none"` Elysia silently skips the
 * validation of the body.
 */
export function checks(authenticator: Authenticator, keyed: KeyedRequests) {
  const bodies = new RequestBodies();
  return new Elysia({ name: "checks" }).macro({
    access: (access: Access) => {
      const declared = declaration(BODY_LIMIT);
      return {
        introspect: declared.read,
        detail: describedOf(access),
        parse: ({ request }: Pick<CheckContext, "request">) =>
          readRaw(bodies, request, declared.of().bodyLimit),
        async transform(context: CheckContext) {
          const { request, route } = context;
          const requestState = requestStateOf(request);
          requestState.principal = await admit(authenticator, access, {
            requestState,
            request,
            route,
          });
          Object.assign(context.set.headers, requestState.meter.headers);
          await requestState.rawBody.begin();
          const { body, query } = readFields(request, requestState, declared.of());
          context.body = body;
          context.query = query;
        },
        resolve: ({ request }: Pick<CheckContext, "request">) => signedIn(requestStateOf(request)),
        // Before the rules, which a repeated request breaks: its record exists already.
        beforeHandle({ request, status }: Pick<CheckContext, "request" | "status">) {
          if (!declared.of().creates) return undefined;
          const earlier = beginKeyed(keyed, request, requestStateOf(request));
          return earlier?.then((body) => (body === undefined ? undefined : status(201, body)));
        },
      };
    },
    // The macro takes `true` in place of empty options, because Elysia treats an empty object as a macro that is off.
    public: (value: true | PublicOptions) => {
      const options = value === true ? {} : value;
      const declared = declaration(options.bodyLimit ?? BODY_LIMIT);
      return {
        introspect: declared.read,
        parse: ({ request }: Pick<CheckContext, "request">) =>
          readPublic(bodies, request, { ...options, declared: declared.of() }),
        async transform(context: CheckContext) {
          const { request, params } = context;
          const requestState = requestStateOf(request);
          await verifyPublic(options, requestState, { params, declared: declared.of() });
          Object.assign(context.set.headers, requestState.meter.headers);
          await requestState.rawBody.begin();
          const { body, query } = await readVerified(options, request, [params, declared.of()]);
          context.body = body;
          context.query = query;
        },
        resolve({ request }: Pick<CheckContext, "request">) {
          const { requestContext, rawBody } = requestStateOf(request);
          return { requestContext, raw: rawBody.bytes };
        },
      };
    },
    /** Marks a route whose absent body counts as `{}`. */
    emptyBody: (_isSet: true) => ({}),
    /** Raises the body limit of a route with a token to this number of bytes. */
    largeBody: (_bytes: number) => ({}),
    /** Exempts a public route from the rate limits (contract 2.9). */
    uncounted: (_isSet: true) => ({}),
    /** Applies the tighter rate limit for routes where passwords, codes or tokens can be guessed (contract 2.9). */
    signIn: (_isSet: true) => ({}),
    rules: (rules: FieldRules) => ({
      transform({ request }: Pick<CheckContext, "request">) {
        requestStateOf(request).rules = rules;
      },
      async beforeHandle({
        request,
        body,
        query,
      }: Pick<CheckContext, "request" | "body" | "query">) {
        throwFieldErrors(await runRules(rules, requestStateOf(request), { body, query }));
      },
    }),
  });
}

export type Checks = ReturnType<typeof checks>;

/**
 * Returns the security requirements of a route for its OpenAPI description: a bearer token from any source, or a
 * token of an OAuth client, with the required scope. Adds `x-token` if the route does not accept every kind of token,
 * and `x-step-up` if it asks for a fresh session.
 */
function describedOf({ scope, takes, stepUp }: Access) {
  const scopes = scope === undefined ? [] : [scope];
  const isOfPerson = takes !== "service";
  const security = [{ bearer: scopes }, ...(isOfPerson ? [{ oauth: scopes }] : [])];
  return {
    security,
    ...(takes !== "any" && { "x-token": takes }),
    ...(stepUp === true && { "x-step-up": true }),
  };
}

interface Fields {
  body: unknown;
  query: unknown;
}

interface Declared extends Schemas {
  readonly emptyBody: boolean;
  /** Whether the route creates a record, so that its requests may have an `Idempotency-Key`. */
  readonly creates: boolean;
  readonly uncounted: boolean;
  /** The limit of the route's body in bytes. */
  readonly bodyLimit: number;
  readonly signIn: boolean;
}

/**
 * Collects the other declarations of a route that uses a checking macro. Elysia passes them to `introspect` when the
 * route is created.
 */
function declaration(bodyLimit: number) {
  let declared: Declared = {
    body: undefined,
    query: undefined,
    emptyBody: false,
    creates: false,
    uncounted: false,
    bodyLimit,
    signIn: false,
  };
  return {
    read: ({ body, query, emptyBody, largeBody, response, uncounted, signIn }: Introspected) => {
      declared = {
        body: TypeGuard.IsSchema(body) ? body : undefined,
        query: TypeGuard.IsObject(query) ? query : undefined,
        emptyBody: emptyBody === true,
        creates: Object.hasOwn(Object(response), "201"),
        uncounted: uncounted === true,
        bodyLimit: largeBody ?? bodyLimit,
        signIn: signIn === true,
      };
    },
    of: () => declared,
  };
}

interface Introspected {
  readonly body?: unknown;
  readonly query?: unknown;
  readonly emptyBody?: true;
  readonly largeBody?: number;
  readonly response?: unknown;
  readonly uncounted?: true;
  readonly signIn?: true;
}

/**
 * Reads the body of a route that needs a token, within the body's limit. A body that is too large is counted for the
 * rate limit of the address, because the token was not checked yet.
 */
async function readRaw(
  bodies: RequestBodies,
  request: Request,
  limit: number,
): Promise<Uint8Array> {
  const requestState = requestStateOf(request);
  try {
    return await readInto(bodies, request, {
      from: requestState.requestContext.ip,
      limit,
    });
  } catch (error) {
    if (error instanceof Problem)
      await requestState.meter.count({ kind: "ip", id: requestState.requestContext.ip });
    throw error;
  }
}

async function readPublic(
  bodies: RequestBodies,
  request: Request,
  { declared, mayVerify }: Pick<PublicOptions, "mayVerify"> & { readonly declared: Declared },
): Promise<Uint8Array> {
  const requestState = requestStateOf(request);
  const { requestContext } = requestState;
  await countAddress(requestState, declared);
  const isDiscarded = mayVerify?.(requestContext) === false;
  return readInto(bodies, request, {
    from: requestContext.ip,
    limit: declared.bodyLimit,
    isDiscarded,
  });
}

async function readInto(
  bodies: RequestBodies,
  request: Request,
  options: ReadOptions,
): Promise<Uint8Array> {
  const requestState = requestStateOf(request);
  requestState.rawBody = await bodies.read(request, options);
  return requestState.rawBody.bytes;
}

async function verifyPublic(
  { verify }: PublicOptions,
  requestState: RequestState,
  { params, declared }: Pick<CheckContext, "params"> & { readonly declared: Declared },
): Promise<void> {
  await countAddress(requestState, declared);
  const { requestContext, rawBody } = requestState;
  await verify?.({ requestContext, params, raw: rawBody.bytes });
}

/**
 * Reads the fields of a request whose signature was verified. If the fields cannot be read, the signature is verified
 * again before the error.
 */
async function readVerified(
  { verifyAgain }: PublicOptions,
  request: Request,
  [params, declared]: readonly [Received["params"], Declared],
): Promise<Fields> {
  const requestState = requestStateOf(request);
  try {
    return readFields(request, requestState, declared);
  } catch (error) {
    await verifyAgain?.({
      requestContext: requestState.requestContext,
      params,
      raw: requestState.rawBody.bytes,
    });
    throw error;
  }
}

async function countAddress(
  { meter, requestContext }: RequestState,
  { signIn, uncounted }: Declared,
): Promise<void> {
  if (!uncounted) await meter.count({ kind: signIn ? "signIn" : "ip", id: requestContext.ip });
}

/**
 * Returns the subject of the rate limit. Sessions of a portal link are counted separately from the user who made the
 * link, and a sign-in that waits for a second factor counts for its address, so that it takes nothing from the user
 * (contract 2.9).
 */
function subjectOf(principal: Principal, { ip }: RequestContext): Subject {
  if (principal.tokenKind === "challenge") return { kind: "signIn", id: ip };
  const user = String(principal.impersonatorId ?? principal.userId);
  return principal.tokenKind === "portal"
    ? { kind: "portal", id: principal.jti, maker: user }
    : { kind: "user", id: user };
}

interface Admission {
  readonly requestState: RequestState;
  readonly request: Request;
  readonly route: string;
}

/**
 * Authenticates the request and counts it for the rate limit: for the user if the token is valid, otherwise for the
 * address. An unverified token is never counted for its user, because anyone could exhaust the limit of another user.
 */
async function admit(
  authenticator: Authenticator,
  access: Access,
  { requestState: { requestContext, meter }, request, route }: Admission,
): Promise<Principal> {
  const principal = await authenticator
    .authenticate(requestContext)
    .catch(async (error: unknown) => {
      if (error instanceof Problem) await meter.count({ kind: "ip", id: requestContext.ip });
      throw error;
    });
  // A service introspects a token for each request of its own users, so no limit of a user fits it (contract 2.9).
  if (principal.tokenKind !== "service") await meter.count(subjectOf(principal, requestContext));
  const path = route.slice(BASE_PATH.length);
  authenticator.noteUse(principal, requestContext, `${request.method} ${path}`);
  const deniedCode = access.refuse(principal);
  if (deniedCode === undefined) return principal;
  // The caller may do it after a proof, so this is no refusal for the audit log.
  if (deniedCode === "step_up_required") throw new Problem(deniedCode);
  await authenticator.recordAccessDenied(principal, requestContext, {
    method: request.method,
    path,
    reason: deniedCode,
  });
  throw new Problem(deniedCode);
}

/**
 * Reads body and query for the schemas of the route, and keeps them for `onError` (errors.ts). Elysia's whole context
 * is not passed to this function, because Elysia would then parse cookies and headers for every request.
 */
function readFields(request: Request, requestState: RequestState, declared: Declared): Fields {
  requestState.schemas = declared;
  requestState.body = readJson(requestState, declared);
  requestState.query = readParameters(request, declared);
  return requestState;
}

/** Parses the body as JSON. Elysia's validation compares it with the schema later. */
function readJson(
  { requestContext, rawBody: { bytes: raw } }: RequestState,
  { body, emptyBody, bodyLimit }: Declared,
): unknown {
  // The body of a GET or DELETE is not read, because it has no meaning (RFC 9110, 9.3.5).
  if (body === undefined) return undefined;
  if (raw.byteLength === 0 && (emptyBody || isNothing(body))) return {};
  if (!isJson(requestContext.headers)) throw new Problem("unsupported_media_type");
  return parseJson(raw, bodyLimit);
}

function readParameters(request: Request, { query }: Declared): Record<string, unknown> {
  return query === undefined ? {} : readQuery(query, queryOf(request));
}

/** Returns whether the schema of a body has no fields. */
function isNothing(body: TSchema): boolean {
  return TypeGuard.IsObject(body) && Object.keys(body.properties).length === 0;
}
