import { treaty } from "@elysiajs/eden/treaty2";

import type { Challenge } from "../auth/factors/model.ts";
import type { Api } from "./routes.ts";

/** An error response of the API, thrown by the typed client. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  /** The API's machine-readable error code; `unknown` if the response did not come from the API. */
  readonly code: string;
  /** Error messages by field, for a response with status 422. */
  readonly errors: Readonly<Record<string, readonly string[]>>;
  readonly requestId: string;
  /** The seconds of the `Retry-After` header; undefined if the response has no such header. */
  readonly retryAfterS: number | undefined;
  /** The second step of a sign-in, for the code `second_factor_required`. */
  readonly secondFactor: Challenge | undefined;

  constructor(response: Response, body: unknown) {
    const { message, code, request_id, errors, second_factor } = isErrorBody(body) ? body : {};
    const retryAfter = response.headers.get("Retry-After");
    super(typeof message === "string" ? message : `The API returned status ${response.status}.`);
    this.status = response.status;
    this.code = typeof code === "string" ? code : "unknown";
    this.requestId = typeof request_id === "string" ? request_id : "";
    this.errors = { ...errors };
    this.retryAfterS = retryAfter === null ? undefined : Number(retryAfter);
    this.secondFactor = second_factor;
  }
}

/** The body of an error response. A response that did not come from the API may lack all fields. */
interface ErrorBody {
  readonly message?: unknown;
  readonly code?: unknown;
  readonly request_id?: unknown;
  readonly errors?: Readonly<Record<string, readonly string[]>>;
  readonly second_factor?: Challenge;
}

function isErrorBody(body: unknown): body is ErrorBody {
  return typeof body === "object" && body !== null;
}

interface ApiClientOptions {
  /** The server's public base URL, without a trailing slash. */
  readonly serverRoot: string;
  /** Returns the current bearer token; undefined if the user has not signed in. */
  readonly token: () => string | undefined;
  /** Called for every response with status 401. */
  readonly onUnauthorized?: () => void;
  /** Sends the requests in place of the global `fetch`. */
  readonly fetcher?: (...request: Parameters<typeof fetch>) => Promise<Response>;
}

/**
 * Creates a typed client from the API's routes, used as `api.partner.webhooks({ id }).test.post()`. Path parameters
 * are inserted without encoding, so the caller must encode values that are more than an id.
 */
export function createApiClient(options: ApiClientOptions) {
  const { serverRoot, token, onUnauthorized, fetcher = fetch } = options;
  const headers = () => {
    const bearer = token();
    return bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  };
  // Nothing is returned, because the client library treaty would use a returned value as the response.
  const onResponse = ({ status }: Response) => {
    if (status === 401) onUnauthorized?.();
  };
  // `parseDate: false` keeps instants as the strings that the API sends.
  const config = { headers, onRequest, onResponse, parseDate: false };
  // The assertion is safe because treaty only calls the function.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return treaty<Api>(serverRoot, { ...config, fetcher: fetcher as typeof fetch }).api.v1;
}

/**
 * Removes the JSON content type that the client library treaty adds to a GET with a query, although a GET has no
 * body.
 */
function onRequest(_path: string, { method, headers }: RequestInit): void {
  if (method === "GET" && headers !== undefined) Reflect.deleteProperty(headers, "content-type");
}

export type ApiClient = ReturnType<typeof createApiClient>;

/** Result of a call through the client library treaty. It has no response if the server could not be reached. */
type CallResult<T> =
  | { readonly data: T; readonly error: null; readonly response: Response | undefined }
  | {
      readonly data: null;
      readonly error: { readonly value: unknown };
      readonly response: Response | undefined;
    };

/**
 * Returns the data of a successful API call. Throws an ApiError for an error response, and the error of `fetch` if
 * there was no response.
 */
export async function answerOf<T>(call: Promise<CallResult<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (error === null) return data;
  throw response === undefined ? error.value : new ApiError(response, error.value);
}
