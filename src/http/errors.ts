import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { fieldsOf } from "../lib/fields.ts";
import { errorFields, type Log } from "../lib/log.ts";
import {
  type FieldErrors,
  invalid,
  Problem,
  type ProblemCode,
  HttpError,
  unavailable,
} from "../lib/problem.ts";
import { CREATED } from "./creation.ts";
import type { RequestContext } from "./request-context.ts";
import { declaresRequestState, type RequestState, runRules } from "./request-state.ts";
import { examine, examineQuery, NO_FIELDS, validPartsOf } from "./fields.ts";
import type { Answered } from "./metrics.ts";

/** The error format of the routes below a path. If several paths match, the longest one applies. */
export interface ErrorLook {
  readonly path: string;
  render(httpError: HttpError): Response;
}

interface ErrorOptions {
  readonly log: Log;
  readonly looks: readonly ErrorLook[];
  readonly answered: Answered;
  readonly failures: StoreFailures;
  /** Paths where a GET request changes data. */
  readonly getHasEffect: ReadonlySet<string>;
}

/** Distinguishes failures of the database from bugs. */
export interface StoreFailures {
  readonly isStoreFailure: (error: unknown) => boolean;
  /** Whether the failed request may have been committed. */
  readonly isOutcomeUnknown: (error: unknown) => boolean;
}

/**
 * Converts every error into a response: an HttpError as it is, a failure of the database as `unavailable` or
 * `outcome_unknown`, and any other error as `internal_error` without details.
 */
export function errors({ log, looks, answered, failures, getHasEffect }: ErrorOptions) {
  const byLength = looks.toSorted((a, b) => b.path.length - a.path.length);
  return new Elysia({ name: "errors" }).use(declaresRequestState()).onError(
    { as: "global" },
    // The hook's parameter names only the context fields that it needs. Elysia reads each named field for every
    // request, and without names it would also parse cookies.
    async ({ error, code, request, requestState, route, path, set }) => {
      requestState.rawBody.release();
      const isRead =
        (request.method === "GET" || request.method === "HEAD") && !getHasEffect.has(route);
      const httpError = await httpErrorOf({ error, code, isRead, requestState, log, failures });
      Object.assign(set.headers, requestState.meter.headers);
      const look = byLength.find((one) => path === one.path || path.startsWith(`${one.path}/`));
      if (look !== undefined) {
        const response = look.render(httpError);
        answered({ request, requestState, route }, response.status);
        return response;
      }
      const earlier = await requestState.requestContext.creation?.failed(httpError.status);
      if (earlier !== undefined) {
        answered({ request, requestState, route }, CREATED);
        set.status = CREATED;
        set.headers["content-type"] = "application/json";
        return earlier;
      }
      const problem =
        httpError instanceof Problem ? httpError : bug(httpError, { requestState, log });
      answered({ request, requestState, route }, problem.status);
      set.status = problem.status;
      set.headers["content-type"] = "application/json";
      // Names the way to authenticate, as a response with status 401 must (RFC 9110, 15.5.2).
      if (problem.status === 401) set.headers["www-authenticate"] = "Bearer";
      for (const [name, value] of Object.entries(problem.headers))
        set.headers[name.toLowerCase()] = value;
      return bodyOf(problem, requestState.requestContext);
    },
  );
}

/**
 * Renders the error body of contract 2.5. It has the same shape for all codes and never contains the message of an
 * unexpected error.
 */
function bodyOf(problem: Problem, requestContext: RequestContext) {
  return {
    message: problem.message,
    code: problem.code,
    request_id: requestContext.requestId,
    ...(problem.errors && { errors: problem.errors }),
    ...problem.members,
  };
}

interface ThrownError extends Pick<ErrorOptions, "log" | "failures"> {
  readonly error: unknown;
  /** Whether the request only reads, so that a client can repeat it without a risk. */
  readonly isRead: boolean;
  readonly code: number | string;
  readonly requestState: RequestState;
}

async function httpErrorOf(thrown: ThrownError): Promise<HttpError> {
  const { error, code, requestState } = thrown;
  // Elysia wraps an error that a parser throws; the original error is its `cause`.
  const cause = code === "PARSE" && error instanceof Error ? error.cause : error;
  if (cause instanceof HttpError) return cause;
  if (code === "NOT_FOUND") return new Problem("not_found");
  try {
    if (code === "VALIDATION" && isOfRequest(error))
      return invalid(await toFieldErrors(requestState));
  } catch (ruleError) {
    if (ruleError instanceof HttpError) return ruleError;
    return failureOf(ruleError, thrown);
  }
  return failureOf(cause, thrown);
}

function failureOf(error: unknown, thrown: ThrownError): Problem {
  const { isRead, requestState, log, failures } = thrown;
  if (!failures.isStoreFailure(error)) return bug(error, thrown);
  const { requestId } = requestState.requestContext;
  log.warn("request.unavailable", { request_id: requestId, ...errorFields(error) });
  const isUnknown = failures.isOutcomeUnknown(error) && !isRead;
  return isUnknown ? new Problem("outcome_unknown") : unavailable();
}

function bug(
  error: unknown,
  { requestState, log }: Pick<ThrownError, "requestState" | "log">,
): Problem {
  const { requestContext } = requestState;
  log.error("request.failed", { request_id: requestContext.requestId, ...errorFields(error) });
  return new Problem("internal_error");
}

/**
 * Returns whether a validation error is about the request. A response that does not match its schema is a bug of the
 * server.
 */
function isOfRequest(error: unknown): boolean {
  return fieldsOf(error)["type"] !== "response";
}

/**
 * Collects the errors of every invalid field of body and query, from schemas and rules together (contract 2.5).
 * Elysia's validation would stop at the first error.
 */
async function toFieldErrors(requestState: RequestState): Promise<FieldErrors> {
  const { schemas, rules } = requestState;
  const body = examine(schemas?.body ?? NO_FIELDS, schemas?.body ? requestState.body : {});
  const query = examineQuery(schemas?.query ?? NO_FIELDS, schemas?.query ? requestState.query : {});
  const validBody = validPartsOf(body);
  const ruleErrors =
    validBody === undefined
      ? {}
      : await runRules(rules, requestState, { body: validBody, query: validPartsOf(query) });
  return {
    ...ruleErrors,
    // The schema's message about a field takes precedence, because a rule may have treated a malformed field as
    // missing.
    ...("fieldErrors" in query && query.fieldErrors),
    ...("fieldErrors" in body && body.fieldErrors),
  };
}

/**
 * Returns the schema of the error body that a route declares for its own error codes, for its description and its
 * typed client.
 */
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
