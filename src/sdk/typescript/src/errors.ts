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

  constructor(status: number, body: unknown) {
    const { message, code, error, error_description, request_id, errors } = Object(body);
    super(String(message ?? error_description ?? `The server answered ${status}.`));
    this.status = status;
    this.code = String(code ?? error ?? "");
    this.requestId = String(request_id ?? "");
    this.errors = errors ?? {};
  }
}
