import type { ErrorLook } from "../../http/errors.ts";
import { oauthErrorOf } from "../oauth-error.ts";
import { failurePage } from "../pages/failure.ts";

/** RFC 6749, 5.1: an answer that may carry a token is stored nowhere. */
const NO_STORE = { "Cache-Control": "no-store", Pragma: "no-cache" };

export function jsonAnswer(body: unknown): Response {
  return Response.json(body, { headers: NO_STORE });
}

/** Below `/oauth` errors have the shape of RFC 6749, 5.2; where a browser is sent they are pages. */
export const OAUTH_ERRORS: readonly ErrorLook[] = [
  {
    path: "/oauth",
    render(refusal) {
      const { code, message, status, headers } = oauthErrorOf(refusal);
      const body = { error: code, error_description: message };
      return Response.json(body, { status, headers: { ...NO_STORE, ...headers } });
    },
  },
  {
    path: "/oauth/authorize",
    render: ({ message, status, headers }) => failurePage(message, { status, headers }),
  },
];
