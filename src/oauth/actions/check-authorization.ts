import { decideScope } from "../decide.ts";
import { Params } from "../form.ts";
import { OAuthError } from "../oauth-error.ts";
import type { ActiveClient } from "../queries/clients.ts";
import { matchesRedirect } from "../redirect-uri.ts";
import { readScopes } from "../scope.ts";
import { lookUpClient } from "./authenticate-client.ts";
import type { OAuthDeps } from "./deps.ts";

/** An authorization request without faults, which a user may be asked about (RFC 6749, 4.1.1; RFC 7636, 4.3). */
export interface Authorization {
  readonly client: ActiveClient;
  readonly redirectUri: string;
  readonly state: string | undefined;
  readonly codeChallenge: string | null;
  readonly scope: string;
}

export type CheckedAuthorization =
  | { readonly kind: "good"; readonly authorization: Authorization }
  /** The client or its redirect URI is bad: the user reads why, and is sent nowhere (RFC 6749, 4.1.2.1). */
  | { readonly kind: "shown"; readonly message: string }
  | {
      readonly kind: "returned";
      readonly redirectUri: string;
      readonly state: string | undefined;
      readonly error: OAuthError;
    };

/** Checks the client and its redirect URI first: until both are good there is no place to send an error to. */
export async function checkAuthorization(
  deps: Pick<OAuthDeps, "db">,
  query: string,
): Promise<CheckedAuthorization> {
  const params = new Params(query);
  const origin = await findOrigin(deps, params);
  if (typeof origin === "string") return { kind: "shown", message: origin };
  const { redirectUri } = origin;
  const state = params.asGiven("state");
  try {
    const authorization = { ...origin, state, ...readRequest(params, origin.client) };
    return { kind: "good", authorization };
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    return { kind: "returned", redirectUri, state, error };
  }
}

/** The client and where it wants the answer; a sentence for the user if one of them is bad. */
async function findOrigin(
  deps: Pick<OAuthDeps, "db">,
  params: Params,
): Promise<{ client: ActiveClient; redirectUri: string } | string> {
  try {
    const client = await lookUpClient(deps, params.required("client_id"));
    if (client === undefined) return "The app that sent you here is not known.";
    const redirectUri = params.required("redirect_uri");
    if (client.redirectUris.some((one) => matchesRedirect(one, redirectUri)))
      return { client, redirectUri };
    return "The app that sent you here wants you back at a place that it has not registered.";
  } catch (error) {
    if (error instanceof OAuthError) return `The app sent an incomplete request: ${error.message}`;
    throw error;
  }
}

const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

function readRequest(params: Params, client: ActiveClient) {
  params.refuseRepeated();
  const responseType = params.required("response_type");
  if (responseType !== "code")
    throw new OAuthError("unsupported_response_type", "Only the response type code is supported.");
  if (!client.grantTypes.includes("authorization_code"))
    throw new OAuthError("unauthorized_client", "The client may not use this flow.");
  if ((params.one("response_mode") ?? "query") !== "query")
    throw new OAuthError("invalid_request", "Only the response mode query is supported.");
  const scope = decideScope(client, readScopes(params.one("scope")));
  if (scope === undefined)
    throw new OAuthError("invalid_scope", "More is asked for than the client may have.");
  return { scope, codeChallenge: readChallenge(params, client) };
}

/** Contract 5.4: PKCE with S256, required of public clients; `plain` protects nothing. */
function readChallenge(params: Params, { confidential }: ActiveClient): string | null {
  const challenge = params.one("code_challenge");
  const method = params.one("code_challenge_method");
  if (challenge === undefined) {
    if (confidential && method === undefined) return null;
    throw new OAuthError("invalid_request", "code_challenge is missing.");
  }
  if (method !== "S256")
    throw new OAuthError("invalid_request", "code_challenge_method must be S256.");
  if (!CHALLENGE.test(challenge))
    throw new OAuthError("invalid_request", "code_challenge is not the S256 of a verifier.");
  return challenge;
}
