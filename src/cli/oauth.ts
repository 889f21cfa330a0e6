import { EXIT, Failure } from "./context.ts";
import type { Credentials } from "./credentials.ts";
import type { Clock } from "../lib/clock.ts";

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

interface TokenAnswer {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_in: number;
  readonly error: string;
  readonly error_description: string;
}

/** Redeems an OAuth grant at `/oauth/token`; throws a failure with the server's error description. */
export async function redeem(
  clock: Clock,
  server: string,
  fields: Readonly<Record<string, string>>,
): Promise<Credentials> {
  const response = await post(server, "/oauth/token", fields);
  const answer = await objectOf<TokenAnswer>(response);
  if (!response.ok)
    throw new Failure(
      EXIT.signedOut,
      `The sign-in was rejected: ${String(answer.error_description ?? answer.error ?? response.status)}`,
    );
  return {
    accessToken: answer.access_token ?? "",
    refreshToken: answer.refresh_token ?? "",
    expiresAtMs: clock.now().getTime() + (answer.expires_in ?? 0) * 1_000,
    clientId: fields["client_id"] ?? "",
  };
}

/**
 * Revokes the refresh token at the server, which ends the whole sign-in. A token that is already revoked is not an
 * error.
 */
export async function revoke(server: string, credentials: Credentials): Promise<void> {
  const { clientId = "", refreshToken } = credentials;
  if (refreshToken !== undefined)
    await post(server, "/oauth/revoke", { token: refreshToken, client_id: clientId });
}

async function post(server: string, path: string, fields: Readonly<Record<string, string>>) {
  const body = new URLSearchParams(fields);
  try {
    return await fetch(server + path, { method: "POST", body });
  } catch (error) {
    throw unreachable(server, error);
  }
}

/**
 * Parses the JSON object in a response body. Returns an empty object if the body is not JSON, for example because a
 * proxy answered.
 */
export async function objectOf<T>(response: Response): Promise<Partial<T>> {
  try {
    const answer: Partial<T> | null = JSON.parse(await response.text());
    return answer ?? {};
  } catch {
    return {};
  }
}

export function unreachable(server: string, cause: unknown): Failure {
  return new Failure(
    EXIT.unavailable,
    `The server at ${server} cannot be reached. Check the address and your network.`,
    { cause },
  );
}
