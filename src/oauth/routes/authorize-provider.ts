import type { Call } from "../../http/call.ts";
import { departSso } from "../../sso/actions/begin-sso.ts";
import type { SsoDeps } from "../../sso/actions/deps.ts";
import { browserCookie, newOneTimeSecret, s256 } from "../../sso/browser.ts";
import { authorizePlace } from "../../sso/places.ts";
import { PAGE_TTL_MS, signInByProvider } from "../actions/authorize.ts";
import { checkAuthorization } from "../actions/check-authorization.ts";
import type { OAuthDeps } from "../actions/deps.ts";
import { Params } from "../form.ts";
import { failurePage } from "../pages/failure.ts";
import { departurePage } from "../pages/sign-in.ts";
import { openTicket, sealTicket, type BrowserCookie } from "../ticket.ts";
import { again, EXPIRED, goOn, STALE, turnAway, type Asked } from "./authorize-answers.ts";

/*
 * Single sign-on at `/oauth/authorize`. The trip ends at an address of our own that no caller can name: it carries the
 * ticket of the page, which opens in this browser alone, and the one-time code counts only with the verifier within.
 */

export interface ProviderDeps extends OAuthDeps, SsoDeps {
  readonly config: OAuthDeps["config"] & SsoDeps["config"];
}

/** A browser at one of our pages. */
export interface PageVisit {
  readonly call: Call;
  readonly query: string;
}

const UNKNOWN = "There is no single sign-on for this address. Sign in with your password.";
const REFUSED = "Single sign-on did not let you in here. Try again, or sign in with your password.";

export async function leaveForProvider(
  deps: ProviderDeps,
  asked: Asked,
  call: Call,
): Promise<Response> {
  const { browser, query, authorization, email } = asked;
  if (email === undefined)
    return again(deps, asked, { status: 400, problem: "Please fill in your email." });
  const verifier = newOneTimeSecret();
  const trip = { query, signedIn: null, verifier, ttlMs: PAGE_TTL_MS };
  const cookie = browserCookie(deps.config);
  const begun = await departSso(
    deps,
    {
      query: { email },
      known: cookie.read(call.headers),
      returnTo: authorizePlace(deps.config, sealTicket(deps, browser, trip)),
      codeChallenge: s256(verifier),
    },
    call,
  );
  if (begun === undefined) return again(deps, asked, { status: 400, problem: UNKNOWN });
  const headers = { "Set-Cookie": cookie.write(begun.browser) };
  return departurePage(authorization, begun.location, { status: 200, headers });
}

/** `GET /oauth/authorize/sso`. */
export async function returnFromProvider(
  deps: ProviderDeps & { readonly cookie: BrowserCookie },
  visit: PageVisit,
): Promise<Response> {
  const { call } = visit;
  const params = new Params(visit.query);
  const browser = deps.cookie.read(call.headers);
  const opened = browser && openTicket(deps, browser, params.one("ticket") ?? "");
  const verifier = opened ? opened.ticket.verifier : undefined;
  if (!browser || !opened || verifier === undefined) return failurePage(STALE, { status: 400 });
  const { query } = opened.ticket;
  const checked = await checkAuthorization(deps, query);
  if (checked.kind !== "good") return turnAway(deps, checked);
  const { authorization } = checked;
  const asked = { browser, query, authorization, email: undefined };
  if (opened.isExpired) return again(deps, asked, EXPIRED);
  const code = params.one("code");
  const signedIn =
    code === undefined
      ? undefined
      : await signInByProvider(deps, authorization, { code, verifier, call });
  if (signedIn === undefined) return again(deps, asked, { status: 400, problem: REFUSED });
  return goOn(deps, asked, signedIn);
}
