import { errorFields } from "../lib/log.ts";
import { Problem } from "../lib/problem.ts";
import { BODY_LIMIT, readBody } from "./body.ts";
import { Meter } from "./rate-limit.ts";
import type { Call } from "./route.ts";
import type { Edge } from "./serve.ts";

export interface RootInput {
  readonly call: Call;
  readonly url: URL;
  readonly raw: Uint8Array;
}

/** A route at `{server_root}` that takes forms and answers in a way of its own: RFC 6749, or a page. */
export interface RootRoute {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly handle: (input: RootInput) => Promise<Response>;
  /** Says what went wrong; a bug arrives as `internal_error`. */
  readonly refuse: (problem: Problem, call: Call) => Response;
}

interface Asked {
  readonly request: Request;
  readonly call: Call;
}

export function serveRoot(edge: Edge, one: RootRoute, asked: Asked): Promise<Response> {
  const work = () => serveMetered(edge, one, asked);
  return edge.observe === undefined ? work() : edge.observe(one, work);
}

async function serveMetered(
  edge: Edge,
  one: RootRoute,
  { request, call }: Asked,
): Promise<Response> {
  const meter = new Meter(edge.limiter);
  const response = await respond(edge, one, { request, call, meter });
  const headers = { "X-Request-Id": call.requestId, "X-Content-Type-Options": "nosniff" };
  for (const [name, value] of Object.entries({ ...headers, ...meter.headers }))
    response.headers.set(name, value);
  return response;
}

async function respond(
  edge: Edge,
  one: RootRoute,
  { request, call, meter }: { request: Request; call: Call; meter: Meter },
): Promise<Response> {
  try {
    await meter.count({ kind: "ip", id: call.ip });
    const raw = one.method === "POST" ? await readBody(request, BODY_LIMIT) : new Uint8Array();
    return await one.handle({ call, url: new URL(request.url), raw });
  } catch (error) {
    if (error instanceof Problem) return one.refuse(error, call);
    edge.log.error("request.failed", { request_id: call.requestId, ...errorFields(error) });
    return one.refuse(new Problem("internal_error"), call);
  }
}

export function refuseUnknown(neighbour: RootRoute, call: Call): Response {
  const response = neighbour.refuse(new Problem("not_found"), call);
  response.headers.set("X-Request-Id", call.requestId);
  return response;
}

/** What a path is answered with for every other method (RFC 9110, 15.5.6). */
export function refuseMethod(routes: readonly RootRoute[], path: string, call: Call): Response {
  const own = routes.filter((one) => one.path === path);
  const known = own.flatMap(({ method }) => (method === "GET" ? [method, "HEAD"] : [method]));
  const problem = new Problem("method_not_allowed", { headers: { Allow: known.join(", ") } });
  const response = own[0]?.refuse(problem, call) ?? new Response(null, { status: problem.status });
  response.headers.set("X-Request-Id", call.requestId);
  return response;
}
