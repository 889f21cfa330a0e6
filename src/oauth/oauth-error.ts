import type { ErrorLook } from "../http/errors.ts";
import { HttpError, Problem } from "../lib/problem.ts";
import { failurePage } from "./pages/page.ts";

/** OAuth error codes of RFC 6749, 5.2 and 4.1.2.1, and of RFC 9101, each with its HTTP status at the token endpoint. */
const STATUS_OF_CODE = {
  invalid_request: 400,
  invalid_client: 401,
  invalid_grant: 400,
  unauthorized_client: 400,
  unsupported_grant_type: 400,
  invalid_scope: 400,
  unsupported_response_type: 400,
  access_denied: 400,
  request_not_supported: 400,
  request_uri_not_supported: 400,
  server_error: 500,
  temporarily_unavailable: 503,
} as const;

export type OAuthErrorCode = keyof typeof STATUS_OF_CODE;

/** An error of a route below `/oauth`, with an error code of RFC 6749. */
export class OAuthError extends HttpError {
  override readonly name = "OAuthError";
  readonly code: OAuthErrorCode;

  constructor(
    code: OAuthErrorCode,
    description: string,
    {
      status = STATUS_OF_CODE[code],
      headers = {},
    }: { status?: number; headers?: OAuthError["headers"] } = {},
  ) {
    super(description, { status, headers });
    this.code = code;
  }
}

/** Translates an error of the HTTP layer, such as a body that is too large, into an error code of RFC 6749. */
function oauthErrorOf(error: HttpError): OAuthError {
  if (error instanceof OAuthError) return error;
  const { status, message, headers } = error;
  const detail = { status, headers };
  const isUnknown = error instanceof Problem && error.code === "outcome_unknown";
  // If the server does not know whether the request took effect, it must not send `temporarily_unavailable`, which
  // invites the client to repeat the request.
  if (isUnknown) return new OAuthError("server_error", message, detail);
  if (status === 429 || status === 503)
    return new OAuthError("temporarily_unavailable", message, detail);
  return new OAuthError(status >= 500 ? "server_error" : "invalid_request", message, detail);
}

/**
 * Headers of all JSON responses below `/oauth`. They forbid caching, because a response may contain a token (RFC 6749,
 * 5.1).
 */
const NO_STORE_HEADERS = { "Cache-Control": "no-store", Pragma: "no-cache" };

export function jsonAnswer(body: unknown): Response {
  return Response.json(body, { headers: NO_STORE_HEADERS });
}

/**
 * Error formats of routes below `/oauth`: the JSON of RFC 6749, 5.2, or an HTML page on routes that a browser opens.
 */
export const OAUTH_ERRORS: readonly ErrorLook[] = [
  {
    path: "/oauth",
    render(error) {
      const { code, message, status, headers } = oauthErrorOf(error);
      const body = { error: code, error_description: message };
      return Response.json(body, { status, headers: { ...NO_STORE_HEADERS, ...headers } });
    },
  },
  {
    path: "/oauth/authorize",
    render: ({ message, status, headers }) => failurePage(message, { status, headers }),
  },
];
