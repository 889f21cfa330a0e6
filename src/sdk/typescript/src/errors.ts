/** An error response of the API. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status. */
  readonly status: number;
  /** The error code for programs, such as `slot_occupied`; empty if the response has none. */
  readonly code: string;
  /** The id of the request; quote it in support requests. */
  readonly requestId: string;
  /** Messages by field path, in a 422. */
  readonly errors: Readonly<Record<string, readonly string[]>>;
  /** Seconds after which the server suggests another try, from `Retry-After`. */
  readonly retryAfterS: number | undefined;

  constructor(status: number, body: unknown, retryAfterS?: number) {
    const { message, code, error, error_description, request_id, errors } = isErrorBody(body)
      ? body
      : {};
    super(textOf(message) ?? textOf(error_description) ?? `The server answered ${status}.`);
    this.status = status;
    this.code = textOf(code) ?? textOf(error) ?? "";
    this.requestId = textOf(request_id) ?? "";
    this.errors = errors ?? {};
    this.retryAfterS = retryAfterS;
  }
}

/** Reads the error of a response. A redirect is one, because its target would get the token. */
export async function errorOf(response: Response): Promise<ApiError> {
  const { status, headers, url } = response;
  const text = await response.text();
  const place = headers.get("Location");
  if (place !== null && URL.canParse(place, url)) {
    const { origin } = new URL(place, url);
    return new ApiError(status, {
      message: `The server answered ${status}, a redirect to ${origin}.`,
    });
  }
  const after = headers.get("Retry-After");
  const retryAfterS = after !== null && /^\d+$/.test(after) ? Number(after) : undefined;
  try {
    return new ApiError(status, JSON.parse(text), retryAfterS);
  } catch {
    // The response is not JSON, for example because a proxy sent it.
    return new ApiError(status, {}, retryAfterS);
  }
}

/** The body of an error of the API, or of an OAuth endpoint (RFC 6749, 5.2). */
interface ErrorBody {
  readonly message?: unknown;
  readonly code?: unknown;
  readonly error?: unknown;
  readonly error_description?: unknown;
  readonly request_id?: unknown;
  readonly errors?: Readonly<Record<string, readonly string[]>> | null;
}

function isErrorBody(body: unknown): body is ErrorBody {
  return typeof body === "object" && body !== null;
}

const textOf = (value: unknown) => (typeof value === "string" ? value : undefined);
