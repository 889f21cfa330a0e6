import { route, type Route } from "../http/route.ts";
import { logIn, type LogInDeps } from "./actions/log-in.ts";
import { logOut } from "./actions/log-out.ts";
import { verifyToken } from "./actions/verify-token.ts";
import { anyUser, publicAccess } from "./guard.ts";
import { loginAnswer, loginBody, messageAnswer, verifyTokenAnswer } from "./model.ts";

/** interface.md 4.1. */
export function authRoutes(deps: LogInDeps): Route[] {
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
      method: "GET",
      path: "/verify-token",
      summary: "Show whom the token speaks for",
      access: anyUser(),
      answers: { 200: verifyTokenAnswer },
      handle: ({ principal }) => verifyToken(deps, principal),
    }),
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
  ];
}
