import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { loginAnswer } from "../auth/model.ts";
import { BASE_PATH } from "../http/base-path.ts";
import type { Checks } from "../http/checks.ts";
import { problem } from "../http/problem-schema.ts";
import type { Judged } from "../http/rules.ts";
import { beginSso, redirectFaults } from "./actions/begin-sso.ts";
import type { SsoDeps } from "./actions/deps.ts";
import { exchangeCode } from "./actions/exchange-code.ts";
import { finishSso } from "./actions/finish-sso.ts";
import { browserCookie } from "./browser.ts";
import { callbackQuery, exchangeQuery, redirectQuery } from "./model.ts";
import { connectionRoutes, type ConnectionRouteDeps } from "./routes/connections.ts";

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
/** The GETs that make a state, use it up and use a one-time code up: a HEAD of them must not. */
export const SSO_LEGS = [REDIRECT, CALLBACK, EXCHANGE].map((leg) => PREFIX + leg);

/** See contract 4.13. */
export function ssoRoutes(deps: SsoRouteDeps) {
  return new Elysia({ name: "sso" })
    .use(departureRoute(deps))
    .use(returnRoutes(deps))
    .use(connectionRoutes(deps));
}

/** The first leg: to the provider. */
function departureRoute(deps: LegRouteDeps) {
  const browserSecret = browserCookie(deps.config);
  return new Elysia({ prefix: PREFIX, tags: ["Sign-in"] }).use(deps.checks).get(
    REDIRECT,
    async ({ query, call, set }) => {
      const known = browserSecret.read(call.headers);
      const { location, browser } = await beginSso(deps, { query, known }, call);
      set.status = 302;
      Object.assign(set.headers, redirectHeaders(location));
      if (browser !== undefined) set.headers["set-cookie"] = browserSecret.write(browser);
    },
    {
      public: true,
      query: redirectQuery,
      rules: ({ query }: Judged<never, typeof redirectQuery>) => redirectFaults(deps, query),
      response: { 302: Type.Void() },
      detail: {
        operationId: "beginSso",
        summary: "Send the browser to the identity provider of an email domain",
        description:
          "By `email` or by `connection`. Ends at `return_to`, which is the dashboard or one of the allowed places, with a one-time `code`; a sign-in that is refused ends at the dashboard with `error=sso_failed`, whatever the reason.",
      },
    },
  );
}

/** The legs back from the provider, and from the one-time code to a token. */
function returnRoutes(deps: LegRouteDeps) {
  const browserSecret = browserCookie(deps.config);
  return new Elysia({ prefix: PREFIX, tags: ["Sign-in"] })
    .use(deps.checks)
    .get(
      CALLBACK,
      async ({ params, query, call, set }) => {
        const browser = browserSecret.read(call.headers);
        const answered = { connectionId: params.connection, query, browser };
        const location = await finishSso(deps, answered, call);
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
          description: "Only the browser that the sign-in began in gets through, once.",
        },
      },
    )
    .get(EXCHANGE, ({ query, call }) => exchangeCode(deps, query, call), {
      public: true,
      signIn: true,
      query: exchangeQuery,
      response: { 200: loginAnswer, 400: problem("invalid_code") },
      detail: {
        operationId: "exchangeSsoCode",
        summary: "Exchange the one-time code of a single sign-on for a token",
        description:
          "The code is good for 60 seconds and one try, with the `code_verifier` if the sign-in began with a challenge.",
      },
    });
}

/** The address may carry a code or a state, so it must not reach the next page as a referrer. */
function redirectHeaders(location: string) {
  return { location, "referrer-policy": "no-referrer" };
}
