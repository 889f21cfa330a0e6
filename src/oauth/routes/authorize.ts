import type { RootInput, RootRoute } from "../../http/root-route.ts";
import type { Problem } from "../../lib/problem.ts";
import { AUTHORIZE_RETURN } from "../../sso/places.ts";
import { denyConsent, grantConsent, PAGE_TTL_MS, signInAtPage } from "../actions/authorize.ts";
import { checkAuthorization, type Authorization } from "../actions/check-authorization.ts";
import { readForm, type Params } from "../form.ts";
import { OAuthError } from "../oauth-error.ts";
import { failurePage } from "../pages/failure.ts";
import { inWords, signInPage } from "../pages/sign-in.ts";
import { BrowserCookie, newBrowser, openTicket, sealTicket, type Ticket } from "../ticket.ts";
import {
  again,
  EXPIRED,
  goOn,
  sendBack,
  STALE,
  turnAway,
  type Asked,
} from "./authorize-answers.ts";
import { leaveForProvider, returnFromProvider, type ProviderDeps } from "./authorize-provider.ts";

export type AuthorizeDeps = ProviderDeps;

interface PageDeps extends AuthorizeDeps {
  readonly cookie: BrowserCookie;
}

const PATH = "/oauth/authorize";

/** decisions.md 2, `/oauth/authorize`. Every step starts from the request itself: nothing of it is remembered here. */
export function authorizeRoutes(oauth: AuthorizeDeps): RootRoute[] {
  const deps = { ...oauth, cookie: new BrowserCookie(oauth.config.serverRoot) };
  return [
    { method: "GET", path: PATH, handle: (input) => begin(deps, input), refuse },
    { method: "POST", path: PATH, handle: (input) => shown(() => proceed(deps, input)), refuse },
    {
      method: "GET",
      path: AUTHORIZE_RETURN,
      handle: (input) => shown(() => returnFromProvider(deps, input)),
      refuse,
    },
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
  if (checked.kind !== "good") return turnAway(deps, checked, 302);
  const browser = deps.cookie.read(call.headers) ?? newBrowser();
  const query = url.searchParams.toString();
  const ticket = sealTicket(deps, browser, { query, signedIn: null, ttlMs: PAGE_TTL_MS });
  const headers = { "Set-Cookie": deps.cookie.write(browser) };
  return signInPage({ authorization: checked.authorization, ticket }, { status: 200, headers });
}

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
  // Whoever fills the form in without its buttons has one thing to do there before anything is signed in.
  const action = form.one("action") ?? (ticket.signedIn === null ? "sign_in" : undefined);
  if (action === "deny") return deny(deps, step);
  if (isExpired) return again(deps, askedOf(step), EXPIRED);
  if (action === "sign_in") return signIn(deps, step);
  if (action === "sso") return leaveForProvider(deps, askedOf(step), input);
  if (action === "allow" && ticket.signedIn !== null) return allow(deps, step, ticket.signedIn);
  return failurePage(STALE, { status: 400 });
}

/**
 * Browsers name the origin of a form, or keep it to themselves and say whether the site is the same. What names neither
 * is no browser that another site could use; the cookie and the ticket sealed for it hold it back as well.
 */
function isOwnForm(headers: Headers, serverRoot: string): boolean {
  const [origin, site] = [headers.get("origin"), headers.get("sec-fetch-site")];
  if (origin !== null && origin !== "null") return origin === serverRoot;
  return site === null ? origin === null : site === "same-origin";
}

const askedOf = ({ browser, ticket, authorization, form }: Step): Asked => ({
  browser,
  query: ticket.query,
  authorization,
  email: form.one("email"),
});

async function signIn(deps: PageDeps, step: Step): Promise<Response> {
  const { authorization, form, input } = step;
  const asked = askedOf(step);
  const [email, password] = [form.one("email"), form.one("password")];
  if (email === undefined || password === undefined)
    return again(deps, asked, { status: 400, problem: "Please fill in both fields." });
  const { call } = input;
  const outcome = await signInAtPage(deps, authorization, { email, password, call });
  if (outcome.kind === "wrong")
    return again(deps, asked, { status: 400, problem: "The email or the password is wrong." });
  if (outcome.kind === "locked") {
    const wait = inWords(outcome.retryAfterS);
    const problem = `There were too many wrong passwords. Sign-in is locked; try again in ${wait}.`;
    const headers = { "Retry-After": String(outcome.retryAfterS) };
    return again(deps, asked, { status: 429, problem, headers });
  }
  return goOn(deps, asked, { ...outcome.value, email });
}

async function allow(
  deps: PageDeps,
  step: Step,
  { secret }: { secret: string },
): Promise<Response> {
  const { authorization, input } = step;
  const code = await grantConsent(deps, authorization, { secret, call: input.call });
  return code === undefined
    ? again(deps, askedOf(step), EXPIRED)
    : sendBack(deps, authorization, { code });
}

async function deny(deps: PageDeps, { authorization, ticket, input }: Step): Promise<Response> {
  if (ticket.signedIn !== null)
    await denyConsent(deps, { secret: ticket.signedIn.secret, call: input.call });
  const error_description = "The user said no.";
  return sendBack(deps, authorization, { error: "access_denied", error_description });
}
