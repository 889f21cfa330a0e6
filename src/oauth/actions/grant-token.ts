import { attemptSignIn } from "../../auth/actions/attempt-sign-in.ts";
import { openClientSession } from "../../auth/actions/client-session.ts";
import { refreshSession } from "../../auth/actions/refresh-session.ts";
import type { Call } from "../../http/call.ts";
import type { Credentials } from "../credentials.ts";
import { admitsUser, decideScope } from "../decide.ts";
import type { TokenRequest } from "../grants.ts";
import type { OAuthClient, TokenAnswer } from "../model.ts";
import { OAuthError } from "../oauth-error.ts";
import { authenticateClient } from "./authenticate-client.ts";
import type { OAuthDeps } from "./deps.ts";
import { redeemCode } from "./redeem-code.ts";

interface ClientRequest<G extends TokenRequest["grant"]> {
  readonly client: OAuthClient;
  readonly request: Extract<TokenRequest, { grant: G }>;
  readonly call: Call;
}

/** `POST /oauth/token` once its grant type and parameters are read: checks the client, then the user. */
export async function grantToken(
  deps: OAuthDeps,
  request: TokenRequest,
  { credentials, call }: { credentials: Credentials; call: Call },
): Promise<TokenAnswer> {
  const client = await authenticateClient(deps, credentials, call);
  // Nobody else sees a password: for third parties, and where no secret is kept, there is the flow with a page.
  const isFit = request.grant !== "password" || (client.confidential && client.firstParty);
  if (!isFit || !client.grantTypes.includes(request.grant)) throw unauthorized();
  if (request.grant === "password") return grantByPassword(deps, { client, request, call });
  if (request.grant === "refresh_token") return grantByRefresh(deps, { client, request, call });
  const { scope, ...session } = await redeemCode(deps, { client, request, call });
  return answerOf(deps, scope, session);
}

async function grantByPassword(
  deps: OAuthDeps,
  { client, request, call }: ClientRequest<"password">,
): Promise<TokenAnswer> {
  const scope = decideScope(client, request.scopes);
  if (scope === undefined) throw tooWide();
  const { email, password } = request;
  const method = "password_grant";
  const admits = (user: { partnerId: number | null }) => admitsUser(client, user);
  const outcome = await attemptSignIn(
    deps,
    { email, password, method, call, admits },
    async (tx, user, now) => {
      const session = await openClientSession(tx, deps, { user, method, client, scope, call, now });
      if (session === undefined) throw unauthorized();
      return session;
    },
  );
  if (outcome.kind === "right") return answerOf(deps, scope, outcome.value);
  if (outcome.kind === "wrong")
    throw new OAuthError("invalid_grant", "The email or the password is wrong.");
  // See contract 4.9.
  const headers = { "Retry-After": String(outcome.retryAfterS) };
  const description = `Too many wrong passwords; try again in ${outcome.retryAfterS} s.`;
  throw new OAuthError("invalid_grant", description, { status: 429, headers });
}

async function grantByRefresh(
  deps: OAuthDeps,
  { client, request, call }: ClientRequest<"refresh_token">,
): Promise<TokenAnswer> {
  const { token, scopes } = request;
  const { clientId, scopes: ceiling } = client;
  const refresh = { token, clientId, ceiling, ...(scopes && { scopes }) };
  const outcome = await refreshSession(deps, refresh, call);
  if (outcome.kind === "too_wide") throw tooWide();
  if (outcome.kind === "refused")
    throw new OAuthError("invalid_grant", "The refresh token is invalid, expired or already used.");
  const { access, refresh: next, scope } = outcome;
  return answerOf(deps, scope, { access: access.token, refresh: next.token });
}

function answerOf(
  { config }: OAuthDeps,
  scope: string,
  { access, refresh }: { access: string; refresh: string | null },
): TokenAnswer {
  return {
    access_token: access,
    token_type: "Bearer",
    expires_in: config.accessTokenTtlS,
    ...(refresh !== null && { refresh_token: refresh }),
    scope,
  };
}

function unauthorized(): OAuthError {
  return new OAuthError("unauthorized_client", "The client may not use this grant type.");
}

function tooWide(): OAuthError {
  return new OAuthError("invalid_scope", "More is asked for than may be given.");
}
