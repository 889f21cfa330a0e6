import type { RootRoute } from "../../http/root-route.ts";
import { OAuthError, oauthErrorOf } from "../oauth-error.ts";

/** RFC 6749, 5.1: an answer that may carry a token is stored nowhere. */
const NO_STORE = { "Cache-Control": "no-store", Pragma: "no-cache" };

export function jsonAnswer(body: unknown): Response {
  return Response.json(body, { headers: NO_STORE });
}

/** RFC 6749, 5.2. */
function errorAnswer({ code, message, status, headers }: OAuthError): Response {
  const body = { error: code, error_description: message };
  return Response.json(body, { status, headers: { ...NO_STORE, ...headers } });
}

/** A POST endpoint whose every error has the shape of RFC 6749, 5.2. */
export function oauthEndpoint(
  path: string,
  handle: (input: Parameters<RootRoute["handle"]>[0]) => Promise<Response>,
): RootRoute {
  return {
    method: "POST",
    path,
    async handle(input) {
      try {
        return await handle(input);
      } catch (error) {
        if (error instanceof OAuthError) return errorAnswer(error);
        throw error;
      }
    },
    refuse: (problem) => errorAnswer(oauthErrorOf(problem)),
  };
}
