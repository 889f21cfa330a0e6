import { ApiError, errorOf } from "./errors.ts";

/** The tokens of a sign-in by OAuth. */
export interface OAuthTokens {
  readonly access_token: string;
  readonly refresh_token: string;
  /** Seconds until the access token expires, counted from its issue. */
  readonly expires_in: number;
}

export interface OAuthSettings {
  /** The URL of the server, such as `https://reviews.example`. */
  readonly server: string;
  readonly clientId: string;
  /** The client secret; absent for a public client. */
  readonly clientSecret?: string;
  /** The refresh token that you have stored. */
  readonly refreshToken: string;
  /**
   * Stores the new tokens. A refresh token is valid once, so the client waits for this before it uses the access token.
   */
  readonly store: (tokens: OAuthTokens) => Promise<void>;
}

/** Maximum time in ms before its expiry at which an access token is refreshed. */
const MARGIN_MS = 60_000;
/** Time limit in ms for the response with the tokens. */
const TIMEOUT_MS = 30_000;

/**
 * Creates the `token` function of a client from a refresh token. It refreshes the access token before it expires and
 * after a 401. Concurrent requests share one refresh. Only one process may refresh at a time.
 */
export function oauthToken(settings: OAuthSettings): (refused?: string) => Promise<string> {
  let { refreshToken } = settings;
  let current: { readonly token: string; readonly until: number } | undefined;
  let running: Promise<string> | undefined;
  const refresh = async () => {
    const tokens = await redeem(settings.server, {
      grant_type: "refresh_token",
      refresh_token: refreshToken,
      client_id: settings.clientId,
      ...(settings.clientSecret !== undefined && { client_secret: settings.clientSecret }),
    });
    if (!hasRefreshToken(tokens)) throw new Error("The server returned no refresh token.");
    refreshToken = tokens.refresh_token;
    await settings.store(tokens);
    const lifetimeMs = tokens.expires_in * 1_000;
    const until = Date.now() + lifetimeMs - Math.min(MARGIN_MS, lifetimeMs / 2);
    current = { token: tokens.access_token, until };
    return current.token;
  };
  return (refused) => {
    if (current !== undefined && current.token !== refused && Date.now() < current.until)
      return Promise.resolve(current.token);
    running ??= refresh().finally(() => {
      running = undefined;
    });
    return running;
  };
}

/** The tokens of a grant. A client without the grant `refresh_token` gets no refresh token. */
type Redeemed = Omit<OAuthTokens, "refresh_token"> & Partial<OAuthTokens>;

/** Exchanges a grant for tokens. The package exports `oauthToken` instead. */
export async function redeem(
  server: string,
  grant: Readonly<Record<string, string>>,
): Promise<Redeemed> {
  const response = await fetch(`${server.replace(/\/$/, "")}/oauth/token`, {
    method: "POST",
    // The target of a redirect would get the secrets.
    redirect: "manual",
    signal: AbortSignal.timeout(TIMEOUT_MS),
    body: new URLSearchParams(grant),
  });
  if (!response.ok) throw await errorOf(response);
  const body: unknown = await response.json().catch(() => undefined);
  if (!isRedeemed(body)) throw new ApiError(response.status, body);
  return body;
}

function isRedeemed(body: unknown): body is Redeemed {
  return typeof body === "object" && body !== null && "access_token" in body;
}

const hasRefreshToken = (tokens: Redeemed): tokens is OAuthTokens =>
  tokens.refresh_token !== undefined;
