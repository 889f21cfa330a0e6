import { Elysia } from "elysia";

import type { Checks } from "../../http/checks.ts";
import type { OAuthDeps } from "../actions/deps.ts";
import { grantToken, introspectToken, revokeToken } from "../actions/tokens.ts";
import { readCredentials } from "../credentials.ts";
import { readForm } from "../form.ts";
import { readTokenRequest } from "../grants.ts";
import { INTROSPECT_DETAIL, REVOKE_DETAIL, TOKEN_DETAIL } from "./descriptions.ts";
import { jsonAnswer } from "../oauth-error.ts";

/**
 * Defines the token, revocation and introspection endpoints (contract 5.1 and 5.5; RFC 7009; RFC 7662). Their forms
 * are not validated by a schema, because schema validation cannot produce the error codes of RFC 6749.
 */
export function tokenEndpoints(deps: OAuthDeps & { readonly checks: Checks }) {
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
      { public: true, signIn: true, detail: TOKEN_DETAIL },
    )
    .post(
      "/revoke",
      async ({ requestContext, raw }) => {
        const form = readForm(requestContext.headers, raw);
        form.refuseRepeated();
        const token = form.required("token");
        const credentials = readCredentials(requestContext.headers, form);
        await revokeToken(deps, token, { credentials, requestContext });
        // Clients ignore the body of a revocation response (RFC 7009, 2.2), but some libraries accept only a response
        // that is JSON.
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
