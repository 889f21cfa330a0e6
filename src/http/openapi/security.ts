import { SCOPES, type Scope } from "../principal.ts";
import type { JsonObject } from "./schemas.ts";

const MEANINGS: Readonly<Record<Scope, string>> = {
  "*": "Everything that the user may do.",
  "reviews:read": "Read reviews.",
  "reviews:write": "Answer, flag, assign and note reviews.",
  "webhooks:read": "Read subscriptions and deliveries.",
  "webhooks:write": "Make, change, test and repeat them.",
  "clients:write": "Manage OAuth clients.",
  impersonate: "Act as the owner of an account.",
};

/** How a caller proves who it is, and what each scope allows. */
export function securitySchemes(serverRoot: string): JsonObject {
  const scopes = Object.fromEntries(SCOPES.map((scope) => [scope, MEANINGS[scope]]));
  const tokenUrl = `${serverRoot}/oauth/token`;
  const flow = { tokenUrl, refreshUrl: tokenUrl, scopes };
  return {
    bearer: {
      type: "http",
      scheme: "bearer",
      bearerFormat: "JWT",
      description: "A personal access token, or one from a sign-in.",
    },
    oauth: {
      type: "oauth2",
      description: "A token that a client was given. `password` is for first-party clients only.",
      flows: {
        authorizationCode: { authorizationUrl: `${serverRoot}/oauth/authorize`, ...flow },
        password: flow,
      },
    },
    client: {
      type: "http",
      scheme: "basic",
      description: "`client_id` and `client_secret` of an OAuth client; or both in the form.",
    },
    provider: {
      type: "apiKey",
      in: "header",
      name: "X-Provider-Signature",
      description:
        "`sha256=` and the hex HMAC of the exact body, with the secret of the review site.",
    },
  };
}
