import { BASE_PATH } from "../http/access.ts";
import type { Config } from "../lib/config.ts";
import type { SsoErrorReason } from "./model.ts";

/**
 * An error that ends a sign-in through an identity provider. The client sees the same error for every reason; the
 * audit log has the reason.
 */
export class SsoError extends Error {
  readonly reason: SsoErrorReason;
  /** Details for the audit log. They must contain neither a secret nor an email. */
  readonly details: Readonly<Record<string, unknown>>;
  constructor(reason: SsoErrorReason, details: Readonly<Record<string, unknown>> = {}) {
    super(reason);
    this.name = "SsoError";
    this.reason = reason;
    this.details = details;
  }
}

type ReturnConfig = Pick<Config, "serverRoot" | "ssoReturnTo">;

/**
 * Returns the redirect URI of an SSO connection. Each SSO connection has a separate URI, so that the response of one
 * identity provider cannot be taken for that of another (RFC 9700, 4.4.2.2).
 */
export function callbackUri(
  { serverRoot }: Pick<Config, "serverRoot">,
  connectionId: string,
): string {
  return `${serverRoot}${BASE_PATH}/auth/sso/callback/${connectionId}`;
}

function dashboardUrl({ serverRoot }: Pick<Config, "serverRoot">): string {
  return `${serverRoot}/dashboard`;
}

/**
 * Returns the URL at which a single sign-on ends: the dashboard, a URL of the allow-list, or a URL below an origin of
 * the allow-list. Returns undefined for any other URL. URLs are compared as text, and a URL that is not in its
 * normalised form is rejected.
 */
export function returnUrl(config: ReturnConfig, wanted: string | undefined): string | undefined {
  const own = dashboardUrl(config);
  if (wanted === undefined) return own;
  if ([own, ...config.ssoReturnTo].includes(wanted)) return wanted;
  return config.ssoReturnTo.some((one) => isOrigin(one) && isBelow(wanted, one))
    ? wanted
    : undefined;
}

function isOrigin(text: string): boolean {
  const url = new URL(text);
  return /^https?:$/.test(url.protocol) && url.origin === text;
}

/**
 * Returns whether a URL is below an origin. The URL is compared as text, because browsers and URL parsers interpret
 * backslashes, control characters and white space in different ways (RFC 6749, 10.15).
 */
function isBelow(text: string, origin: string): boolean {
  if (!text.startsWith(`${origin}/`) || /[\s\\#]|\p{Cc}/u.test(text)) return false;
  const url = URL.parse(text);
  return url !== null && url.origin === origin && url.href === text;
}

/** Path at which the authorization flow continues after a sign-in at the identity provider. */
export const AUTHORIZE_RETURN = "/oauth/authorize/sso";

/**
 * Builds the URL at which the code flow continues. The URL is useless in another browser, because its ticket is
 * encrypted for one browser.
 */
export function authorizeReturnUrl(
  { serverRoot }: Pick<Config, "serverRoot">,
  ticket: string,
): string {
  return `${serverRoot}${AUTHORIZE_RETURN}?${new URLSearchParams({ ticket }).toString()}`;
}

/**
 * Returns the URL at which a failed sign-in ends, for every reason: the dashboard, or the authorize page if the
 * sign-in began there. It is never a URL of the allow-list.
 */
export function errorUrl(config: Pick<Config, "serverRoot">, returnTo = ""): string {
  const isOurPage = returnTo.startsWith(`${config.serverRoot}${AUTHORIZE_RETURN}?`);
  const url = new URL(isOurPage ? returnTo : dashboardUrl(config));
  url.searchParams.set("error", "sso_failed");
  return url.href;
}

export function withCode(location: string, code: string): string {
  const url = new URL(location);
  url.searchParams.set("code", code);
  return url.href;
}
