import { TypeGuard, type TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { fieldsOf } from "../lib/fields.ts";
import { Problem } from "../lib/problem.ts";
import { type Access, type Authenticator, BASE_PATH } from "./access.ts";
import { BODY_LIMIT, isJson, parseJson, type ReadOptions, RequestBodies } from "./body.ts";
import { beginKeyed, type KeyedRequests } from "./idempotency.ts";
import type { RequestContext } from "./request-context.ts";
import {
  declaresRequestState,
  runRules,
  signedIn,
  type RequestState,
  type Schemas,
  type StatefulContext,
} from "./request-state.ts";
import { readQuery } from "./fields.ts";
import { type FieldRules, throwFieldErrors } from "./rules.ts";
import { queryOf } from "./text.ts";
import type { Principal } from "./principal.ts";
import type { Subject } from "./rate-limit.ts";

interface BodyOptions {
  /** The body limit in bytes; 64 KiB if absent. */
  readonly bodyLimit?: number;
}

/** Options of a route that requires a token: its access rule, and how its body is read. */
export interface RouteAccess extends Access, BodyOptions {
  /** Whether an absent body counts as `{}`. */
  readonly mayBeEmpty?: boolean;
}

/** Options of a public route, which needs no bearer token. */
export interface PublicOptions extends BodyOptions {
  /** Applies the tighter rate limit for routes where passwords, codes or tokens can be guessed (contract 2.9). */
  readonly isSignIn?: true;
  /** Exempts the route from the rate limits (contract 2.9). */
  readonly isUncounted?: true;
  /** Returns whether `verify` could accept a request with these headers. If not, its body is discarded. */
  readonly mayVerify?: (requestContext: RequestContext) => boolean;
  /** Verifies the raw bytes of the body before they are parsed, for example by a signature. */
  readonly verify?: (input: Received) => Promise<void>;
  /** Verifies a request that passed `verify` once more before it is rejected for its syntax. */
  readonly verifyAgain?: (input: Received) => Promise<void>;
}

export interface Received {
  readonly requestContext: RequestContext;
  readonly params: Readonly<Record<string, string>>;
  readonly raw: Uint8Array;
}

/** The fields of Elysia's context that the checks use. */
export interface CheckContext extends Fields, StatefulContext {
  readonly request: Request;
  readonly params: Readonly<Record<string, string>>;
  readonly route: string;
  readonly set: { readonly headers: Record<string, string | number | undefined> };
  readonly status: (code: 201, body: unknown) => unknown;
}

type ReceivedContext = Pick<CheckContext, "request" | "requestState">;

/**
 * Macros with which a route declares its checks. The checks run in a fixed order (contract 2.6):
 * 1. status 413, while the body is read
 * 2. status 401 and 403, by `access`
 * 3. status 415 and 400, for the syntax of the body
 * 4. status 404 and 403, by the macros that `loads` creates
 * 5. status 422, by schemas and `rules` together
 *
 * Elysia validates after `transform`. So every check before the 422 is a `transform` hook, and a route must declare
 * `access` or `public` before its loaders. The parser is a function, because with `parse: "none"` Elysia silently skips
 * the validation of the body.
 */
export function checks(authenticator: Authenticator, keyed: KeyedRequests) {
  const bodies = new RequestBodies();
  return new Elysia({ name: "checks" }).use(declaresRequestState()).macro({
    access: (access: RouteAccess) => {
      const declared = declaration(access);
      return {
        introspect: declared.read,
        detail: describedOf(access),
        parse: ({ request, requestState }: ReceivedContext) =>
          readRaw(bodies, { request, requestState }, declared.of().bodyLimit),
        async transform(context: CheckContext) {
          const { request, requestState, route } = context;
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
        resolve: ({ requestState }: StatefulContext) => signedIn(requestState),
        // A repeated request is answered before the rules run. They would reject it, because what it creates exists
        // already.
        beforeHandle({
          request,
          requestState,
          status,
        }: Pick<CheckContext, "request" | "requestState" | "status">) {
          if (!declared.of().creates) return undefined;
          const earlier = beginKeyed(keyed, request, requestState);
          return earlier?.then((body) => (body === undefined ? undefined : status(201, body)));
        },
      };
    },
    // The macro accepts `true` in place of empty options, because Elysia treats an empty object as a disabled macro.
    public: (value: true | PublicOptions) => {
      const options = value === true ? {} : value;
      const declared = declaration(options);
      return {
        introspect: declared.read,
        parse: ({ request, requestState }: ReceivedContext) =>
          readPublic(bodies, { request, requestState }, options),
        async transform(context: CheckContext) {
          const { requestState, params } = context;
          await verifyPublic(options, requestState, params);
          Object.assign(context.set.headers, requestState.meter.headers);
          await requestState.rawBody.begin();
          const { body, query } = await readVerified(options, context, declared.of());
          context.body = body;
          context.query = query;
        },
        resolve: ({ requestState: { requestContext, rawBody } }: StatefulContext) => ({
          requestContext,
          raw: rawBody.bytes,
        }),
      };
    },
    rules: (rules: FieldRules) => ({
      transform({ requestState }: StatefulContext) {
        requestState.rules = rules;
      },
      async beforeHandle({
        requestState,
        body,
        query,
      }: Pick<CheckContext, "requestState" | "body" | "query">) {
        throwFieldErrors(await runRules(rules, requestState, { body, query }));
      },
    }),
  });
}

export type Checks = ReturnType<typeof checks>;

/**
 * Returns the security requirements of a route for its OpenAPI description: a bearer token of any kind, or a token of
 * an OAuth client, with the required scope. Adds `x-token` if the route does not accept every kind of token, and
 * `x-step-up` if it requires a fresh session. Elysia does not keep the options of a macro, so `x-may-be-empty` tells
 * `describeOperation` that the body is optional.
 */
function describedOf({ scope, takes, stepUp, mayBeEmpty }: RouteAccess) {
  const scopes = scope === undefined ? [] : [scope];
  const isOfPerson = takes !== "service";
  const security = [{ bearer: scopes }, ...(isOfPerson ? [{ oauth: scopes }] : [])];
  return {
    security,
    ...(takes !== "any" && { "x-token": takes }),
    ...(stepUp === true && { "x-step-up": true }),
    ...(mayBeEmpty === true && { "x-may-be-empty": true }),
  };
}

interface Fields {
  body: unknown;
  query: unknown;
}

interface DeclaredRoute extends Schemas {
  /** Whether the route creates something. Its requests may then carry an `Idempotency-Key`. */
  readonly creates: boolean;
  /** The limit of the route's body in bytes. */
  readonly bodyLimit: number;
  readonly mayBeEmpty: boolean;
}

/**
 * Adds the schemas of a route to the options of its macro, for hooks that run before the validation and therefore do
 * not receive them. Elysia passes the schemas to `introspect` when the route is created.
 */
function declaration({
  bodyLimit = BODY_LIMIT,
  mayBeEmpty = false,
}: Omit<RouteAccess, keyof Access>) {
  const options = { bodyLimit, mayBeEmpty };
  let declared: DeclaredRoute = { ...options, body: undefined, query: undefined, creates: false };
  return {
    read: ({ body, query, response }: IntrospectedSchemas) => {
      declared = {
        ...options,
        body: TypeGuard.IsSchema(body) ? body : undefined,
        query: TypeGuard.IsObject(query) ? query : undefined,
        creates: Object.hasOwn(fieldsOf(response), "201"),
      };
    },
    of: () => declared,
  };
}

interface IntrospectedSchemas {
  readonly body?: unknown;
  readonly query?: unknown;
  readonly response?: unknown;
}

/**
 * Reads the body of a route that requires a token, within the body's limit. A request whose body is too large counts
 * for the rate limit of its address, because its token is not verified yet.
 */
async function readRaw(
  bodies: RequestBodies,
  received: ReceivedContext,
  limit: number,
): Promise<Uint8Array> {
  const { requestContext, meter } = received.requestState;
  try {
    return await readInto(bodies, received, { from: requestContext.ip, limit });
  } catch (error) {
    if (error instanceof Problem) await meter.count({ kind: "ip", id: requestContext.ip });
    throw error;
  }
}

async function readPublic(
  bodies: RequestBodies,
  received: ReceivedContext,
  options: PublicOptions,
): Promise<Uint8Array> {
  const { requestContext } = received.requestState;
  await countAddress(received.requestState, options);
  const isDiscarded = options.mayVerify?.(requestContext) === false;
  const { bodyLimit: limit = BODY_LIMIT } = options;
  return readInto(bodies, received, { from: requestContext.ip, limit, isDiscarded });
}

async function readInto(
  bodies: RequestBodies,
  { request, requestState }: ReceivedContext,
  options: ReadOptions,
): Promise<Uint8Array> {
  requestState.rawBody = await bodies.read(request, options);
  return requestState.rawBody.bytes;
}

async function verifyPublic(
  options: PublicOptions,
  requestState: RequestState,
  params: CheckContext["params"],
): Promise<void> {
  await countAddress(requestState, options);
  const { requestContext, rawBody } = requestState;
  await options.verify?.({ requestContext, params, raw: rawBody.bytes });
}

/**
 * Reads the fields of a request whose signature was verified. If they cannot be read, verifies the signature again
 * before the error is thrown.
 */
async function readVerified(
  { verifyAgain }: PublicOptions,
  { request, requestState, params }: Pick<CheckContext, "request" | "requestState" | "params">,
  declared: DeclaredRoute,
): Promise<Fields> {
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
  { isSignIn, isUncounted }: PublicOptions,
): Promise<void> {
  if (!isUncounted) await meter.count({ kind: isSignIn ? "signIn" : "ip", id: requestContext.ip });
}

/**
 * Returns the subject of the rate limit (contract 2.9). Sessions of a portal link are counted separately from the user
 * who created the link. A sign-in that waits for a second factor is counted for its address, so that it does not use up
 * the limit of the user.
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
  // A service introspects a token for each request of its own users, so it has no rate limit (contract 2.9).
  if (principal.tokenKind !== "service") await meter.count(subjectOf(principal, requestContext));
  const path = route.slice(BASE_PATH.length);
  authenticator.noteUse(principal, requestContext, `${request.method} ${path}`);
  const deniedCode = access.refuse(principal);
  if (deniedCode === undefined) return principal;
  // The caller may repeat the request after a step-up, so the audit log does not record a denied access.
  if (deniedCode === "step_up_required") throw new Problem(deniedCode);
  await authenticator.recordAccessDenied(principal, requestContext, {
    method: request.method,
    path,
    reason: deniedCode,
  });
  throw new Problem(deniedCode);
}

/**
 * Reads body and query for the schemas of the route, and stores them for `onError` (errors.ts). Elysia's whole context
 * is not passed to this function, because Elysia would then parse cookies and headers for every request.
 */
function readFields(request: Request, requestState: RequestState, declared: DeclaredRoute): Fields {
  requestState.schemas = declared;
  requestState.body = readJson(requestState, declared);
  requestState.query = readParameters(request, declared);
  return requestState;
}

/** Parses the body as JSON. Elysia's validation compares it with the schema later. */
function readJson(
  { requestContext, rawBody: { bytes: raw } }: RequestState,
  { body, mayBeEmpty, bodyLimit }: DeclaredRoute,
): unknown {
  // The body of a GET or DELETE is not read, because it has no meaning (RFC 9110, 9.3.5).
  if (body === undefined) return undefined;
  if (raw.byteLength === 0 && (mayBeEmpty || isNothing(body))) return {};
  if (!isJson(requestContext.headers)) throw new Problem("unsupported_media_type");
  return parseJson(raw, bodyLimit);
}

function readParameters(request: Request, { query }: DeclaredRoute): Record<string, unknown> {
  return query === undefined ? {} : readQuery(query, queryOf(request));
}

/** Returns whether the schema of a body defines no fields. */
function isNothing(body: TSchema): boolean {
  return TypeGuard.IsObject(body) && Object.keys(body.properties).length === 0;
}
