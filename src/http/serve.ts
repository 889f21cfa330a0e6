import { Type } from "@sinclair/typebox";

import type { Principal } from "../auth/model.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { invalid, Problem } from "../lib/problem.ts";
import { BODY_LIMIT, isJson, readBody } from "./body.ts";
import { examine, examineQuery, parseJson, soundOf, type Examined } from "./check.ts";
import { faultsOf, type Told } from "./faults.ts";
import type { Observe } from "./metrics.ts";
import { Meter, type RateLimiter } from "./rate-limit.ts";
import { Answer, type Call, type Route } from "./route.ts";

/** What the edge needs from the domains. */
export interface Edge {
  readonly log: Log;
  /** Absent where nothing is limited. */
  readonly limiter?: RateLimiter | undefined;
  /** Absent where nobody counts. */
  readonly observe?: Observe | undefined;
  /** The principal of the request's bearer token; throws `unauthenticated`. */
  authenticate(call: Call): Promise<Principal>;
  /** Writes the AUTHZ_DENIED audit row. */
  recordDenial(principal: Principal, call: Call, details: Record<string, unknown>): Promise<void>;
}

interface Asked {
  readonly request: Request;
  readonly call: Call;
  readonly params: Readonly<Record<string, string>>;
}

const NO_QUERY = Type.Object({});
/** Of a route that takes none: an empty object says nothing either. */
const NO_BODY = Type.Object({}, { additionalProperties: false });

/** Runs one route: body within its limit (413), token (401), role (403), syntax (415, 400), record (404, 403), fields by schemas and rules together (422), action. */
export function serve(edge: Edge, route: Route, asked: Asked): Promise<Response> {
  const work = () => serveMetered(edge, route, asked);
  return edge.observe === undefined ? work() : edge.observe(route, work);
}

async function serveMetered(edge: Edge, route: Route, asked: Asked): Promise<Response> {
  const meter = new Meter(route.unlimited ? undefined : edge.limiter);
  const response = await respond(edge, route, { ...asked, meter });
  for (const [name, value] of Object.entries(meter.headers)) response.headers.set(name, value);
  return response;
}

interface Metered extends Asked {
  readonly meter: Meter;
}

async function respond(edge: Edge, route: Route, asked: Metered): Promise<Response> {
  try {
    return render(await run(edge, route, asked), asked.call);
  } catch (error) {
    return renderError(edge.log, error, asked.call);
  }
}

async function run(edge: Edge, route: Route, asked: Metered): Promise<unknown> {
  const { request, call, params } = asked;
  const { raw, principal } = await admit(edge, route, asked);
  await route.verify?.({ call, params, raw });
  const json = parseBody(route, call, raw);
  const found = await route.find?.({ principal, call, params });
  const known = { principal, call, params, found };
  const query = examineQuery(route.query ?? NO_QUERY, new URL(request.url).searchParams);
  const body = examine(route.body ?? NO_BODY, json);
  const faults = {
    ...faultsOf(await tell(route, known, { query, body })),
    // The schema's word on a field comes first: a rule may have taken a malformed one for a missing one.
    ...("faults" in query && query.faults),
    ...("faults" in body && body.faults),
  };
  if ("faults" in query || "faults" in body || Object.keys(faults).length > 0)
    throw invalid(faults);
  return route.handle({ ...known, query: query.value, body: body.value, raw });
}

/** What the route's own rules say; nothing where there is no body to speak of. */
async function tell(
  route: Route,
  known: Pick<Parameters<Route["handle"]>[0], "principal" | "call" | "params" | "found">,
  { query, body }: { query: Examined<unknown>; body: Examined<unknown> },
): Promise<Told> {
  if (route.rules === undefined || ("faults" in body && body.sound === undefined)) return {};
  return route.rules({ ...known, query: soundOf(query), body: soundOf(body) });
}

/**
 * The body and who sent it, counted by the rate limits: for the token if it is good, else for the address. A token is
 * known only after it was verified; until then anybody could fill the bucket of another.
 */
async function admit(edge: Edge, route: Route, { request, call, meter }: Metered) {
  const address = { kind: "ip", id: call.ip } as const;
  if (route.access.kind === "public") await meter.count(address);
  const limit = route.bodyLimit ?? BODY_LIMIT;
  try {
    const raw = route.method === "GET" ? new Uint8Array() : await readBody(request, limit);
    return { raw, principal: await authorise(edge, route, { call, meter }) };
  } catch (error) {
    if (error instanceof Problem) await meter.count(address);
    throw error;
  }
}

async function authorise(
  edge: Edge,
  route: Route,
  { call, meter }: Pick<Metered, "call" | "meter">,
): Promise<Principal | undefined> {
  if (route.access.kind === "public") return undefined;
  const principal = await edge.authenticate(call);
  await meter.count({ kind: "token", id: principal.jti });
  const refusal = route.access.refuse(principal);
  if (refusal === undefined) return principal;
  await edge.recordDenial(principal, call, {
    method: route.method,
    path: route.path,
    reason: refusal,
  });
  throw new Problem(refusal);
}

function parseBody(route: Route, call: Call, raw: Uint8Array): unknown {
  // RFC 9110, 9.3.5: what comes with a DELETE means nothing.
  if (route.method === "DELETE" && route.body === undefined) return {};
  const isOptional = route.bodyOptional === true || route.body === undefined;
  if (isOptional && raw.byteLength === 0) return {};
  if (!isJson(call.headers)) throw new Problem("unsupported_media_type");
  return parseJson(raw);
}

/** A handler's result as the response: a plain value is a 200 with that body. */
export function render(result: unknown, call: Call): Response {
  const answer = result instanceof Answer ? result : new Answer(200, result);
  const headers = { ...commonHeaders(call), ...answer.headers };
  if (answer.body === undefined || answer.body instanceof ReadableStream)
    return new Response(answer.body ?? null, { status: answer.status, headers });
  return new Response(JSON.stringify(answer.body), {
    status: answer.status,
    headers: { "Content-Type": "application/json", ...headers },
  });
}

/** Renders every error once: the same shape for all codes, and nothing of what a bug throws (decisions.md 1). */
export function renderError(log: Log, error: unknown, call: Call): Response {
  const problem = error instanceof Problem ? error : new Problem("internal_error");
  if (problem !== error)
    log.error("request.failed", { request_id: call.requestId, ...errorFields(error) });
  // RFC 9110, 15.5.2: every 401 names a way to authenticate.
  const authenticate = problem.status === 401 ? { "WWW-Authenticate": "Bearer" } : {};
  const body = {
    message: problem.message,
    code: problem.code,
    request_id: call.requestId,
    ...(problem.errors && { errors: problem.errors }),
  };
  return new Response(JSON.stringify(body), {
    status: problem.status,
    headers: {
      "Content-Type": "application/json",
      ...commonHeaders(call),
      ...authenticate,
      ...problem.headers,
    },
  });
}

/** No answer of the API may be stored: most carry a tenant's data, several a secret. */
function commonHeaders(call: Call): Record<string, string> {
  return {
    "X-Request-Id": call.requestId,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  };
}
