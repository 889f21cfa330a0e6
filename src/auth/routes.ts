import { join } from "../http/join.ts";
import { Elysia } from "elysia";

import { BASE_PATH } from "../http/access.ts";
import type { Checks } from "../http/checks.ts";
import { errorResponse } from "../http/errors.ts";
import type { Config } from "../lib/config.ts";
import { discover, logIn, type LogInDeps, rememberBrowser } from "./sign-in/log-in.ts";
import { logOut, revokeOwnToken, verifyToken } from "./sign-in/sessions.ts";
import { anyUser } from "./access/guard.ts";
import { loginAnswer, loginBody, messageAnswer, verifyTokenAnswer } from "./model.ts";
import { discoverAnswer, discoverBody } from "./passwords/model.ts";
import { type PasswordRouteDeps, passwordRoutes } from "./passwords/routes.ts";
import { type PersonalTokenRouteDeps, personalTokenRoutes } from "./tokens/routes.ts";
import { type SecondFactorRouteDeps, secondFactorRoutes } from "./factors/routes.ts";
import { impersonationRoute, type SessionRouteDeps, sessionRoutes } from "./sign-in/routes.ts";

interface SignInRouteDeps extends LogInDeps {
  readonly checks: Checks;
  readonly config: LogInDeps["config"] & Pick<Config, "serverRoot">;
}

const LOGOUT_PATH = "/logout";
const REVOKING_TOKEN_PATH = "/sso/revoking-token";
/** The GET routes that end a token. They must not accept HEAD, because clients expect HEAD to have no effect. */
export const SIGN_OUT_PATHS = [
  `${BASE_PATH}${LOGOUT_PATH}`,
  `${BASE_PATH}${REVOKING_TOKEN_PATH}`,
] as const;

/** Defines the routes with which a sign-in starts (contract 4.6). */
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
        public: { isSignIn: true },
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
            "Returns a token for one day. Five wrong passwords temporarily lock the email.",
        },
      },
    )
    .post("/auth/discover", ({ body }) => discover(deps, body.email), {
      public: true,
      body: discoverBody,
      response: { 200: discoverAnswer },
      detail: {
        operationId: "discoverSignIn",
        summary: "Show the sign-in methods of an email domain",
        description: "Depends on the domain only, and does not reveal whether the user exists.",
      },
    })
    .get("/verify-token", ({ principal }) => verifyToken(deps, principal), {
      access: anyUser(),
      response: { 200: verifyTokenAnswer },
      detail: {
        operationId: "verifyToken",
        summary: "Show the user and company of the token",
        description: "Returns current data, not the data at the time of issue.",
      },
    });
}

function signOutRoutes(deps: SignInRouteDeps) {
  return new Elysia({ prefix: BASE_PATH, tags: ["Sign-in"] })
    .use(deps.checks)
    .get(
      LOGOUT_PATH,
      async ({ principal, requestContext }) => {
        await logOut(deps, { principal, requestContext });
        return { message: "You are signed out." };
      },
      {
        access: anyUser(),
        response: { 200: messageAnswer },
        detail: {
          operationId: "signOut",
          summary: "Sign out and revoke all tokens of the sign-in",
          description:
            "Revokes the token and all access and refresh tokens of the same sign-in. For a personal access token, revokes only this token.",
        },
      },
    )
    .get(
      REVOKING_TOKEN_PATH,
      async ({ principal, requestContext }) => {
        await revokeOwnToken(deps, { principal, requestContext });
        return { message: "The token is revoked." };
      },
      {
        access: anyUser(),
        response: { 200: messageAnswer },
        detail: {
          operationId: "revokeToken",
          summary: "Revoke the token of the request and its sign-in",
          description: "Same as `/logout`, for every user.",
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
    signInStartRoutes(deps),
    signOutRoutes(deps),
    passwordRoutes(deps),
    secondFactorRoutes(deps),
    personalTokenRoutes(deps),
    sessionRoutes(deps),
    impersonationRoute(deps),
  );
}
