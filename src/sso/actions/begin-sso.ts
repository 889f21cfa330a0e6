import { emailDomain, normalEmail, spellingOf } from "../../lib/email.ts";
import type { ValidParts } from "../../http/fields.ts";
import type { RuleErrors } from "../../http/rules.ts";
import { isUlid } from "../../http/ids.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { addMs } from "../../lib/clock.ts";
import { hashSecret } from "../../lib/secrets.ts";
import { newOneTimeSecret, s256, STATE_TTL_MS, flowSecrets } from "../browser.ts";
import type { RedirectQuery } from "../model.ts";
import { callbackUri, errorUrl, returnUrl, SsoError } from "../urls.ts";
import { findLiveConnection, type LiveConnection } from "../queries/connections.ts";
import { insertState } from "../queries/sign-ins.ts";
import { auditSsoError, type AttemptedLeg, type SsoDeps } from "./deps.ts";

/** The URL to which the browser is redirected, and the secret for the browser's cookie. */
export interface Begun {
  readonly location: string;
  /** The secret for the cookie; absent if the sign-in could not start, so that `location` is an error URL. */
  readonly browser?: string;
}

/**
 * Handles `GET /auth/sso/redirect`: redirects the browser to the identity provider, with state, nonce and PKCE
 * (contract 4.13).
 */
export async function beginSso(
  deps: SsoDeps,
  { query, known }: { query: RedirectQuery; known: string | undefined },
  requestContext: RequestContext,
): Promise<Begun> {
  const returnTo = returnUrl(deps.config, query.return_to);
  if (returnTo === undefined)
    throw new Error("return_to passed the validation but is not allowed.");
  const codeChallenge = query.code_challenge ?? null;
  const begun = await startSso(deps, { query, known, returnTo, codeChallenge }, requestContext);
  return begun ?? { location: errorUrl(deps.config) };
}

interface SsoStart {
  readonly query: Pick<RedirectQuery, "email" | "connection">;
  /** The secret in the cookie that the browser already has; undefined without a cookie. */
  readonly known: string | undefined;
  /** The URL that receives the one-time code. It must be a URL of this service or on the allow-list. */
  readonly returnTo: string;
  readonly codeChallenge: string | null;
}

/**
 * Stores a new state and returns the URL of the identity provider for the browser. If there is no usable SSO
 * connection, or the identity provider fails, the function writes an audit row and returns undefined.
 */
export async function startSso(
  deps: SsoDeps,
  { query, known, returnTo, codeChallenge }: SsoStart,
  requestContext: RequestContext,
): Promise<Required<Begun> | undefined> {
  const attempted: AttemptedLeg = { leg: "redirect", requestContext };
  return auditSsoError(deps, attempted, async () => {
    const connection = await findConnectionOf(deps, query);
    attempted.connectionId = connection.id;
    const { authorizationEndpoint } = await deps.providers.metadata(connection.issuer);
    const now = deps.clock.now();
    const browser = known ?? newOneTimeSecret();
    const state = newOneTimeSecret();
    await insertState(deps.db, {
      stateHash: hashSecret(state),
      connectionId: connection.id,
      browserHash: hashSecret(browser),
      returnTo,
      codeChallenge,
      createdAt: now,
      expiresAt: addMs(now, STATE_TTL_MS),
    });
    const flow = { endpoint: authorizationEndpoint, connection, browser, state };
    return { location: authorizationUrl(deps, flow, query.email), browser };
  });
}

/**
 * Validates the query that starts a single sign-on. The errors may be specific, because they concern only the query
 * that the caller wrote, and reveal nothing about users or SSO connections.
 */
export function redirectErrors(
  { config }: Pick<SsoDeps, "config">,
  query: ValidParts<RedirectQuery>,
): RuleErrors {
  const asksOnce = "email" in query !== "connection" in query;
  const hasChallenge = "code_challenge" in query || query.code_challenge_method === undefined;
  const isAllowed = returnUrl(config, query.return_to) !== undefined;
  return {
    connection: asksOnce ? undefined : "send either email or connection",
    code_challenge: hasChallenge ? undefined : "is required with code_challenge_method",
    return_to: isAllowed ? undefined : "is not an allowed address for the end of a sign-in",
  };
}

/**
 * Finds the SSO connection by its id or by the domain of the email. Looks up no user, so that the result reveals
 * nothing about users.
 */
async function findConnectionOf(deps: SsoDeps, query: SsoStart["query"]): Promise<LiveConnection> {
  const { email, connection: id = "" } = query;
  const by =
    email === undefined
      ? { id: isUlid(id) ? id : "" }
      : { domain: emailDomain(normalEmail(email)) };
  const connection = await findLiveConnection(deps.db, by);
  if (connection === undefined) throw new SsoError("unknown_connection");
  return connection;
}

interface SsoFlow {
  readonly endpoint: string;
  readonly connection: LiveConnection;
  readonly browser: string;
  readonly state: string;
}

/** Builds the URL of the authentication request (OpenID Connect Core 1.0, 3.1.2.1; RFC 7636, 4.3). */
function authorizationUrl(
  { config }: SsoDeps,
  { endpoint, connection, browser, state }: SsoFlow,
  email: string | undefined,
): string {
  const { nonce, codeVerifier } = flowSecrets(browser, state);
  const url = new URL(endpoint);
  const parameters = {
    response_type: "code",
    client_id: connection.clientId,
    redirect_uri: callbackUri(config, connection.id),
    // The scope `profile` gives access to the user's name, so it is requested only if the SSO connection creates new
    // users.
    scope: connection.newUserRole === null ? "openid email" : "openid email profile",
    state,
    nonce,
    code_challenge: s256(codeVerifier),
    code_challenge_method: "S256",
    ...(email !== undefined && { login_hint: spellingOf(email) }),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}
