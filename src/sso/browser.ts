import { createHash, createHmac, randomBytes } from "node:crypto";

import { HostCookie } from "../http/cookie.ts";
import type { Config } from "../lib/config.ts";

const SECRET_BYTES = 32;
const SECRET_PATTERN = /^[\w-]{43}$/;
/** Time in ms that a person has to sign in at the identity provider. */
export const STATE_TTL_MS = 600_000;

/** Creates a one-time secret of 256 random bits, as 43 characters of base64url. */
export function newOneTimeSecret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}

/** Returns the S256 challenge of a PKCE verifier (RFC 7636, 4.2). */
export function s256(verifier: string): string {
  return createHash("sha256").update(verifier).digest("base64url");
}

/**
 * Derives the nonce and the PKCE verifier of one single sign-on from the secret in the browser's cookie and the state,
 * so that the database contains neither.
 */
export function flowSecrets(
  browser: string,
  state: string,
): { readonly nonce: string; readonly codeVerifier: string } {
  const derive = (use: string) =>
    createHmac("sha256", browser).update(`${use}:${state}`).digest("base64url");
  return { nonce: derive("nonce"), codeVerifier: derive("verifier") };
}

/**
 * Creates the cookie that ties a state to the browser in which the sign-in began (contract 4.13). If a browser
 * already has the cookie, its value is kept, so that a sign-in in another tab stays valid.
 */
export function browserCookie(config: Pick<Config, "serverRoot">): HostCookie {
  return new HostCookie(config, {
    name: "rr_sso",
    maxAgeS: STATE_TTL_MS / 1000,
    format: SECRET_PATTERN,
  });
}
