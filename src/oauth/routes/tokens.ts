import { grantToken } from "../actions/grant-token.ts";
import { introspectToken, revokeToken } from "../actions/known-tokens.ts";
import type { OAuthDeps } from "../actions/deps.ts";
import { readCredentials } from "../credentials.ts";
import { readForm } from "../form.ts";
import { readTokenRequest } from "../grants.ts";
import type { RootRoute } from "../../http/root-route.ts";
import { jsonAnswer, oauthEndpoint } from "./answers.ts";

/** interface.md 4.3; RFC 7009 and RFC 7662. */
export function tokenEndpoints(deps: OAuthDeps): RootRoute[] {
  return [
    oauthEndpoint("/oauth/token", async ({ call, raw }) => {
      const form = readForm(call.headers, raw);
      const asked = readTokenRequest(form);
      const credentials = readCredentials(call.headers, form);
      return jsonAnswer(await grantToken(deps, asked, { credentials, call }));
    }),
    oauthEndpoint("/oauth/revoke", async ({ call, raw }) => {
      const form = readForm(call.headers, raw);
      form.refuseRepeated();
      const token = form.required("token");
      await revokeToken(deps, token, { credentials: readCredentials(call.headers, form), call });
      // RFC 7009, 2.2: nobody reads the body, but some libraries take no answer that is not JSON.
      return jsonAnswer({});
    }),
    oauthEndpoint("/oauth/introspect", async ({ call, raw }) => {
      const form = readForm(call.headers, raw);
      form.refuseRepeated();
      const token = form.required("token");
      return jsonAnswer(await introspectToken(deps, token, readCredentials(call.headers, form)));
    }),
  ];
}
