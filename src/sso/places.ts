import { BASE_PATH } from "../http/base-path.ts";
import type { Config } from "../lib/config.ts";

type Places = Pick<Config, "serverRoot" | "ssoReturnTo">;

/** The redirect URI of one connection: one each, so that no provider's answer counts as another's (RFC 9700, 4.4.2.2). */
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
 * undefined for anything else. Compared as text: only what is written in its plain form gets as far as the parser.
 */
export function returnPlace(config: Places, asked: string | undefined): string | undefined {
  const own = dashboard(config);
  if (asked === undefined) return own;
  if ([own, ...config.ssoReturnTo].includes(asked)) return asked;
  return config.ssoReturnTo.some((one) => isOrigin(one) && isBelow(asked, one)) ? asked : undefined;
}

function isOrigin(place: string): boolean {
  const url = new URL(place);
  return /^https?:$/.test(url.protocol) && url.origin === place;
}

/** RFC 6749, 10.15: browsers and parsers disagree on backslashes, control characters and white space. */
function isBelow(asked: string, origin: string): boolean {
  if (!asked.startsWith(`${origin}/`) || /[\s\\#]|\p{Cc}/u.test(asked)) return false;
  const url = URL.parse(asked);
  return url !== null && url.origin === origin && url.href === asked;
}

/** Where the page of `/oauth/authorize` takes up again after the provider. */
export const AUTHORIZE_RETURN = "/oauth/authorize/sso";

/** The ticket is sealed for one browser, so that the address is of no use in another. */
export function authorizePlace({ serverRoot }: Pick<Config, "serverRoot">, ticket: string): string {
  return `${serverRoot}${AUTHORIZE_RETURN}?${new URLSearchParams({ ticket }).toString()}`;
}

/**
 * The one end of every sign-in that was refused, whatever the reason: the dashboard, or our own authorize page where it
 * began there. Never a place of the allow-list.
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
