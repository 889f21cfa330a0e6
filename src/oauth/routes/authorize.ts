import { Elysia } from "elysia";

import { type ProofBody, proofBody } from "../../auth/factors/model.ts";
import type { Checks } from "../../http/checks.ts";
import type { HostCookie } from "../../http/cookie.ts";
import { examine } from "../../http/fields.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { queryOf } from "../../http/text.ts";
import { AUTHORIZE_RETURN } from "../../sso/urls.ts";
import {
  type Authorization,
  checkAuthorization,
  denyConsent,
  grantConsent,
  offerFactors,
  PAGE_TTL_MS,
  proveAtPage,
  signInAtPage,
} from "../actions/authorize.ts";
import { readForm, type Params } from "../form.ts";
import { failurePage } from "../pages/page.ts";
import { inWords, signInPage } from "../pages/sign-in.ts";
import {
  authorizeCookie,
  newBrowser,
  openTicket,
  sealTicket,
  type Ticket,
  type WaitingUser,
} from "../ticket.ts";
import {
  askForFactor,
  showSignInAgain,
  type SignInProblem,
  type PageRequest,
  EXPIRED,
  continueFlow,
  startProviderSignIn,
  type PageVisit,
  type ProviderDeps,
  returnFromProvider,
  sendBack,
  STALE,
  rejectRequest,
} from "./authorize-answers.ts";
import {
  ANSWER_AUTHORIZE_DETAIL,
  AUTHORIZE_DETAIL,
  AUTHORIZE_RETURN_DETAIL,
} from "./descriptions.ts";

export interface AuthorizeDeps extends ProviderDeps {
  readonly checks: Checks;
}

interface PageDeps extends ProviderDeps {
  readonly cookie: HostCookie;
}

/**
 * Defines the pages of the code flow (contract 5.4). The server keeps no state between the steps: each step validates
 * the authorization request again.
 */
export function authorizeRoutes(oauth: AuthorizeDeps) {
  const deps = { ...oauth, cookie: authorizeCookie(oauth.config) };
  return new Elysia({ tags: ["OAuth"] })
    .use(oauth.checks)
    .get(
      "/oauth/authorize",
      ({ requestContext, request }) => begin(deps, { requestContext, query: queryOf(request) }),
      {
        public: true,
        detail: { ...AUTHORIZE_DETAIL },
      },
    )
    .post("/oauth/authorize", ({ requestContext, raw }) => proceed(deps, { requestContext, raw }), {
      public: { isSignIn: true },
      detail: { ...ANSWER_AUTHORIZE_DETAIL },
    })
    .get(
      AUTHORIZE_RETURN,
      ({ requestContext, request }) =>
        returnFromProvider(deps, { requestContext, query: queryOf(request) }),
      { public: true, detail: AUTHORIZE_RETURN_DETAIL },
    );
}

async function begin(deps: PageDeps, { requestContext, query }: PageVisit): Promise<Response> {
  const checked = await checkAuthorization(deps, query);
  if (checked.kind !== "good") return rejectRequest(deps, checked, 302);
  const browser = deps.cookie.read(requestContext.headers) ?? newBrowser();
  const ticket = sealTicket(deps, browser, { query, signedIn: null, ttlMs: PAGE_TTL_MS });
  const headers = { "Set-Cookie": deps.cookie.write(browser) };
  return signInPage({ authorization: checked.authorization, ticket }, { status: 200, headers });
}

interface SentForm {
  readonly requestContext: RequestContext;
  readonly raw: Uint8Array;
}

interface Step {
  readonly requestContext: RequestContext;
  readonly form: Params;
  readonly browser: string;
  readonly ticket: Ticket;
  readonly authorization: Authorization;
}

async function proceed(deps: PageDeps, { requestContext, raw }: SentForm): Promise<Response> {
  const { headers } = requestContext;
  if (!isOwnForm(headers, deps.config.serverRoot))
    return failurePage("This form was sent from another site.", { status: 403 });
  const form = readForm(headers, raw);
  form.refuseRepeated();
  const browser = deps.cookie.read(headers);
  const opened = browser && openTicket(deps, browser, form.required("ticket"));
  if (!browser || !opened) return failurePage(STALE, { status: 400 });
  const { ticket, isExpired } = opened;
  const checked = await checkAuthorization(deps, ticket.query);
  if (checked.kind !== "good") return rejectRequest(deps, checked);
  const step = { requestContext, form, browser, ticket, authorization: checked.authorization };
  // A form that was sent without a button counts as `prove` if the sign-in waits for a second factor, and otherwise as
  // `sign_in`. After the sign-in, a form without a button has no action.
  const first = ticket.waiting === undefined ? "sign_in" : "prove";
  const action = form.one("action") ?? (ticket.signedIn === null ? first : undefined);
  if (action === "deny") return deny(deps, step);
  if (isExpired) return showSignInAgain(deps, pageRequestOf(step), EXPIRED);
  if (action === "sign_in") return signIn(deps, step);
  if (action === "sso") return startProviderSignIn(deps, pageRequestOf(step), requestContext);
  if (action === "prove" && ticket.waiting !== undefined) return prove(deps, step, ticket.waiting);
  if (action === "allow" && ticket.signedIn !== null) return allow(deps, step, ticket.signedIn);
  return failurePage(STALE, { status: 400 });
}

/**
 * Returns whether the form was sent from a page of this service. Browsers send `Origin`, or send it as `null` together
 * with `Sec-Fetch-Site`. A request with neither header is accepted, because it does not come from a browser that
 * another site could misuse. The cookie and the encrypted ticket protect the form as well.
 */
function isOwnForm(headers: Headers, serverRoot: string): boolean {
  const [origin, site] = [headers.get("origin"), headers.get("sec-fetch-site")];
  if (origin !== null && origin !== "null") return origin === serverRoot;
  return site === null ? origin === null : site === "same-origin";
}

const pageRequestOf = ({ browser, ticket, authorization, form }: Step): PageRequest => ({
  browser,
  query: ticket.query,
  authorization,
  email: form.one("email"),
});

async function signIn(deps: PageDeps, step: Step): Promise<Response> {
  const { authorization, form, requestContext } = step;
  const request = pageRequestOf(step);
  const [email, password] = [form.one("email"), form.one("password")];
  if (email === undefined || password === undefined)
    return showSignInAgain(deps, request, {
      status: 400,
      problem: "Enter your email and your password.",
    });
  const outcome = await signInAtPage(deps, authorization, { email, password, requestContext });
  if (outcome.kind === "wrong")
    return showSignInAgain(deps, request, {
      status: 400,
      problem: "The email or the password is wrong.",
    });
  if (outcome.kind === "locked") {
    const wait = inWords(outcome.retryAfterS);
    const problem = `There were too many wrong passwords. Sign-in is locked; try again in ${wait}.`;
    const headers = { "Retry-After": String(outcome.retryAfterS) };
    return showSignInAgain(deps, request, { status: 429, problem, headers });
  }
  const { value } = outcome;
  if (value.kind === "enrol")
    return showSignInAgain(deps, request, { status: 403, problem: enrolFirst(deps) });
  if (value.kind === "factor") {
    const { userId, jti, options } = value;
    return askForFactor(deps, request, { waiting: { userId, jti, email }, options });
  }
  return continueFlow(deps, request, { ...value, email });
}

const enrolFirst = ({ config }: PageDeps) =>
  `Your company requires a second factor. Set one up at ${config.serverRoot}/dashboard first.`;

async function prove(deps: PageDeps, step: Step, waiting: WaitingUser): Promise<Response> {
  const { authorization, form, requestContext } = step;
  const request = { ...pageRequestOf(step), email: waiting.email };
  const proof = readProof(form);
  const outcome =
    proof && (await proveAtPage(deps, authorization, { ...waiting, proof, requestContext }));
  if (outcome?.kind === "right")
    return continueFlow(deps, request, { ...outcome.value, email: waiting.email });
  const choice = outcome?.kind === "ended" ? undefined : await offerFactors(deps, waiting);
  if (choice === undefined) return showSignInAgain(deps, request, EXPIRED);
  return askForFactor(deps, request, { ...choice, waiting, problem: proofProblem(outcome) });
}

function proofProblem(outcome: Awaited<ReturnType<typeof proveAtPage>> | undefined): SignInProblem {
  if (outcome?.kind !== "locked")
    return { status: 400, problem: "The code is wrong or was already used." };
  const wait = inWords(outcome.retryAfterS);
  const problem = `There were too many wrong codes. Codes of the authenticator app are locked; try again in ${wait}.`;
  return { status: 429, problem, headers: { "Retry-After": String(outcome.retryAfterS) } };
}

/**
 * Reads the proof of a second factor from the form: a passkey assertion, six digits of an authenticator app, or a
 * recovery code. Returns undefined if it is malformed.
 */
function readProof(form: Params): ProofBody | undefined {
  const [passkey, code = ""] = [form.one("passkey"), form.one("code")?.trim()];
  const typed = /^\d{6}$/.test(code) ? { code } : { recovery_code: code };
  const examined = examine(proofBody, passkey === undefined ? typed : { passkey: jsonOf(passkey) });
  return "value" in examined ? examined.value : undefined;
}

function jsonOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

async function allow(
  deps: PageDeps,
  step: Step,
  { secret }: { secret: string },
): Promise<Response> {
  const { authorization, requestContext } = step;
  const code = await grantConsent(deps, authorization, { secret, requestContext });
  return code === undefined
    ? showSignInAgain(deps, pageRequestOf(step), EXPIRED)
    : sendBack(deps, authorization, { code });
}

async function deny(
  deps: PageDeps,
  { authorization, ticket, requestContext }: Step,
): Promise<Response> {
  if (ticket.signedIn !== null)
    await denyConsent(deps, { secret: ticket.signedIn.secret, requestContext });
  const error_description = "The user denied the request.";
  return sendBack(deps, authorization, { error: "access_denied", error_description });
}
