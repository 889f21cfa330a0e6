import type { RootInput, RootRoute } from "../../http/root-route.ts";
import type { Problem } from "../../lib/problem.ts";
import { denyConsent, grantConsent, PAGE_TTL_MS, signInAtPage } from "../actions/authorize.ts";
import {
  checkAuthorization,
  type Authorization,
  type CheckedAuthorization,
} from "../actions/check-authorization.ts";
import type { OAuthDeps } from "../actions/deps.ts";
import { readForm, type Params } from "../form.ts";
import { OAuthError } from "../oauth-error.ts";
import { consentPage } from "../pages/consent.ts";
import { failurePage } from "../pages/failure.ts";
import { inWords, signInPage } from "../pages/sign-in.ts";
import { withParams } from "../redirect-uri.ts";
import { BrowserCookie, newBrowser, openTicket, sealTicket, type Ticket } from "../ticket.ts";

interface PageDeps extends OAuthDeps {
  readonly cookie: BrowserCookie;
}

const PATH = "/oauth/authorize";

/** decisions.md 2, `/oauth/authorize`. Every step starts from the request itself: nothing of it is remembered here. */
export function authorizeRoutes(oauth: OAuthDeps): RootRoute[] {
  const deps = { ...oauth, cookie: new BrowserCookie(oauth.config.serverRoot) };
  return [
    { method: "GET", path: PATH, handle: (input) => begin(deps, input), refuse },
    { method: "POST", path: PATH, handle: (input) => shown(() => proceed(deps, input)), refuse },
  ];
}

function refuse({ status, message, headers }: Problem): Response {
  return failurePage(message, { status, headers });
}

/** What is wrong with a form is told to whoever sent it. */
async function shown(respond: () => Promise<Response>): Promise<Response> {
  try {
    return await respond();
  } catch (error) {
    if (error instanceof OAuthError) return failurePage(error.message, { status: error.status });
    throw error;
  }
}

async function begin(deps: PageDeps, { call, url }: RootInput): Promise<Response> {
  const checked = await checkAuthorization(deps, url.searchParams);
  if (checked.kind !== "good") return turnAway(deps, checked);
  const browser = deps.cookie.read(call.headers) ?? newBrowser();
  const query = url.searchParams.toString();
  const ticket = sealTicket(deps, browser, { query, signedIn: null, ttlMs: PAGE_TTL_MS });
  const headers = { "Set-Cookie": deps.cookie.write(browser) };
  return signInPage({ authorization: checked.authorization, ticket }, { status: 200, headers });
}

function turnAway(
  deps: PageDeps,
  checked: Exclude<CheckedAuthorization, { kind: "good" }>,
): Response {
  if (checked.kind === "shown") return failurePage(checked.message, { status: 400 });
  const { code, message } = checked.error;
  return sendBack(deps, checked, { error: code, error_description: message });
}

/** RFC 9207 for `iss`; 303, so that no browser sends the password on (RFC 9700, 4.12). */
function sendBack(
  { config }: PageDeps,
  { redirectUri, state }: { redirectUri: string; state: string | undefined },
  params: Readonly<Record<string, string>>,
): Response {
  const location = withParams(redirectUri, { ...params, state, iss: config.serverRoot });
  const headers = {
    Location: location,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
  };
  return new Response(null, { status: 303, headers });
}

const STALE = "This page has expired or belongs to another browser.";

interface Step {
  readonly input: RootInput;
  readonly form: Params;
  readonly browser: string;
  readonly ticket: Ticket;
  readonly authorization: Authorization;
}

async function proceed(deps: PageDeps, input: RootInput): Promise<Response> {
  const { headers } = input.call;
  if (!isOwnForm(headers, deps.config.serverRoot))
    return failurePage("This form was sent from another site.", { status: 403 });
  const form = readForm(headers, input.raw);
  form.refuseRepeated();
  const browser = deps.cookie.read(headers);
  const opened = browser && openTicket(deps, browser, form.required("ticket"));
  if (!browser || !opened) return failurePage(STALE, { status: 400 });
  const { ticket, isExpired } = opened;
  const checked = await checkAuthorization(deps, new URLSearchParams(ticket.query));
  if (checked.kind !== "good") return turnAway(deps, checked);
  const step = { input, form, browser, ticket, authorization: checked.authorization };
  const action = form.required("action");
  if (action === "deny") return deny(deps, step);
  if (isExpired) return again(deps, step, EXPIRED);
  if (action === "sign_in") return signIn(deps, step);
  if (action === "allow" && ticket.signedIn !== null) return allow(deps, step, ticket.signedIn);
  return failurePage(STALE, { status: 400 });
}

/** Old browsers, and those that keep the origin to themselves, say at least whether the site is the same. */
function isOwnForm(headers: Headers, serverRoot: string): boolean {
  const origin = headers.get("origin");
  if (origin !== null && origin !== "null") return origin === serverRoot;
  return headers.get("sec-fetch-site") === "same-origin";
}

interface Again {
  readonly status: number;
  readonly problem: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const EXPIRED: Again = { status: 400, problem: "This page has expired. Please sign in again." };

/** The sign-in form once more, with what is wrong. */
function again(deps: PageDeps, step: Step, { problem, ...head }: Again): Response {
  const { browser, ticket, authorization, form } = step;
  const ttlMs = PAGE_TTL_MS;
  const next = sealTicket(deps, browser, { query: ticket.query, signedIn: null, ttlMs });
  const email = form.one("email");
  return signInPage({ authorization, ticket: next, problem, ...(email && { email }) }, head);
}

async function signIn(deps: PageDeps, step: Step): Promise<Response> {
  const { authorization, browser, ticket, form, input } = step;
  const [email, password] = [form.one("email"), form.one("password")];
  if (email === undefined || password === undefined)
    return again(deps, step, { status: 400, problem: "Please fill in both fields." });
  const { call } = input;
  const outcome = await signInAtPage(deps, authorization, { email, password, call });
  if (outcome.kind === "wrong")
    return again(deps, step, { status: 400, problem: "The email or the password is wrong." });
  if (outcome.kind === "locked") {
    const wait = inWords(outcome.retryAfterS);
    const problem = `There were too many wrong passwords. Sign-in is locked; try again in ${wait}.`;
    const headers = { "Retry-After": String(outcome.retryAfterS) };
    return again(deps, step, { status: 429, problem, headers });
  }
  const { kind, secret } = outcome.value;
  if (kind === "code") return sendBack(deps, authorization, { code: secret });
  const signedIn = { secret, email };
  const next = sealTicket(deps, browser, { query: ticket.query, signedIn, ttlMs: PAGE_TTL_MS });
  return consentPage(authorization, { ticket: next, email });
}

async function allow(
  deps: PageDeps,
  step: Step,
  { secret }: { secret: string },
): Promise<Response> {
  const { authorization, input } = step;
  const code = await grantConsent(deps, authorization, { secret, call: input.call });
  return code === undefined ? again(deps, step, EXPIRED) : sendBack(deps, authorization, { code });
}

async function deny(deps: PageDeps, { authorization, ticket, input }: Step): Promise<Response> {
  if (ticket.signedIn !== null)
    await denyConsent(deps, { secret: ticket.signedIn.secret, call: input.call });
  const error_description = "The user said no.";
  return sendBack(deps, authorization, { error: "access_denied", error_description });
}
