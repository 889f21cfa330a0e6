/** An answer of the API that is no success. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  /** The code for programs; `unknown` where the answer is not one of the API's. */
  readonly code: string;
  /** Of a 422: field → what is wrong with it. */
  readonly errors: Readonly<Record<string, readonly string[]>>;
  readonly requestId: string;
  /** Seconds, of `Retry-After`; undefined where the answer has none. */
  readonly retryAfterS: number | undefined;

  constructor(response: Response, body: unknown) {
    const { message, code, request_id, errors }: Partial<Record<string, unknown>> = Object(body);
    const retryAfter = response.headers.get("Retry-After");
    super(typeof message === "string" ? message : `The API answered ${response.status}.`);
    this.status = response.status;
    this.code = typeof code === "string" ? code : "unknown";
    this.requestId = typeof request_id === "string" ? request_id : "";
    this.errors = { ...Object(errors) };
    this.retryAfterS = retryAfter === null ? undefined : Number(retryAfter);
  }
}
