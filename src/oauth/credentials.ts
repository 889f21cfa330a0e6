import { OAuthError } from "./oauth-error.ts";
import type { Params } from "./form.ts";

/** The credentials that an OAuth client presents (RFC 6749, 2.3.1). */
export interface Credentials {
  readonly clientId: string;
  /** The client secret; undefined for a public client, and for a confidential client that did not send its secret. */
  readonly secret: string | undefined;
  readonly isBasic: boolean;
}

/**
 * Reads a client's credentials from the body or from HTTP Basic. Throws `invalid_request` for credentials in both
 * places, and `invalid_client` for missing or malformed credentials (contract 5).
 */
export function readCredentials(headers: Headers, form: Params): Credentials {
  const authorization = headers.get("authorization");
  const clientId = form.one("client_id");
  const secret = form.one("client_secret");
  if (authorization === null) {
    if (clientId === undefined) throw invalidClient(false);
    return { clientId, secret, isBasic: false };
  }
  const basic = readBasic(authorization);
  if (secret !== undefined)
    throw new OAuthError(
      "invalid_request",
      "The request authenticates the client in two ways; use only one.",
    );
  if (clientId !== undefined && clientId !== basic.clientId)
    throw new OAuthError("invalid_request", "client_id differs from that of the Basic header.");
  return basic;
}

export function invalidClient(isBasic: boolean): OAuthError {
  const headers = isBasic ? { "WWW-Authenticate": 'Basic realm="oauth"' } : {};
  return new OAuthError("invalid_client", "The client's credentials are missing or wrong.", {
    headers,
  });
}

/**
 * Reads the client id and secret from an HTTP Basic header. Both are form-encoded before they are joined (RFC 6749,
 * 2.3.1).
 */
function readBasic(authorization: string): Credentials {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1];
  const text = Buffer.from(encoded ?? "", "base64").toString();
  const colon = text.indexOf(":");
  if (encoded === undefined || colon === -1) throw invalidClient(true);
  const clientId = formDecoded(text.slice(0, colon));
  const secret = formDecoded(text.slice(colon + 1));
  return { clientId, secret: secret === "" ? undefined : secret, isBasic: true };
}

function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw invalidClient(true);
  }
}
