import { join } from "../http/join.ts";
import { Elysia } from "elysia";

import { BASE_PATH } from "../http/access.ts";
import type { Checks } from "../http/checks.ts";
import { errorResponse } from "../http/errors.ts";
import type { Config } from "../lib/config.ts";
import { discover, logIn, type LogInDeps } from "./actions/log-in.ts";
import { logOut, revokeOwnToken, verifyToken } from "./actions/sessions.ts";
import { anyUser } from "./guard.ts";
import { rememberBrowser } from "./known-browser.ts";
import { loginAnswer, loginBody, messageAnswer, verifyTokenAnswer } from "./model.ts";
import { discoverAnswer, discoverBody } from "./password-model.ts";
import { type PasswordRouteDeps, passwordRoutes } from "./routes/passwords.ts";
import { type PersonalTokenRouteDeps, personalTokenRoutes } from "./routes/personal-tokens.ts";
import { type SecondFactorRouteDeps, secondFactorRoutes } from "./routes/second-factors.ts";
import { impersonationRoute, type SessionRouteDeps, sessionRoutes } from "./routes/sessions.ts";

interface SignInRouteDeps extends LogInDeps {
  readonly checks: Checks;
  readonly config: LogInDeps["config"] & Pick<Config, "serverRoot">;
}

const LOGOUT = "/logout";
const REVOKING_TOKEN = "/sso/revoking-token";
/** The GET routes that end a token. They must not accept HEAD, because clients expect HEAD to have no effect. */
export const SIGN_OUT_PATHS = [`${BASE_PATH}${LOGOUT}`, `${BASE_PATH}${REVOKING_TOKEN}`] as const;

/** Defines the routes of sign-in, sign-out and token verification (contract 4.6). */
function signInRoutes(deps: SignInRouteDeps) {
  return join(signInStartRoutes(deps), signOutRoutes(deps));
}

function signInStartRoutes(deps: SignInRouteDeps) {
  return new Elysia({ prefix: BASE_PATH, tags: ["Sign-in"] })
    .use(deps.checks)
    .post(
      "/login",
      async ({ body, requestContext, set }) => {
        const answer = await logIn(deps, body, requestContext);
        const cookie = rememberBrowser(deps, requestContext.headers, body.email);
        if (cookie !== undefined) set.headers["set-cookie"] = cookie;
        return answer;
      },
      {
        public: true,
        signIn: true,
        body: loginBody,
        response: {
          200: loginAnswer,
          401: errorResponse("invalid_credentials", "second_factor_required"),
          429: errorResponse("account_locked"),
          503: errorResponse("overloaded"),
        },
        detail: {
          operationId: "signIn",
          summary: "Sign in with email and password",
          description:
            "Returns a token for one day. Five wrong passwords lock the email for a while.",
        },
      },
    )
    .post("/auth/discover", ({ body }) => discover(deps, body.email), {
      public: true,
      body: discoverBody,
      response: { 200: discoverAnswer },
      detail: {
        operationId: "discoverSignIn",
        summary: "Tell how the addresses of an email domain sign in",
        description: "Depends on the domain only, and does not reveal whether the user exists.",
      },
    })
    .get("/verify-token", ({ principal }) => verifyToken(deps, principal), {
      access: anyUser(),
      response: { 200: verifyTokenAnswer },
      detail: {
        operationId: "verifyToken",
        summary: "Show whom the token speaks for",
        description: "Shows current data, not that of the time of issue.",
      },
    });
}

function signOutRoutes(deps: SignInRouteDeps) {
  return new Elysia({ prefix: BASE_PATH, tags: ["Sign-in"] })
    .use(deps.checks)
    .get(
      LOGOUT,
      async ({ principal, requestContext }) => {
        await logOut(deps, { principal, requestContext });
        return { message: "You are signed out." };
      },
      {
        access: anyUser(),
        response: { 200: messageAnswer },
        detail: {
          operationId: "signOut",
          summary: "End the sign-in with all its tokens",
          description:
            "Ends the token, its refresh tokens and every access token of the same sign-in; a personal access token ends alone.",
        },
      },
    )
    .get(
      REVOKING_TOKEN,
      async ({ principal, requestContext }) => {
        await revokeOwnToken(deps, { principal, requestContext });
        return { message: "The token is revoked." };
      },
      {
        access: anyUser(),
        response: { 200: messageAnswer },
        detail: {
          operationId: "revokeToken",
          summary: "Revoke the token that is sent, and its sign-in",
          description: "Same as `/logout`; for every user.",
        },
      },
    );
}

interface AuthRouteDeps
  extends
    SignInRouteDeps,
    PersonalTokenRouteDeps,
    SessionRouteDeps,
    SecondFactorRouteDeps,
    PasswordRouteDeps {
  readonly config: SignInRouteDeps["config"] &
    PasswordRouteDeps["config"] &
    SessionRouteDeps["config"] &
    SecondFactorRouteDeps["config"];
}

/** Defines all routes of sign-in, tokens and passwords (contract 4). */
export function authRoutes(deps: AuthRouteDeps) {
  return join(
    signInRoutes(deps),
    passwordRoutes(deps),
    secondFactorRoutes(deps),
    personalTokenRoutes(deps),
    sessionRoutes(deps),
    impersonationRoute(deps),
  );
}
