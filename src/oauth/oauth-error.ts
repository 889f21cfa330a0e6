import type { Problem } from "../lib/problem.ts";

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

/** Thrown where nobody before the endpoint can act on it; the endpoint renders it as RFC 6749 says. */
export class OAuthError extends Error {
  readonly code: OAuthErrorCode;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: OAuthErrorCode,
    description: string,
    detail: { status?: number; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(description);
    this.name = "OAuthError";
    this.code = code;
    this.status = detail.status ?? STATUSES[code];
    this.headers = detail.headers ?? {};
  }
}

/** What the edge met before or beside the endpoint, in the words of RFC 6749. */
export function oauthErrorOf({ status, message, headers }: Problem): OAuthError {
  const detail = { status, headers };
  if (status === 429 || status === 503)
    return new OAuthError("temporarily_unavailable", message, detail);
  return new OAuthError(status >= 500 ? "server_error" : "invalid_request", message, detail);
}
