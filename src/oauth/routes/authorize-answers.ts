import { PAGE_TTL_MS, type SignedIn } from "../actions/authorize.ts";
import type { Authorization, CheckedAuthorization } from "../actions/check-authorization.ts";
import type { OAuthDeps } from "../actions/deps.ts";
import { consentPage } from "../pages/consent.ts";
import { failurePage } from "../pages/failure.ts";
import { signInPage } from "../pages/sign-in.ts";
import { withParams } from "../redirect-uri.ts";
import { sealTicket } from "../ticket.ts";

/* What every step at `/oauth/authorize` may end with. */

export const STALE = "This page has expired or belongs to another browser.";

/** A request that was looked at, and the browser that shows its pages. */
export interface Asked {
  readonly browser: string;
  /** The query of the authorization request. */
  readonly query: string;
  readonly authorization: Authorization;
  /** What was typed before. */
  readonly email: string | undefined;
}

export function turnAway(
  deps: OAuthDeps,
  checked: Exclude<CheckedAuthorization, { kind: "good" }>,
  status: Redirect = SEE_OTHER,
): Response {
  if (checked.kind === "shown") return failurePage(checked.message, { status: 400 });
  const { code, message } = checked.error;
  return sendBack(deps, checked, { error: code, error_description: message }, status);
}

type Redirect = 302 | 303;
/** After a form: no browser sends the password on (RFC 9700, 4.12). */
const SEE_OTHER: Redirect = 303;

/** Back to the client, with `iss` (RFC 9207). */
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

interface Again {
  readonly status: number;
  readonly problem: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const EXPIRED: Again = {
  status: 400,
  problem: "This page has expired. Please sign in again.",
};

/** The sign-in form once more, with what is wrong. */
export function again(
  deps: OAuthDeps,
  { browser, query, authorization, email }: Asked,
  { problem, ...head }: Again,
): Response {
  const ticket = sealTicket(deps, browser, { query, signedIn: null, ttlMs: PAGE_TTL_MS });
  return signInPage({ authorization, ticket, problem, ...(email && { email }) }, head);
}

/** Back with the code, or the question whether the client may. */
export function goOn(
  deps: OAuthDeps,
  { browser, query, authorization }: Asked,
  { kind, secret, email }: SignedIn & { readonly email: string },
): Response {
  if (kind === "code") return sendBack(deps, authorization, { code: secret });
  const signedIn = { secret, email };
  const ticket = sealTicket(deps, browser, { query, signedIn, ttlMs: PAGE_TTL_MS });
  return consentPage(authorization, { ticket, email });
}
