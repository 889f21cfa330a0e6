import { Refusal } from "../lib/problem.ts";

/** RFC 6749, 5.2 and 4.1.2.1, each with the status that the token endpoint gives it. */
const STATUSES = {
  invalid_request: 400,
  invalid_client: 401,
  invalid_grant: 400,
  unauthorized_client: 400,
  unsupported_grant_type: 400,
  invalid_scope: 400,
  unsupported_response_type: 400,
  access_denied: 400,
  server_error: 500,
  temporarily_unavailable: 503,
} as const;

export type OAuthErrorCode = keyof typeof STATUSES;

/** A refusal below `/oauth`. */
export class OAuthError extends Refusal {
  override readonly name = "OAuthError";
  readonly code: OAuthErrorCode;

  constructor(
    code: OAuthErrorCode,
    description: string,
    {
      status = STATUSES[code],
      headers = {},
    }: { status?: number; headers?: OAuthError["headers"] } = {},
  ) {
    super(description, { status, headers });
    this.code = code;
  }
}

/** A refusal of the edge, such as a body that is too large, in the words of RFC 6749. */
export function oauthErrorOf(refusal: Refusal): OAuthError {
  if (refusal instanceof OAuthError) return refusal;
  const { status, message, headers } = refusal;
  const detail = { status, headers };
  if (status === 429 || status === 503)
    return new OAuthError("temporarily_unavailable", message, detail);
  return new OAuthError(status >= 500 ? "server_error" : "invalid_request", message, detail);
}
