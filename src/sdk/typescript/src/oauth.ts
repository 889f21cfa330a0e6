import { ApiError } from "./errors.ts";

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

/** Time in ms before its expiry at which an access token is refreshed. */
const MARGIN_MS = 60_000;

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
    refreshToken = tokens.refresh_token;
    await settings.store(tokens);
    current = { token: tokens.access_token, until: Date.now() + tokens.expires_in * 1_000 };
    return current.token;
  };
  return (refused) => {
    if (
      current !== undefined &&
      current.token !== refused &&
      Date.now() < current.until - MARGIN_MS
    )
      return Promise.resolve(current.token);
    running ??= refresh().finally(() => {
      running = undefined;
    });
    return running;
  };
}

/** Exchanges a grant for tokens. The package exports `oauthToken` instead. */
export async function redeem(
  server: string,
  grant: Readonly<Record<string, string>>,
): Promise<OAuthTokens> {
  const response = await fetch(`${server}/oauth/token`, {
    method: "POST",
    body: new URLSearchParams(grant),
  });
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok || !isTokens(body)) throw new ApiError(response.status, body);
  return body;
}

function isTokens(body: unknown): body is OAuthTokens {
  return (
    typeof body === "object" && body !== null && "access_token" in body && "refresh_token" in body
  );
}
