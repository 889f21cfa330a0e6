import { join } from "../http/join.ts";
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { loginAnswer } from "../auth/model.ts";
import { BASE_PATH } from "../http/access.ts";
import type { Checks } from "../http/checks.ts";
import { errorResponse } from "../http/errors.ts";
import type { RuleInput } from "../http/rules.ts";
import { beginSso, redirectErrors } from "./actions/begin-sso.ts";
import type { SsoDeps } from "./actions/deps.ts";
import { exchangeCode } from "./actions/exchange-code.ts";
import { finishSso } from "./actions/finish-sso.ts";
import { browserCookie } from "./browser.ts";
import { callbackQuery, exchangeQuery, redirectQuery } from "./model.ts";
import { type ConnectionRouteDeps, connectionRoutes } from "./routes/connections.ts";
import { identityRoutes } from "./routes/identities.ts";

interface LegRouteDeps extends SsoDeps {
  readonly checks: Checks;
}

interface SsoRouteDeps extends LegRouteDeps, ConnectionRouteDeps {
  readonly config: LegRouteDeps["config"] & ConnectionRouteDeps["config"];
}

const PREFIX = `${BASE_PATH}/auth/sso`;
const REDIRECT = "/redirect";
const CALLBACK = "/callback/:connection";
const EXCHANGE = "/exchange";
/**
 * The GET routes that create or consume a state or a one-time code. They must not accept HEAD, because clients expect
 * HEAD to have no effect.
 */
export const SSO_LEGS = [REDIRECT, CALLBACK, EXCHANGE].map((leg) => PREFIX + leg);

/** Defines all routes of single sign-on (contract 4.13). */
export function ssoRoutes(deps: SsoRouteDeps) {
  return join(
    redirectRoute(deps),
    callbackRoutes(deps),
    connectionRoutes(deps),
    identityRoutes(deps),
  );
}

/** Defines the first step of a single sign-on, the redirect to the identity provider. */
function redirectRoute(deps: LegRouteDeps) {
  const browserSecret = browserCookie(deps.config);
  return new Elysia({ prefix: PREFIX, tags: ["Sign-in"] }).use(deps.checks).get(
    REDIRECT,
    async ({ query, requestContext, set }) => {
      const known = browserSecret.read(requestContext.headers);
      const { location, browser } = await beginSso(deps, { query, known }, requestContext);
      set.status = 302;
      Object.assign(set.headers, redirectHeaders(location));
      if (browser !== undefined) set.headers["set-cookie"] = browserSecret.write(browser);
    },
    {
      public: true,
      query: redirectQuery,
      rules: ({ query }: RuleInput<never, typeof redirectQuery>) => redirectErrors(deps, query),
      response: { 302: Type.Void() },
      detail: {
        operationId: "beginSso",
        summary: "Send the browser to the identity provider of an email domain",
        description:
          "Needs `email` or `connection`. The sign-in ends at `return_to`, the dashboard by default, with a one-time `code`; every failure ends at the dashboard with `error=sso_failed`.",
      },
    },
  );
}

/**
 * Defines the later steps of a single sign-on: the callback from the provider, and the exchange of the one-time code
 * for a token.
 */
function callbackRoutes(deps: LegRouteDeps) {
  const browserSecret = browserCookie(deps.config);
  return new Elysia({ prefix: PREFIX, tags: ["Sign-in"] })
    .use(deps.checks)
    .get(
      CALLBACK,
      async ({ params, query, requestContext, set }) => {
        const browser = browserSecret.read(requestContext.headers);
        const answered = { connectionId: params.connection, query, browser };
        const location = await finishSso(deps, answered, requestContext);
        set.status = 302;
        Object.assign(set.headers, redirectHeaders(location));
      },
      {
        public: true,
        query: callbackQuery,
        response: { 302: Type.Void() },
        detail: {
          operationId: "returnFromSso",
          summary: "Take the answer of an identity provider",
          description: "Works once, in the browser in which the sign-in began.",
        },
      },
    )
    .get(EXCHANGE, ({ query, requestContext }) => exchangeCode(deps, query, requestContext), {
      public: true,
      signIn: true,
      query: exchangeQuery,
      response: { 200: loginAnswer, 400: errorResponse("invalid_code") },
      detail: {
        operationId: "exchangeSsoCode",
        summary: "Exchange the one-time code of a single sign-on for a token",
        description:
          "The code works once within 60 seconds, with the `code_verifier` if the sign-in had a challenge.",
      },
    });
}

/**
 * Returns the headers of a redirect. Its URL may contain a code or a state, which must not leak to the next page in
 * the Referer header.
 */
function redirectHeaders(location: string) {
  return { location, "referrer-policy": "no-referrer" };
}
