import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { errorFields, type Log } from "../lib/log.ts";
import {
  type FieldErrors,
  invalid,
  Problem,
  type ProblemCode,
  HttpError,
  unavailable,
} from "../lib/problem.ts";
import type { RequestContext } from "./request-context.ts";
import { type RequestState, requestStateOf, runRules } from "./request-state.ts";
import { examine, examineQuery, NO_FIELDS, validPartsOf } from "./fields.ts";
import type { Answered } from "./metrics.ts";

/** How the errors below a path look; the longest path that fits decides. */
export interface ErrorLook {
  readonly path: string;
  render(refusal: HttpError): Response;
}

interface ErrorOptions {
  readonly log: Log;
  readonly looks: readonly ErrorLook[];
  readonly answered: Answered;
  /** Tells what a store that is away throws from a bug. */
  readonly isStoreFailure: (error: unknown) => boolean;
}

/**
 * Turns every error into its answer, once: a refusal as it is, the failure of a store as `unavailable`, anything else as
 * a bare `internal_error`.
 */
export function errors({ log, looks, answered, isStoreFailure }: ErrorOptions) {
  const byLength = looks.toSorted((a, b) => b.path.length - a.path.length);
  return new Elysia({ name: "errors" }).onError(
    { as: "global" },
    // Elysia reads whatever a hook names, for every request: to name the rest here would parse cookies that nobody wants.
    async ({ error, code, request, route, path, set }) => {
      const requestState = requestStateOf(request);
      // Whatever was thrown before the sender was verified: the body counts no more.
      requestState.releaseBody();
      const refusal = await refusalOf({ error, code, requestState, log, isStoreFailure });
      Object.assign(set.headers, requestState.meter.headers);
      const look = byLength.find((one) => path === one.path || path.startsWith(`${one.path}/`));
      if (look !== undefined) {
        const response = look.render(refusal);
        answered(request, route, response.status);
        return response;
      }
      const problem = refusal instanceof Problem ? refusal : bug(refusal, { requestState, log });
      answered(request, route, problem.status);
      set.status = problem.status;
      set.headers["content-type"] = "application/json";
      // RFC 9110, 15.5.2: every 401 names a way to authenticate.
      if (problem.status === 401) set.headers["www-authenticate"] = "Bearer";
      for (const [name, value] of Object.entries(problem.headers))
        set.headers[name.toLowerCase()] = value;
      return bodyOf(problem, requestState.requestContext);
    },
  );
}

/** Contract 2.5: the same shape for all codes, and nothing of what a bug throws. */
function bodyOf(problem: Problem, requestContext: RequestContext) {
  return {
    message: problem.message,
    code: problem.code,
    request_id: requestContext.requestId,
    ...(problem.errors && { errors: problem.errors }),
  };
}

interface Thrown extends Pick<ErrorOptions, "log" | "isStoreFailure"> {
  readonly error: unknown;
  readonly code: number | string;
  readonly requestState: RequestState;
}

async function refusalOf(thrown: Thrown): Promise<HttpError> {
  const { error, code, requestState } = thrown;
  // Elysia wraps what a parser throws.
  const cause = code === "PARSE" && error instanceof Error ? error.cause : error;
  if (cause instanceof HttpError) return cause;
  if (code === "NOT_FOUND") return new Problem("not_found");
  try {
    if (code === "VALIDATION" && isOfRequest(error))
      return invalid(await toFieldErrors(requestState));
  } catch (ofRules) {
    if (ofRules instanceof HttpError) return ofRules;
    return failureOf(ofRules, thrown);
  }
  return failureOf(cause, thrown);
}

function failureOf(error: unknown, thrown: Thrown): Problem {
  const { requestState, log, isStoreFailure } = thrown;
  if (!isStoreFailure(error)) return bug(error, thrown);
  const { requestId } = requestState.requestContext;
  log.warn("request.unavailable", { request_id: requestId, ...errorFields(error) });
  return unavailable();
}

function bug(error: unknown, { requestState, log }: Pick<Thrown, "requestState" | "log">): Problem {
  const { requestContext } = requestState;
  log.error("request.failed", { request_id: requestContext.requestId, ...errorFields(error) });
  return new Problem("internal_error");
}

/** An answer that does not have the shape which its route declares is a bug of ours, not a fault of the request. */
function isOfRequest(error: unknown): boolean {
  return Reflect.get(Object(error), "type") !== "response";
}

/**
 * Every bad field of body and query at once, by schemas and rules together (contract 2.5); Elysia stops at the first.
 */
async function toFieldErrors(requestState: RequestState): Promise<FieldErrors> {
  const { schemas, rules } = requestState;
  const body = examine(schemas?.body ?? NO_FIELDS, schemas?.body ? requestState.body : {});
  const query = examineQuery(
    schemas?.query ?? NO_FIELDS,
    schemas?.query ? Object(requestState.query) : {},
  );
  const sound = validPartsOf(body);
  const said =
    sound === undefined
      ? {}
      : await runRules(rules, requestState, { body: sound, query: validPartsOf(query) });
  return {
    ...said,
    // The schema's word on a field comes first: a rule may have taken a malformed one for a missing one.
    ...("fieldErrors" in query && query.fieldErrors),
    ...("fieldErrors" in body && body.fieldErrors),
  };
}

/** The body of an error that a route answers besides those of its checks, for its description and its client. */
export function errorResponse<const C extends readonly ProblemCode[]>(...codes: C) {
  return Type.Object(
    {
      message: Type.String(),
      code: Type.Unsafe<C[number]>(Type.String({ enum: codes })),
      request_id: Type.String(),
    },
    { problems: codes },
  );
}
