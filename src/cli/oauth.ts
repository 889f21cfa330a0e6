import type { Clock } from "../lib/clock.ts";
import { ApiError } from "../sdk/typescript/src/index.ts";
import { redeem as redeemGrant } from "../sdk/typescript/src/oauth.ts";
import { EXIT, Failure } from "./context.ts";
import type { Credentials } from "./credentials.ts";

/**
 * The public OAuth client of this program. The setup of every server registers it
 * (src/operate/setup/apply.ts). It must ask users for their consent.
 */
export const COMMAND_CLIENT = {
  clientId: "6c1f3c52-7d0e-4a53-9d0b-52e1a7c0de01",
  name: "ReviewRelay command",
  redirectUris: ["http://127.0.0.1/callback"],
  scopes: ["webhooks:read", "webhooks:write"],
  grantTypes: ["authorization_code", "refresh_token"],
} as const;

/** Redeems an OAuth grant at `/oauth/token`; throws a failure with the server's error description. */
export async function redeem(
  clock: Clock,
  server: string,
  grant: Readonly<Record<string, string>>,
): Promise<Credentials> {
  const tokens = await redeemGrant(server, grant).catch((error: unknown) => {
    if (!(error instanceof ApiError)) throw unreachable(server, error);
    throw new Failure(EXIT.signedOut, `The sign-in was rejected: ${error.message}`);
  });
  return {
    accessToken: tokens.access_token,
    ...(tokens.refresh_token !== undefined && { refreshToken: tokens.refresh_token }),
    expiresAtMs: clock.now().getTime() + tokens.expires_in * 1_000,
    clientId: grant["client_id"] ?? "",
  };
}

/**
 * Revokes the refresh token at the server, which ends the whole sign-in. A token that is already revoked is not an
 * error.
 */
export async function revoke(server: string, credentials: Credentials): Promise<void> {
  const { clientId = "", refreshToken } = credentials;
  if (refreshToken === undefined) return;
  const body = new URLSearchParams({ token: refreshToken, client_id: clientId });
  const sent = fetch(`${server}/oauth/revoke`, { method: "POST", redirect: "manual", body });
  await sent.catch((error: unknown) => {
    throw unreachable(server, error);
  });
}

export function unreachable(server: string, cause: unknown): Failure {
  return new Failure(
    EXIT.unavailable,
    `The server at ${server} cannot be reached. Check the address and your network.`,
    { cause },
  );
}
