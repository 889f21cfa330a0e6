import { publicAccess } from "../auth/guard.ts";
import { loginAnswer } from "../auth/model.ts";
import { Answer, route } from "../http/route.ts";
import { beginSso, redirectFaults } from "./actions/begin-sso.ts";
import type { ConnectionDeps } from "./actions/connections.ts";
import type { SsoDeps } from "./actions/deps.ts";
import { exchangeCode } from "./actions/exchange-code.ts";
import { finishSso } from "./actions/finish-sso.ts";
import { browserCookie } from "./browser.ts";
import { callbackQuery, exchangeQuery, redirectQuery } from "./model.ts";
import { connectionRoutes } from "./routes/connections.ts";

interface RouteDeps extends SsoDeps, ConnectionDeps {
  readonly config: SsoDeps["config"] & ConnectionDeps["config"];
}

/** interface.md 4.1 and 5.1; decisions.md 2, SSO legs. */
export function ssoRoutes(deps: RouteDeps) {
  return [...legRoutes(deps), ...connectionRoutes(deps)];
}

function legRoutes(deps: SsoDeps) {
  const cookie = browserCookie(deps.config);
  return [
    route({
      method: "GET",
      path: "/auth/sso/redirect",
      summary: "Send the browser to the identity provider of an email domain",
      description:
        "By `email` or by `connection`. Ends at `return_to`, which is the dashboard or one of the allowed places, with a one-time `code`; a sign-in that is refused ends at the dashboard with `error=sso_failed`, whatever the reason.",
      access: publicAccess,
      query: redirectQuery,
      rules: ({ query }) => redirectFaults(deps, query),
      answers: { 302: null },
      async handle({ query, call }) {
        const browser = cookie.read(call.headers);
        const begun = await beginSso(deps, { query, browser }, call);
        return redirect(begun.location, begun.browser && cookie.write(begun.browser));
      },
    }),
    route({
      method: "GET",
      path: "/auth/sso/callback/:connection",
      summary: "Take the answer of an identity provider",
      description: "Only the browser that the sign-in began in gets through, once.",
      access: publicAccess,
      query: callbackQuery,
      answers: { 302: null },
      async handle({ params, query, call }) {
        const browser = cookie.read(call.headers);
        const answered = { connectionId: params["connection"] ?? "", query, browser };
        return redirect(await finishSso(deps, answered, call));
      },
    }),
    route({
      method: "GET",
      path: "/auth/sso/exchange",
      summary: "Exchange the one-time code of a single sign-on for a token",
      description:
        "The code is good for 60 seconds and one try, with the `code_verifier` if the sign-in began with a challenge.",
      access: publicAccess,
      query: exchangeQuery,
      answers: { 200: loginAnswer },
      problems: ["invalid_code"],
      handle: ({ query, call }) => exchangeCode(deps, query, call),
    }),
  ];
}

/** The address may carry a code or a state: no page that follows hears of it. */
function redirect(location: string, setCookie?: string): Answer {
  return new Answer(302, undefined, {
    Location: location,
    "Referrer-Policy": "no-referrer",
    ...(setCookie !== undefined && { "Set-Cookie": setCookie }),
  });
}
