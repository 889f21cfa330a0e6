import { createHash } from "node:crypto";
import { decodeJwt } from "jose";

import type { Tx } from "../../../db/client.ts";
import {
  type ClientSession,
  endClientSession,
  holdPersonInClient,
  openClientSession,
} from "../../auth/sign-in/client-session.ts";
import { inspectClientToken, revokeClientToken } from "../../auth/tokens/inspect-token.ts";
import { attemptSignIn } from "../../auth/sign-in/log-in.ts";
import { neededStep } from "../../auth/factors/second-step.ts";
import { refreshSession } from "../../auth/sign-in/refresh-session.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { hashSecret } from "../../lib/secrets.ts";
import { isVerifier } from "../../sso/model.ts";
import { equalInConstantTime } from "../../lib/secrets.ts";
import { type Credentials, invalidClient } from "../credentials.ts";
import { admitsUser, decideRedemption, decideScope } from "../decide.ts";
import type { TokenRequest } from "../grants.ts";
import {
  type AuthorizationCode,
  CLIENT_ID_PATTERN,
  type OAuthClient,
  type TokenAnswer,
} from "../model.ts";
import { OAuthError } from "../oauth-error.ts";
import { type ActiveClient, findActiveClient } from "../queries.ts";
import {
  findAuthorizationCode,
  holdAuthorizationCode,
  redeemAuthorizationCode,
} from "../queries.ts";
import type { OAuthDeps } from "./deps.ts";

interface ClientRequest<G extends TokenRequest["grant"]> {
  readonly client: OAuthClient;
  readonly request: Extract<TokenRequest, { grant: G }>;
  readonly requestContext: RequestContext;
}

/**
 * Handles `POST /oauth/token` after `readTokenRequest` has read the request: authenticates the client first, and then
 * the password, the refresh token or the code.
 */
export async function grantToken(
  deps: OAuthDeps,
  request: TokenRequest,
  { credentials, requestContext }: { credentials: Credentials; requestContext: RequestContext },
): Promise<TokenAnswer> {
  const client = await authenticateClient(deps, credentials, requestContext);
  // Only a confidential first-party client may use the password grant. Third parties and public clients use the code
  // flow.
  const isFit = request.grant !== "password" || (client.confidential && client.firstParty);
  if (!isFit || !client.grantTypes.includes(request.grant)) throw unauthorizedClient();
  if (request.grant === "password")
    return grantByPassword(deps, { client, request, requestContext });
  if (request.grant === "refresh_token")
    return grantByRefresh(deps, { client, request, requestContext });
  const { scope, ...session } = await redeemCode(deps, { client, request, requestContext });
  return answerOf(deps, scope, session);
}

async function grantByPassword(
  deps: OAuthDeps,
  { client, request, requestContext }: ClientRequest<"password">,
): Promise<TokenAnswer> {
  const scope = decideScope(client, request.scopes);
  if (scope === undefined) throw scopeTooWide();
  const { email, password } = request;
  const method = "password_grant";
  const admits = (user: { partnerId: number | null }) => admitsUser(client, user);
  const outcome = await attemptSignIn(
    deps,
    { email, password, method, requestContext, admits },
    async (tx, user, now) => {
      if ((await neededStep(tx, deps, user.id)).kind !== "none") return undefined;
      const session = await openClientSession(tx, deps, {
        user,
        method,
        client,
        scope,
        requestContext,
        now,
      });
      if (session === undefined) throw unauthorizedClient();
      return session;
    },
  );
  if (outcome.kind === "right") {
    if (outcome.value !== undefined) return answerOf(deps, scope, outcome.value);
    const page = `${deps.config.serverRoot}/oauth/authorize`;
    throw new OAuthError("invalid_grant", `The user needs a second factor; sign in at ${page}.`);
  }
  if (outcome.kind === "wrong")
    throw new OAuthError("invalid_grant", "The email or the password is wrong.");
  // If the sign-in is locked, the response has the status 429 (contract 4.9).
  const headers = { "Retry-After": String(outcome.retryAfterS) };
  const description = `Too many wrong passwords; try again in ${outcome.retryAfterS} s.`;
  throw new OAuthError("invalid_grant", description, { status: 429, headers });
}

async function grantByRefresh(
  deps: OAuthDeps,
  { client, request, requestContext }: ClientRequest<"refresh_token">,
): Promise<TokenAnswer> {
  const { token, scopes } = request;
  const { clientId, scopes: ceiling } = client;
  const refresh = { token, clientId, ceiling, ...(scopes && { scopes }) };
  const outcome = await refreshSession(deps, refresh, requestContext);
  if (outcome.kind === "too_wide") throw scopeTooWide();
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

function unauthorizedClient(): OAuthError {
  return new OAuthError("unauthorized_client", "The client may not use this grant type.");
}

function scopeTooWide(): OAuthError {
  return new OAuthError(
    "invalid_scope",
    "The requested scope exceeds the scope that can be granted.",
  );
}

interface Redemption {
  readonly client: OAuthClient;
  readonly request: Extract<TokenRequest, { grant: "authorization_code" }>;
  readonly requestContext: RequestContext;
}

type RedeemedSession = ClientSession & { readonly scope: string };

/**
 * Redeems an authorization code (RFC 6749, 4.1.3). An invalid code and the code of another client give the same
 * `invalid_grant`.
 */
async function redeemCode(deps: OAuthDeps, redemption: Redemption): Promise<RedeemedSession> {
  const now = deps.clock.now();
  const redeemed = await deps.db.transaction((tx) => redeem(tx, deps, redemption, now));
  if (redeemed !== undefined) return redeemed;
  throw new OAuthError(
    "invalid_grant",
    "The code is invalid, expired, already used, or belongs to another request.",
  );
}

/**
 * Redeems an authorization code. The locks are taken in the order that every transaction uses: user, client, code,
 * family. For an invalid code the function returns undefined and does not throw, because a replayed code ends its
 * sign-in, and this change must be committed.
 */
async function redeem(
  tx: Tx,
  deps: OAuthDeps,
  { client, request, requestContext }: Redemption,
  now: Date,
): Promise<RedeemedSession | undefined> {
  const secretHash = hashSecret(request.code);
  const known = await findAuthorizationCode(tx, secretHash);
  if (known === undefined || known.clientId !== client.clientId) return undefined;
  const { grant } = request;
  const user = await holdPersonInClient(tx, { ...known, grant });
  const code = await holdAuthorizationCode(tx, secretHash);
  if (user === undefined || code === undefined) return undefined;
  const { clientId } = client;
  const challenge = request.verifier === undefined ? undefined : challengeOf(request.verifier);
  const shown = { clientId, redirectUri: request.redirectUri, challenge };
  const decision = decideRedemption(code, shown, now);
  if (decision === "replayed") await endReplayedSignIn(tx, code, { user, requestContext, at: now });
  if (decision !== "redeem") return undefined;
  // Rejects a scope for which the client is not registered any more, although the user gave consent to it.
  const scope = decideScope(client, code.scope.split(" "));
  if (scope === undefined) return undefined;
  const signIn = {
    user,
    method: "authorization_code",
    client,
    scope,
    requestContext,
    now,
  } as const;
  const session = await openClientSession(tx, deps, signIn);
  if (session === undefined) return undefined;
  await redeemAuthorizationCode(tx, { secretHash, familyId: session.familyId, now });
  return { ...session, scope };
}

async function endReplayedSignIn(
  tx: Tx,
  { familyId, clientId }: AuthorizationCode,
  replay: { user: { id: number; companyId: number }; requestContext: RequestContext; at: Date },
): Promise<void> {
  if (familyId === null) return;
  const details = { client_id: clientId };
  await endClientSession(tx, familyId, { ...replay, action: "CODE_REPLAYED", details });
}

/**
 * Returns the S256 challenge of a PKCE verifier (RFC 7636, 4.2). For a malformed verifier, returns a challenge that
 * matches no stored challenge.
 */
function challengeOf(verifier: string): string {
  if (!isVerifier(verifier)) return "";
  return createHash("sha256").update(verifier).digest("base64url");
}

/** Handles `POST /oauth/revoke` (RFC 7009). A text that is not a token of this client is ignored without an error. */
export async function revokeToken(
  deps: OAuthDeps,
  token: string,
  { credentials, requestContext }: { credentials: Credentials; requestContext: RequestContext },
): Promise<void> {
  const { clientId } = await authenticateClient(deps, credentials, requestContext);
  await revokeClientToken(deps, { token, clientId }, requestContext);
}

/**
 * Handles `POST /oauth/introspect` (RFC 7662). Only clients with a secret may use it, because the id of a public client
 * does not authenticate the client (RFC 7662, 2.1).
 */
export async function introspectToken(
  deps: OAuthDeps,
  token: string,
  { credentials, requestContext }: { credentials: Credentials; requestContext: RequestContext },
): Promise<Readonly<Record<string, unknown>>> {
  const client = await authenticateClient(deps, credentials, requestContext);
  if (!client.confidential) throw invalidClient(credentials.isBasic);
  const found = await inspectClientToken(deps, token, client);
  if (found === undefined) return { active: false };
  const { serverRoot } = deps.config;
  return {
    active: true,
    ...found.claims,
    // The token is decoded without verification, because `inspectClientToken` has already verified its signature.
    iat: decodeJwt(token).iat,
    iss: serverRoot,
    aud: `${serverRoot}/api`,
    ...(found.isBearer && { token_type: "Bearer" }),
  };
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const CLIENT_ID = new RegExp(CLIENT_ID_PATTERN);

/**
 * Looks up the OAuth client with this id; the id may be any text that a caller sent. Returns undefined if no client has
 * the id, or if the tenant of the client is inactive.
 */
export async function lookUpClient(
  { db }: Pick<OAuthDeps, "db">,
  clientId: string,
): Promise<ActiveClient | undefined> {
  return CLIENT_ID.test(clientId) ? findActiveClient(db, clientId) : undefined;
}

/**
 * Authenticates a client: a confidential client must present its secret, and a public client must present none. A
 * failure is audited and throws `invalid_client`.
 */
async function authenticateClient(
  deps: Pick<OAuthDeps, "db" | "failures">,
  { clientId, secret, isBasic }: Credentials,
  requestContext: RequestContext,
): Promise<ActiveClient> {
  const client = await lookUpClient(deps, clientId);
  const isRight =
    client?.secretHash == null
      ? secret === undefined
      : equalInConstantTime(hashSecret(secret ?? ""), client.secretHash);
  if (client !== undefined && isRight) return client;
  // A text that is not a client id is left out of the audit log, because it may be a secret that was sent in the wrong
  // field.
  const isId = client !== undefined || UUID.test(clientId);
  const details = { client_id: isId ? clientId : null };
  await deps.failures.record({ action: "CLIENT_AUTH_FAILED", details }, requestContext);
  throw invalidClient(isBasic);
}
