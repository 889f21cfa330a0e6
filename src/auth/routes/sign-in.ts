import { route } from "../../http/route.ts";
import { discover } from "../actions/discover.ts";
import { logIn, type LogInDeps } from "../actions/log-in.ts";
import { logOut, revokeOwnToken } from "../actions/log-out.ts";
import { verifyToken } from "../actions/verify-token.ts";
import { anyUser, publicAccess } from "../guard.ts";
import { loginAnswer, loginBody, messageAnswer, verifyTokenAnswer } from "../model.ts";
import { discoverAnswer, discoverBody } from "../password-model.ts";
import type { Config } from "../../lib/config.ts";

export interface SignInDeps extends LogInDeps {
  readonly config: LogInDeps["config"] & Pick<Config, "serverRoot">;
}

/** interface.md 4.1. */
export function signInRoutes(deps: SignInDeps) {
  return [...beginningRoutes(deps), ...endingRoutes(deps)];
}

function beginningRoutes(deps: SignInDeps) {
  return [
    route({
      method: "POST",
      path: "/login",
      summary: "Sign in with email and password",
      access: publicAccess,
      body: loginBody,
      answers: { 200: loginAnswer },
      problems: ["invalid_credentials", "account_locked", "overloaded"],
      handle: ({ body, call }) => logIn(deps, body, call),
    }),
    route({
      method: "POST",
      path: "/auth/discover",
      summary: "Tell how the addresses of an email domain sign in",
      access: publicAccess,
      body: discoverBody,
      answers: { 200: discoverAnswer },
      handle: ({ body }) => discover(deps, body.email),
    }),
    route({
      method: "GET",
      path: "/verify-token",
      summary: "Show whom the token speaks for",
      access: anyUser(),
      answers: { 200: verifyTokenAnswer },
      handle: ({ principal }) => verifyToken(deps, principal),
    }),
  ];
}

function endingRoutes(deps: SignInDeps) {
  return [
    route({
      method: "GET",
      path: "/logout",
      summary: "End the token and the refresh token of its sign-in",
      access: anyUser(),
      answers: { 200: messageAnswer },
      handle: async ({ principal, call }) => {
        await logOut(deps, principal, call);
        return { message: "You are signed out." };
      },
    }),
    route({
      method: "GET",
      path: "/sso/revoking-token",
      summary: "Revoke the token that is sent",
      access: anyUser(),
      answers: { 200: messageAnswer },
      handle: async ({ principal, call }) => {
        await revokeOwnToken(deps, principal, call);
        return { message: "The token is revoked." };
      },
    }),
  ];
}
