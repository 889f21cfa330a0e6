import { createHash, createHmac, randomBytes } from "node:crypto";

import type { Config } from "../lib/config.ts";

const SECRET_BYTES = 32;
const SECRET = /^[\w-]{43}$/;
/** How long a person may take to sign in at the provider. */
export const STATE_TTL_MS = 600_000;

/** 256 random bits, 43 characters. */
export function newOneTimeSecret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}

/** RFC 7636, 4.2. */
export function s256(verifier: string): string {
  return createHash("sha256").update(verifier).digest("base64url");
}

/**
 * Derives nonce and PKCE verifier of one trip to the provider from the secret that only the browser has, so that the
 * database holds neither.
 */
export function tripSecrets(
  browser: string,
  state: string,
): { readonly nonce: string; readonly codeVerifier: string } {
  const derive = (use: string) =>
    createHmac("sha256", browser).update(`${use}:${state}`).digest("base64url");
  return { nonce: derive("nonce"), codeVerifier: derive("verifier") };
}

/**
 * Contract 4.13: the cookie that ties a state to the browser in which the sign-in began. A browser that has
 * one gets the same again, so that the sign-in of another tab stays good.
 */
export function browserCookie({ serverRoot }: Pick<Config, "serverRoot">) {
  const isSecure = serverRoot.startsWith("https:");
  const name = isSecure ? "__Host-rr_sso" : "rr_sso";
  const attributes = ["Path=/", `Max-Age=${STATE_TTL_MS / 1000}`, "HttpOnly", "SameSite=Lax"];
  if (isSecure) attributes.push("Secure");
  return {
    read(headers: Headers): string | undefined {
      const pairs = (headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
      const value = pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
      return value !== undefined && SECRET.test(value) ? value : undefined;
    },
    write: (value: string): string => [`${name}=${value}`, ...attributes].join("; "),
  };
}
