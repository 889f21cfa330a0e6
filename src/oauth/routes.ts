import { Elysia } from "elysia";

import type { Checks } from "../http/checks.ts";
import { join } from "../http/join.ts";
import type { ClientDeps } from "./actions/clients.ts";
import type { OAuthDeps } from "./actions/deps.ts";
import { grantToken, introspectToken, revokeToken } from "./actions/tokens.ts";
import { readCredentials } from "./credentials.ts";
import { readForm } from "./form.ts";
import { readTokenRequest } from "./grants.ts";
import { jsonAnswer } from "./oauth-error.ts";
import { authorizeRoutes, type AuthorizeDeps } from "./routes/authorize.ts";
import { clientRoutes } from "./routes/clients.ts";
import { INTROSPECT_DETAIL, REVOKE_DETAIL, TOKEN_DETAIL } from "./routes/descriptions.ts";

/**
 * Defines the OAuth endpoints, which are at `{server_root}` without a version, and the routes that manage clients
 * (contract 3.3 and 5).
 */
export function oauthRoutes(deps: AuthorizeDeps & ClientDeps) {
  return join(tokenEndpoints(deps), authorizeRoutes(deps), clientRoutes(deps));
}

/**
 * Defines the token, revocation and introspection endpoints (contract 5.1 and 5.5; RFC 7009; RFC 7662). Their forms
 * are not validated by a schema, because schema validation cannot produce the error codes of RFC 6749.
 */
function tokenEndpoints(deps: OAuthDeps & { readonly checks: Checks }) {
  return new Elysia({ prefix: "/oauth", tags: ["OAuth"] })
    .use(deps.checks)
    .post(
      "/token",
      async ({ requestContext, raw }) => {
        const form = readForm(requestContext.headers, raw);
        const grant = readTokenRequest(form);
        const credentials = readCredentials(requestContext.headers, form);
        return jsonAnswer(await grantToken(deps, grant, { credentials, requestContext }));
      },
      { public: { isSignIn: true }, detail: TOKEN_DETAIL },
    )
    .post(
      "/revoke",
      async ({ requestContext, raw }) => {
        const form = readForm(requestContext.headers, raw);
        form.refuseRepeated();
        const token = form.required("token");
        const credentials = readCredentials(requestContext.headers, form);
        await revokeToken(deps, token, { credentials, requestContext });
        // The response is an empty JSON object. Clients ignore its content (RFC 7009, 2.2), but some client libraries
        // accept only JSON.
        return jsonAnswer({});
      },
      { public: true, detail: REVOKE_DETAIL },
    )
    .post(
      "/introspect",
      async ({ requestContext, raw }) => {
        const form = readForm(requestContext.headers, raw);
        form.refuseRepeated();
        const token = form.required("token");
        const credentials = readCredentials(requestContext.headers, form);
        return jsonAnswer(await introspectToken(deps, token, { credentials, requestContext }));
      },
      { public: true, detail: INTROSPECT_DETAIL },
    );
}
