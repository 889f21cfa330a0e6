import { TypeGuard, type TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { Problem } from "../lib/problem.ts";
import { type Access, type Authenticator, BASE_PATH } from "./access.ts";
import { BODY_LIMIT, isJson, parseJson, type ReadOptions, UnverifiedBodies } from "./body.ts";
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

/** What a public route may ask for besides. */
interface PublicOptions {
  /** In bytes; 64 KiB if absent. */
  readonly bodyLimit?: number;
  /** Whether `verify` may accept a request with these headers; if not, no byte of its body is kept. */
  readonly mayVerify?: (requestContext: RequestContext) => boolean;
  /** Looks at the bytes before anything is parsed: a signature is checked here. */
  readonly verify?: (input: Received) => Promise<void>;
  /** Verifies a request again that `verify` has let pass and that is about to be refused for its syntax. */
  readonly verifyAgain?: (input: Received) => Promise<void>;
}

interface Received {
  readonly requestContext: RequestContext;
  readonly params: Readonly<Record<string, string>>;
  readonly raw: Uint8Array;
}

/** The part of Elysia's context that the checks work with. */
export interface CheckContext extends Fields {
  readonly request: Request;
  readonly params: Readonly<Record<string, string>>;
  readonly route: string;
  readonly set: { readonly headers: Record<string, string | number | undefined> };
}

/**
 * What a route declares of its checks, as macros. They run in one fixed order (contract 2.7): 413 while the body is
 * read, 401 and 403 by `access`, 415 and 400 of the syntax, 404 and 403 by the macros that `finds` makes, 422 by schemas
 * and `rules` together. Elysia validates after `transform`, so whatever comes before the 422 is a transform; a route
 * names `access` or `public` before what it finds. The parser is one of our own, because `parse: "none"` makes Elysia
 * drop the validation of the body without a word.
 */
export function checks(authenticator: Authenticator) {
  const bodies = new UnverifiedBodies();
  return new Elysia({ name: "checks" }).macro({
    access: (access: Access) => {
      const declared = declaration(BODY_LIMIT);
      return {
        introspect: declared.read,
        detail: describedOf(access),
        parse: ({ request }: Pick<CheckContext, "request">) => readRaw(bodies, request),
        async transform(context: CheckContext) {
          const { request, route } = context;
          const requestState = requestStateOf(request);
          requestState.principal = await admit(authenticator, access, {
            requestState,
            request,
            route,
          });
          Object.assign(context.set.headers, requestState.meter.headers);
          const { body, query } = readFields(request, requestState, declared.of());
          context.body = body;
          context.query = query;
        },
        resolve: ({ request }: Pick<CheckContext, "request">) => signedIn(requestStateOf(request)),
      };
    },
    // `true`, because Elysia takes an empty object for a macro that is switched off.
    public: (asked: true | PublicOptions) => {
      const options = asked === true ? {} : asked;
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
          const { body, query } = await readVerified(options, request, [params, declared.of()]);
          context.body = body;
          context.query = query;
        },
        resolve({ request }: Pick<CheckContext, "request">) {
          const { requestContext, raw } = requestStateOf(request);
          return { requestContext, raw };
        },
      };
    },
    /** Lets an absent body count as `{}`. */
    emptyBody: (_isSet: true) => ({}),
    /** Lets the rate limits pass a public route by (contract 2.9). */
    uncounted: (_isSet: true) => ({}),
    /** Counts a public route, where passwords, codes or tokens are tried, more tightly (contract 2.9). */
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
 * Lists the ways of access in the description: a token from any source, or one that an OAuth client was given, with the scope;
 * and `x-token`, where the route does not take every kind of token.
 */
function describedOf({ scope, takes }: Access) {
  const scopes = scope === undefined ? [] : [scope];
  const security = [{ bearer: scopes }, { oauth: scopes }];
  return { security, ...(takes !== "any" && { "x-token": takes }) };
}

interface Fields {
  body: unknown;
  query: unknown;
}

interface Declared extends Schemas {
  readonly emptyBody: boolean;
  readonly uncounted: boolean;
  /** In bytes. */
  readonly bodyLimit: number;
  readonly signIn: boolean;
}

/** What the route that a macro stands in declares besides: Elysia shows it to `introspect` when the route is made. */
function declaration(bodyLimit: number) {
  let declared: Declared = {
    body: undefined,
    query: undefined,
    emptyBody: false,
    uncounted: false,
    bodyLimit,
    signIn: false,
  };
  return {
    read: ({ body, query, emptyBody, uncounted, signIn }: Introspected) => {
      declared = {
        body: TypeGuard.IsSchema(body) ? body : undefined,
        query: TypeGuard.IsObject(query) ? query : undefined,
        emptyBody: emptyBody === true,
        uncounted: uncounted === true,
        bodyLimit,
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
  readonly uncounted?: true;
  readonly signIn?: true;
}

/** The body within its limit. Whoever sends more is counted by the address, because no token was looked at yet. */
async function readRaw(bodies: UnverifiedBodies, request: Request): Promise<Uint8Array> {
  const requestState = requestStateOf(request);
  try {
    return await take(bodies, request, { from: requestState.requestContext.ip, limit: BODY_LIMIT });
  } catch (error) {
    if (error instanceof Problem)
      await requestState.meter.count({ kind: "ip", id: requestState.requestContext.ip });
    throw error;
  }
}

async function readPublic(
  bodies: UnverifiedBodies,
  request: Request,
  { declared, mayVerify }: Pick<PublicOptions, "mayVerify"> & { readonly declared: Declared },
): Promise<Uint8Array> {
  const requestState = requestStateOf(request);
  const { requestContext } = requestState;
  await countAddress(requestState, declared);
  const isDiscarded = mayVerify?.(requestContext) === false;
  return take(bodies, request, { from: requestContext.ip, limit: declared.bodyLimit, isDiscarded });
}

async function take(
  bodies: UnverifiedBodies,
  request: Request,
  options: ReadOptions,
): Promise<Uint8Array> {
  const requestState = requestStateOf(request);
  const { bytes, release } = await bodies.read(request, options);
  requestState.releaseBody = release;
  return (requestState.raw = bytes);
}

async function verifyPublic(
  { verify }: PublicOptions,
  requestState: RequestState,
  { params, declared }: Pick<CheckContext, "params"> & { readonly declared: Declared },
): Promise<void> {
  try {
    await countAddress(requestState, declared);
    await verify?.({ requestContext: requestState.requestContext, params, raw: requestState.raw });
  } finally {
    requestState.releaseBody();
  }
}

/** Reads the fields of a verified request. Where they cannot be read, its signature is judged once more before that. */
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
      raw: requestState.raw,
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

/** The viewers of a portal are counted apart from the user who made their links (contract 2.9). */
function subjectOf(principal: Principal): Subject {
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
 * Who sent the request, counted by the rate limits: for the user if the token is good, else for the address. A token is
 * known only after it was verified; until then anybody could fill the bucket of another.
 */
async function admit(
  authenticator: Authenticator,
  access: Access,
  { requestState: { requestContext, meter, releaseBody }, request, route }: Admission,
): Promise<Principal> {
  const principal = await authenticator
    .authenticate(requestContext)
    .finally(releaseBody)
    .catch(async (error: unknown) => {
      if (error instanceof Problem) await meter.count({ kind: "ip", id: requestContext.ip });
      throw error;
    });
  await meter.count(subjectOf(principal));
  const path = route.slice(BASE_PATH.length);
  authenticator.noteUse(principal, requestContext, `${request.method} ${path}`);
  const refusal = access.refuse(principal);
  if (refusal === undefined) return principal;
  await authenticator.recordAccessDenied(principal, requestContext, {
    method: request.method,
    path,
    reason: refusal,
  });
  throw new Problem(refusal);
}

/**
 * Body and query as the route's schemas ask for them, kept for `onError` too (errors.ts). The context itself is not
 * handed on: Elysia would take it that cookies and headers are wanted, and parse them for every request.
 */
function readFields(request: Request, requestState: RequestState, declared: Declared): Fields {
  requestState.schemas = declared;
  requestState.body = readJson(requestState, declared);
  requestState.query = readParameters(request, declared);
  return requestState;
}

/** The body as JSON; whether it is what the schema asks for is for the validation to say. */
function readJson(
  { requestContext, raw }: RequestState,
  { body, emptyBody, bodyLimit }: Declared,
): unknown {
  // RFC 9110, 9.3.5: what comes with a GET or a DELETE means nothing.
  if (body === undefined) return undefined;
  if (raw.byteLength === 0 && (emptyBody || isNothing(body))) return {};
  if (!isJson(requestContext.headers)) throw new Problem("unsupported_media_type");
  return parseJson(raw, bodyLimit);
}

function readParameters(request: Request, { query }: Declared): Record<string, unknown> {
  return query === undefined ? {} : readQuery(query, queryOf(request));
}

/** Whether a route takes no fields at all. */
function isNothing(body: TSchema): boolean {
  return TypeGuard.IsObject(body) && Object.keys(body.properties).length === 0;
}
