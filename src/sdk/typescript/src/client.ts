import { setTimeout as sleep } from "node:timers/promises";

import { ApiError, errorOf } from "./errors.ts";
import type {
  Answer,
  Arguments,
  JsonOperation,
  ListOperation,
  Operation,
  Options,
  RowOf,
} from "./operations.ts";
import { type PageOf, Pages } from "./pages.ts";

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
  /** Maximum time in seconds before a repetition; a longer `Retry-After` is an error. 60 by default. */
  readonly longestWaitS?: number;
  /** Time limit for a response in seconds; 30 by default. */
  readonly timeoutS?: number;
}

/** The options of any operation, as the client reads them. */
interface Given {
  readonly path?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, string | number | boolean | null | undefined>>;
  readonly body?: unknown;
  readonly idempotencyKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Time limit for a response in seconds; streams have none. */
  readonly timeoutS?: number;
}

const IDEMPOTENT = new Set(["GET", "PUT", "DELETE"]);
/** Statuses of failures that may be temporary, in addition to 409 `request_unfinished`. */
const PASSING = new Set([429, 500, 502, 503, 504]);

/**
 * A client of the API. It repeats a failed GET, PUT or DELETE, and a failed POST that has an `idempotencyKey`. After
 * `outcome_unknown` it repeats only the latter.
 */
export class ReviewRelay {
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /**
   * Sends a request and returns the body of the response. Each POST that answers 201 takes an `idempotencyKey`, which
   * makes it repeatable: for 24 hours, a request with the same key gets the first response and creates nothing.
   */
  request<O extends JsonOperation>(
    operation: O,
    ...[options]: Arguments<Options<O>>
  ): Promise<Answer<O>> {
    return this.#repeat(operation, { ...options });
  }

  /** Reads a list page by page. */
  pages<O extends ListOperation>(
    operation: O,
    ...[options]: Arguments<Options<O>>
  ): Pages<RowOf<O>> {
    const given: Given = { ...options };
    return new Pages((cursor) =>
      this.#repeat<PageOf<RowOf<O>>>(operation, {
        ...given,
        query: { ...given.query, ...(cursor !== undefined && { cursor }) },
      }),
    );
  }

  /**
   * Sends a request without a time limit and returns the response, for streams and exports. Sends it again only after a
   * 401, with a new token.
   */
  async open<O extends Operation>(
    operation: O,
    ...[options]: Arguments<Options<O> & Pick<Given, "headers">>
  ): Promise<Response> {
    const result = await this.#send(operation, { ...options }, async (response) => response);
    if (result instanceof Error) throw result;
    return result;
  }

  async #repeat<T>(operation: string, given: Given): Promise<T> {
    const { retries = 3, longestWaitS = 60, timeoutS = 30 } = this.#settings;
    const hasKey = given.idempotencyKey !== undefined;
    const isIdempotent = IDEMPOTENT.has(operation.split(" ", 1)[0] ?? "");
    for (let retry = 0; ; retry += 1) {
      const result = await this.#send(operation, { ...given, timeoutS }, (one) => one.text());
      if (typeof result === "string") return JSON.parse(result === "" ? "null" : result);
      given.signal?.throwIfAborted();
      const isRepeatable = hasKey || (isIdempotent && !isOutcomeUnknown(result));
      const waitS = retryAfterOf(result) ?? Math.min(0.5 * 2 ** retry, longestWaitS);
      const isOver = retry >= retries || waitS > longestWaitS;
      if (!isRepeatable || !isPassing(result) || isOver) throw result;
      // Because of the random part, clients that failed at the same time do not retry at the same time.
      const waitMs = waitS * 1_000 * (1 + Math.random() / 4);
      await sleep(waitMs, undefined, given.signal && { signal: given.signal }).catch(() => {});
      given.signal?.throwIfAborted();
    }
  }

  /** Sends a request, and once more with a new token after a 401. Returns the error if it fails. */
  async #send<T>(
    operation: string,
    given: Given,
    read: (response: Response) => Promise<T>,
  ): Promise<T | Error> {
    const { token } = this.#settings;
    const send = (bearer?: string) => attempt(this.#argumentsOf(operation, given, bearer), read);
    if (typeof token !== "function") return send(token);
    const bearer = await unlessAborted(token(), given.signal);
    const result = await send(bearer);
    const isRefused = result instanceof ApiError && result.status === 401;
    return isRefused ? send(await unlessAborted(token(bearer), given.signal)) : result;
  }

  #argumentsOf(
    operation: string,
    given: Given,
    bearer: string | undefined,
  ): Parameters<typeof fetch> {
    const { path = {}, query = {}, body, idempotencyKey, headers, signal, timeoutS } = given;
    const [method = "", template = ""] = operation.split(" ");
    const filled = template.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      segment(name, path[name]),
    );
    const url = new URL(`${this.#settings.server.replace(/\/$/, "")}/api/v1${filled}`);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    const timeout = timeoutS === undefined ? undefined : AbortSignal.timeout(timeoutS * 1_000);
    const signals = [signal, timeout].filter((one) => one !== undefined);
    const init = {
      method,
      // The target of a redirect would get the token.
      redirect: "manual",
      headers: new Headers({
        ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
        ...(body !== undefined && { "Content-Type": "application/json" }),
        ...(idempotencyKey !== undefined && { "Idempotency-Key": idempotencyKey }),
        ...headers,
      }),
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.any(signals),
    } as const;
    return [url, init];
  }
}

async function attempt<T>(
  request: Parameters<typeof fetch>,
  read: (response: Response) => Promise<T>,
): Promise<T | Error> {
  try {
    const response = await fetch(...request);
    return response.ok ? await read(response) : await errorOf(response);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Waits for a token. The signal ends only this wait, because other requests may wait for the same refresh. */
function unlessAborted(token: Promise<string>, signal?: AbortSignal): Promise<string> {
  if (signal === undefined) return token;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    void token.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Encodes a value as a segment of a path. An empty value or dots would name another path. */
function segment(name: string, value: string | number | undefined): string {
  const text = String(value ?? "");
  if (/^\.{0,2}$/.test(text)) throw new TypeError(`The path needs a value for ${name}.`);
  return encodeURIComponent(text);
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

function retryAfterOf(error: Error): number | undefined {
  return error instanceof ApiError ? error.retryAfterS : undefined;
}
