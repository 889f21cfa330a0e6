import { ApiError } from "./errors.ts";
import { Operations } from "./generated.ts";
import { Pages, type PageOf, type Request } from "./requests.ts";

export interface Settings {
  /** The URL of the server, such as `https://reviews.example`. */
  readonly server: string;
  /**
   * A bearer token, or a function that returns one, such as the result of `oauthToken`. The client calls the function
   * before each request. After a 401 it calls the function again with the token that was rejected.
   */
  readonly token?: string | ((refused?: string) => Promise<string>);
  /** Maximum number of times that a request is repeated; 3 by default. */
  readonly retries?: number;
  /** Maximum `Retry-After` in seconds for which the client waits; 60 by default. */
  readonly longestWaitS?: number;
  /** Time limit for a response in seconds; 30 by default. */
  readonly timeoutS?: number;
}

const IDEMPOTENT = new Set(["GET", "PUT", "DELETE"]);
/** Statuses of failures that may be temporary, in addition to 409 `request_unfinished`. */
const PASSING = new Set([429, 500, 502, 503, 504]);

/**
 * A client of the API with a method for each operation. It repeats a failed request if the repetition has no further
 * effect: reads, deletes, and creations, which it sends with an `Idempotency-Key`. After `outcome_unknown` it repeats
 * only creations.
 */
export class ReviewRelay extends Operations {
  readonly #settings: Settings;

  constructor(settings: Settings) {
    super();
    this.#settings = settings;
  }

  protected override pages<T>(request: Request): Pages<T> {
    return new Pages((cursor) => {
      const query = { ...request.query, ...(cursor !== undefined && { cursor }) };
      return this.send<PageOf<T>>({ ...request, query });
    });
  }

  protected override async send<T>(request: Request): Promise<T> {
    const { token, retries = 3, longestWaitS = 60 } = this.#settings;
    const { idempotencyKey, signal } = request.options;
    const key = request.isKeyed ? (idempotencyKey ?? crypto.randomUUID()) : undefined;
    const isRepeatable = (error: Error) =>
      key !== undefined || (IDEMPOTENT.has(request.method) && !isOutcomeUnknown(error));
    const ask = typeof token === "function" ? token : () => Promise.resolve(token);
    let bearer = await ask();
    let isRenewed = typeof token !== "function";
    for (let retry = 0; ;) {
      const result = await this.#attempt(request, bearer, key);
      if ("text" in result && result.status < 300)
        return JSON.parse(result.status === 204 ? "null" : result.text);
      const error = "text" in result ? errorOf(result) : result;
      if (error instanceof ApiError && error.status === 401 && !isRenewed) {
        isRenewed = true;
        bearer = await ask(bearer);
        continue;
      }
      const waitS = waitOf(result, retry);
      const isOver = retry >= retries || waitS > longestWaitS || signal?.aborted;
      if (!isRepeatable(error) || !isPassing(error) || isOver) throw error;
      retry += 1;
      // Because of the random part, clients that failed at the same time do not retry at the same time.
      await sleep(waitS * (1 + Math.random() / 4));
    }
  }

  /** Sends a request once. Returns the response, or the error if there is none. */
  async #attempt(
    { method, path, query = {}, body, options }: Request,
    bearer: string | undefined,
    key: string | undefined,
  ): Promise<Answer | Error> {
    const { server, timeoutS = 30 } = this.#settings;
    const url = new URL(server.replace(/\/$/, "") + path);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    const timeout = AbortSignal.timeout(timeoutS * 1_000);
    try {
      const response = await fetch(url, {
        method,
        redirect: "error",
        headers: {
          ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
          ...(body !== undefined && { "Content-Type": "application/json" }),
          ...(key !== undefined && { "Idempotency-Key": key }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: options.signal ? AbortSignal.any([options.signal, timeout]) : timeout,
      });
      const { status, headers } = response;
      return { status, retryAfter: headers.get("Retry-After"), text: await response.text() };
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly text: string;
}

function errorOf({ status, text }: Answer): ApiError {
  try {
    return new ApiError(status, JSON.parse(text));
  } catch {
    // The response is not JSON, for example because a proxy sent it.
    return new ApiError(status, {});
  }
}

/** Returns whether the failure may be temporary. An error without a response counts as temporary. */
function isPassing(error: Error): boolean {
  if (!(error instanceof ApiError)) return true;
  return PASSING.has(error.status) || error.code === "request_unfinished";
}

/** Returns whether the failed request may have been carried out. */
function isOutcomeUnknown(error: Error): boolean {
  return error instanceof ApiError && error.code === "outcome_unknown";
}

/** Returns the time in seconds until the next attempt: `Retry-After`, or without it 0.5, 1, 2, …. */
function waitOf(result: Answer | Error, retry: number): number {
  const given = "text" in result ? Number(result.retryAfter ?? Number.NaN) : Number.NaN;
  return Number.isFinite(given) ? given : 0.5 * 2 ** retry;
}

function sleep(seconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, seconds * 1_000);
  });
}
