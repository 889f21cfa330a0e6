import type { HostCookie } from "../../http/cookie.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Config } from "../../lib/config.ts";
import { startSso } from "../../sso/actions/begin-sso.ts";
import type { SsoDeps } from "../../sso/actions/deps.ts";
import { browserCookie, newOneTimeSecret, s256 } from "../../sso/browser.ts";
import { authorizeReturnUrl } from "../../sso/urls.ts";
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
import { factorPage } from "../pages/sign-in.ts";
import { failurePage, html, pageResponse } from "../pages/page.ts";
import { redirectPage, signInPage, inWords } from "../pages/sign-in.ts";
import { withParams, destinationOf } from "../redirect-uri.ts";
import { openTicket, sealTicket, type WaitingUser } from "../ticket.ts";

/* Contains the responses with which a step at `/oauth/authorize` may end. */

export const STALE = "This page has expired or belongs to another browser.";

/** A validated authorization request for which a page is shown, and the browser that shows the page. */
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
  status: RedirectStatus = SEE_OTHER,
): Response {
  if (checked.kind === "shown") return failurePage(checked.message, { status: 400 });
  const { code, message } = checked.error;
  return sendBack(deps, checked, { error: code, error_description: message }, status);
}

type RedirectStatus = 302 | 303;
/**
 * HTTP status of a redirect that answers a form. It is 303, because with 307 the browser would send the form with the
 * password to the target of the redirect (RFC 9700, 4.12).
 */
const SEE_OTHER: RedirectStatus = 303;

/** Redirects the browser to the redirect URI of the client. The parameter `iss` names this service (RFC 9207). */
export function sendBack(
  { config }: OAuthDeps,
  { redirectUri, state }: { redirectUri: string; state: string | undefined },
  params: Readonly<Record<string, string>>,
  status: RedirectStatus = SEE_OTHER,
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

/** Renders the page that asks for a second factor, after a right password or after a wrong proof of a second factor. */
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
 * Single sign-on from the page at `/oauth/authorize`. After the identity provider, the browser returns to a fixed URL
 * of this service, which no caller can choose. The URL contains the ticket of the page, which can be decrypted only for
 * this browser. The one-time code of the single sign-on is valid only with the verifier in that ticket.
 */

export interface ProviderDeps extends OAuthDeps, SsoDeps {
  readonly config: OAuthDeps["config"] & SsoDeps["config"];
}

/** A browser's request for one of the pages at `/oauth/authorize`. */
export interface PageVisit {
  readonly requestContext: RequestContext;
  readonly query: string;
}

const NO_SSO = "There is no single sign-on for this address. Sign in with your password.";
const SSO_FAILED = "Single sign-on failed. Try again, or sign in with your password.";

export async function startProviderSignIn(
  deps: ProviderDeps,
  request: PageRequest,
  requestContext: RequestContext,
): Promise<Response> {
  const { browser, query, authorization, email } = request;
  if (email === undefined)
    return showSignInAgain(deps, request, { status: 400, problem: "Enter your email." });
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
  if (begun === undefined) return showSignInAgain(deps, request, { status: 400, problem: NO_SSO });
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
    return showSignInAgain(deps, request, { status: 400, problem: SSO_FAILED });
  return continueFlow(deps, request, signedIn);
}

/** Descriptions of the scopes, as the consent page shows them to the user. */
const SCOPE_TEXTS: Readonly<Record<string, string>> = {
  "*": "do everything that you can do here",
  "reviews:read": "see your reviews",
  "reviews:write": "answer, flag and assign your reviews",
  "webhooks:read": "see your webhooks and their deliveries",
  "webhooks:write": "create, change and delete your webhooks",
  "clients:write": "manage your OAuth clients",
  impersonate: "act for the owners of your accounts",
};

const DAY_S = 86_400;

interface Consent {
  readonly ticket: string;
  readonly email: string;
  readonly config: Pick<Config, "accessTokenTtlS" | "refreshTokenTtlS" | "refreshMaxDays">;
}

function consentPage(authorization: Authorization, { ticket, email, config }: Consent): Response {
  const { client, redirectUri, scope } = authorization;
  const scopes = scope.split(" ").map((one) => html`<li>${SCOPE_TEXTS[one] ?? one}</li> `);
  const body = html`<p>
      You are signed in as <strong>${email}</strong>. <strong>${client.name}</strong> asks for
      permission to:
    </p>
    <ul>
      ${scopes}
    </ul>
    <p class="soft">${lifeOf(client, config)} You can end it in the dashboard under Security.</p>
    <p class="soft">
      You then return to ${destinationOf(redirectUri)}. Continue only if you trust it.
    </p>
    <form method="post" action="/oauth/authorize">
      <input type="hidden" name="ticket" value="${ticket}" />
      <button name="action" value="allow">Allow</button>
      <button class="plain" name="action" value="deny">Deny</button>
    </form>`;
  const title = `Allow ${client.name} to act for you?`;
  return pageResponse({ branding: client.branding, title, body, redirectUri }, { status: 200 });
}

function lifeOf({ grantTypes }: Authorization["client"], config: Consent["config"]): string {
  const { accessTokenTtlS, refreshTokenTtlS, refreshMaxDays } = config;
  if (!grantTypes.includes("refresh_token"))
    return `The access ends after ${inWords(accessTokenTtlS)}.`;
  const atMost = refreshMaxDays === null ? "" : `, for ${inWords(refreshMaxDays * DAY_S)} at most`;
  return `The access lasts as long as the app renews it within ${inWords(refreshTokenTtlS)}${atMost}.`;
}
