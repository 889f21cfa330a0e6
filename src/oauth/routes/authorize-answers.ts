import type { HostCookie } from "../../http/cookie.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { startSso } from "../../sso/actions/begin-sso.ts";
import type { SsoDeps } from "../../sso/actions/deps.ts";
import { browserCookie, newOneTimeSecret, s256 } from "../../sso/browser.ts";
import { authorizeReturnUrl } from "../../sso/places.ts";
import {
  type Authorization,
  checkAuthorization,
  type CheckedAuthorization,
  type FactorChoice,
  PAGE_TTL_MS,
  type SignedIn,
  signInByProvider,
} from "../actions/authorize.ts";
import type { OAuthDeps } from "../actions/deps.ts";
import { Params } from "../form.ts";
import { consentPage } from "../pages/consent.ts";
import { factorPage } from "../pages/factor.ts";
import { failurePage } from "../pages/page.ts";
import { redirectPage, signInPage } from "../pages/sign-in.ts";
import { withParams } from "../redirect-uri.ts";
import { openTicket, sealTicket, type WaitingUser } from "../ticket.ts";

/* Contains the responses with which a step at `/oauth/authorize` may end. */

export const STALE = "This page has expired or belongs to another browser.";

/** A validated authorization request that a page shows, and the browser that shows the page. */
export interface PageRequest {
  readonly browser: string;
  /** Query string of the authorization request, which the page's ticket carries. */
  readonly query: string;
  readonly authorization: Authorization;
  /** The email that the user typed into the sign-in form. */
  readonly email: string | undefined;
}

export function rejectRequest(
  deps: OAuthDeps,
  checked: Exclude<CheckedAuthorization, { kind: "good" }>,
  status: Redirect = SEE_OTHER,
): Response {
  if (checked.kind === "shown") return failurePage(checked.message, { status: 400 });
  const { code, message } = checked.error;
  return sendBack(deps, checked, { error: code, error_description: message }, status);
}

type Redirect = 302 | 303;
/**
 * HTTP status of a redirect after a form. It is 303, because a browser would send the password on with 307 (RFC 9700,
 * 4.12).
 */
const SEE_OTHER: Redirect = 303;

/** Redirects the browser back to the client, with `iss` (RFC 9207). */
export function sendBack(
  { config }: OAuthDeps,
  { redirectUri, state }: { redirectUri: string; state: string | undefined },
  params: Readonly<Record<string, string>>,
  status: Redirect = SEE_OTHER,
): Response {
  const location = withParams(redirectUri, { ...params, state, iss: config.serverRoot });
  const headers = {
    Location: location,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
  };
  return new Response(null, { status, headers });
}

export interface SignInProblem {
  readonly status: number;
  readonly problem: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const EXPIRED: SignInProblem = {
  status: 400,
  problem: "This page has expired. Please sign in again.",
};

/** Renders the sign-in form again, together with the error message. */
export function showSignInAgain(
  deps: OAuthDeps,
  { browser, query, authorization, email }: PageRequest,
  { problem, ...head }: SignInProblem,
): Response {
  const ticket = sealTicket(deps, browser, { query, signedIn: null, ttlMs: PAGE_TTL_MS });
  return signInPage({ authorization, ticket, problem, ...(email && { email }) }, head);
}

/**
 * Continues the authorization flow after a sign-in: redirects to the client with the code, or asks the user for
 * consent.
 */
export function continueFlow(
  deps: OAuthDeps,
  { browser, query, authorization }: PageRequest,
  { kind, secret, email }: SignedIn & { readonly email: string },
): Response {
  if (kind === "code") return sendBack(deps, authorization, { code: secret });
  const signedIn = { secret, email };
  const ticket = sealTicket(deps, browser, { query, signedIn, ttlMs: PAGE_TTL_MS });
  return consentPage(authorization, { ticket, email, config: deps.config });
}

/** Asks for a second factor, after a right password or a wrong proof. */
export function askForFactor(
  deps: OAuthDeps,
  { browser, query, authorization }: PageRequest,
  {
    waiting,
    options,
    problem,
  }: FactorChoice & {
    readonly waiting: WaitingUser;
    readonly problem?: SignInProblem;
  },
): Response {
  const sealed = { query, signedIn: null, waiting, ttlMs: PAGE_TTL_MS };
  const ticket = sealTicket(deps, browser, sealed);
  const { status = 200, headers = {} } = problem ?? {};
  const page = { authorization, ticket, options, problem: problem?.problem };
  return factorPage(page, { status, headers });
}

/*
 * Implements single sign-on at `/oauth/authorize`. The flow returns to a fixed address of this service, which no
 * caller can choose. The address carries the ticket of the page, which can be decrypted only for this browser, and
 * the one-time code is valid only with the verifier in that ticket.
 */

export interface ProviderDeps extends OAuthDeps, SsoDeps {
  readonly config: OAuthDeps["config"] & SsoDeps["config"];
}

/** A browser's request for one of the pages at `/oauth/authorize`. */
export interface PageVisit {
  readonly requestContext: RequestContext;
  readonly query: string;
}

const UNKNOWN = "There is no single sign-on for this address. Sign in with your password.";
const REFUSED = "Single sign-on did not let you in here. Try again, or sign in with your password.";

export async function startProviderSignIn(
  deps: ProviderDeps,
  request: PageRequest,
  requestContext: RequestContext,
): Promise<Response> {
  const { browser, query, authorization, email } = request;
  if (email === undefined)
    return showSignInAgain(deps, request, { status: 400, problem: "Please fill in your email." });
  const verifier = newOneTimeSecret();
  const flow = { query, signedIn: null, verifier, ttlMs: PAGE_TTL_MS };
  const cookie = browserCookie(deps.config);
  const begun = await startSso(
    deps,
    {
      query: { email },
      known: cookie.read(requestContext.headers),
      returnTo: authorizeReturnUrl(deps.config, sealTicket(deps, browser, flow)),
      codeChallenge: s256(verifier),
    },
    requestContext,
  );
  if (begun === undefined) return showSignInAgain(deps, request, { status: 400, problem: UNKNOWN });
  const headers = { "Set-Cookie": cookie.write(begun.browser) };
  return redirectPage(authorization, begun.location, { status: 200, headers });
}

/** Handles `GET /oauth/authorize/sso`, to which the browser returns from the identity provider. */
export async function returnFromProvider(
  deps: ProviderDeps & { readonly cookie: HostCookie },
  visit: PageVisit,
): Promise<Response> {
  const { requestContext } = visit;
  const params = new Params(visit.query);
  const browser = deps.cookie.read(requestContext.headers);
  const opened = browser && openTicket(deps, browser, params.one("ticket") ?? "");
  const verifier = opened ? opened.ticket.verifier : undefined;
  if (!browser || !opened || verifier === undefined) return failurePage(STALE, { status: 400 });
  const { query } = opened.ticket;
  const checked = await checkAuthorization(deps, query);
  if (checked.kind !== "good") return rejectRequest(deps, checked);
  const { authorization } = checked;
  const request = { browser, query, authorization, email: undefined };
  if (opened.isExpired) return showSignInAgain(deps, request, EXPIRED);
  const code = params.one("code");
  const signedIn =
    code === undefined
      ? undefined
      : await signInByProvider(deps, authorization, { code, verifier, requestContext });
  if (signedIn === undefined)
    return showSignInAgain(deps, request, { status: 400, problem: REFUSED });
  return continueFlow(deps, request, signedIn);
}
