import { HostCookie } from "../http/cookie.ts";
import type { Config } from "../lib/config.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import { normalEmail } from "../lib/email.ts";

export interface KnownBrowserDeps {
  readonly box: SecretBox;
  readonly config: Pick<Config, "serverRoot">;
}

const COOKIE = { name: "rr_browser", maxAgeS: 180 * 86_400, format: /^[\w.-]{1,200}$/ };
const bound = (email: string) => `known-browser:${normalEmail(email)}`;

/**
 * Returns the `Set-Cookie` header after a sign-in; undefined unless a page of this service asked. The cookie puts later
 * sign-ins with this email before those of strangers while passwords queue (contract 3.7). It grants nothing else.
 */
export function rememberBrowser(
  { box, config }: KnownBrowserDeps,
  headers: Headers,
  email: string,
): string | undefined {
  if (headers.get("sec-fetch-site") !== "same-origin") return undefined;
  return new HostCookie(config, COOKIE).write(box.seal("", bound(email)));
}

/** Returns whether the browser that sent a request signed in with this email before. */
export function isKnownBrowser(
  { box, config }: KnownBrowserDeps,
  headers: Headers,
  email: string,
): boolean {
  const sealed = new HostCookie(config, COOKIE).read(headers);
  if (sealed === undefined) return false;
  try {
    return box.open(sealed, bound(email)) === "";
  } catch {
    return false;
  }
}
