import { BASE_PATH } from "../http/access.ts";
import type { Config } from "../lib/config.ts";
import type { RefusalReason } from "./model.ts";

/** Ends a sign-in through a provider. All refusals look the same from outside; the audit log has the reason. */
export class SsoError extends Error {
  readonly reason: RefusalReason;
  /** Must hold nothing that is secret, and no email. */
  readonly details: Readonly<Record<string, unknown>>;
  constructor(reason: RefusalReason, details: Readonly<Record<string, unknown>> = {}) {
    super(reason);
    this.name = "SsoRefusal";
    this.reason = reason;
    this.details = details;
  }
}

type Places = Pick<Config, "serverRoot" | "ssoReturnTo">;

/**
 * Each connection has a redirect URI of its own, so that no provider's answer counts as another's (RFC 9700, 4.4.2.2).
 */
export function callbackUri(
  { serverRoot }: Pick<Config, "serverRoot">,
  connectionId: string,
): string {
  return `${serverRoot}${BASE_PATH}/auth/sso/callback/${connectionId}`;
}

function dashboard({ serverRoot }: Pick<Config, "serverRoot">): string {
  return `${serverRoot}/dashboard`;
}

/**
 * Where a sign-in ends: our own dashboard, an address of the allow-list, or one below an origin of the allow-list;
 * undefined for anything else. Places are compared as text, and one that is not written in its plain form is none.
 */
export function returnPlace(config: Places, wanted: string | undefined): string | undefined {
  const own = dashboard(config);
  if (wanted === undefined) return own;
  if ([own, ...config.ssoReturnTo].includes(wanted)) return wanted;
  return config.ssoReturnTo.some((one) => isOrigin(one) && isBelow(wanted, one))
    ? wanted
    : undefined;
}

function isOrigin(place: string): boolean {
  const url = new URL(place);
  return /^https?:$/.test(url.protocol) && url.origin === place;
}

/** RFC 6749, 10.15: browsers and parsers disagree on backslashes, control characters and white space. */
function isBelow(place: string, origin: string): boolean {
  if (!place.startsWith(`${origin}/`) || /[\s\\#]|\p{Cc}/u.test(place)) return false;
  const url = URL.parse(place);
  return url !== null && url.origin === origin && url.href === place;
}

/** The path at which `/oauth/authorize` goes on after the provider. */
export const AUTHORIZE_RETURN = "/oauth/authorize/sso";

/** The address is of no use in another browser, because the ticket is sealed for one. */
export function authorizePlace({ serverRoot }: Pick<Config, "serverRoot">, ticket: string): string {
  return `${serverRoot}${AUTHORIZE_RETURN}?${new URLSearchParams({ ticket }).toString()}`;
}

/**
 * Where every sign-in that was refused ends, whatever the reason: at the dashboard, or at our own authorize page if it
 * began there, and never at a place of the allow-list.
 */
export function refusedPlace(config: Pick<Config, "serverRoot">, returnTo = ""): string {
  const isOurPage = returnTo.startsWith(`${config.serverRoot}${AUTHORIZE_RETURN}?`);
  const url = new URL(isOurPage ? returnTo : dashboard(config));
  url.searchParams.set("error", "sso_failed");
  return url.href;
}

export function withCode(place: string, code: string): string {
  const url = new URL(place);
  url.searchParams.set("code", code);
  return url.href;
}
