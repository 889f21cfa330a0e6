import { join } from "../../http/join.ts";
import { Elysia } from "elysia";

import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { errorResponse } from "../../http/errors.ts";
import type { RuleInput } from "../../http/rules.ts";
import { acceptInvitation, previewInvitation } from "./invitations.ts";
import {
  type ChangeDeps,
  requestPasswordChange,
  type ResetDeps,
  resetPassword,
} from "./passwords.ts";
import { resendCode } from "./codes.ts";
import { verifyCode, type VerifyCodeDeps } from "./verify-code.ts";
import {
  acceptBody,
  changeBody,
  passwordError,
  previewBody,
  resendBody,
  resetBody,
  shownInvitation,
  verifyBody,
  verifyCodeAnswer,
} from "./model.ts";
import { ownSignIn, passwordSetter } from "../access/guard.ts";
import { messageAnswer, resetAnswer } from "../model.ts";

export interface PasswordRouteDeps extends ChangeDeps, ResetDeps, VerifyCodeDeps {
  readonly checks: Checks;
  readonly config: ChangeDeps["config"] & ResetDeps["config"];
}

/** Defines the routes that mail codes and set new passwords (contract 4.14, 4.15 and 4.16). */
export function passwordRoutes(deps: PasswordRouteDeps) {
  return join(codeRoutes(deps), newPasswordRoutes(deps));
}

function codeRoutes(deps: PasswordRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/email-otp`, tags: ["Sign-in"] })
    .use(deps.checks)
    .post(
      "/resend",
      async ({ body, requestContext }) => {
        await resendCode(deps, body, requestContext);
        return { message: "If the address can be used for this, a code was sent." };
      },
      {
        public: { isSignIn: true },
        body: resendBody,
        response: { 200: messageAnswer },
        detail: {
          operationId: "sendCode",
          summary: "Mail a code or another code",
          description: "The response is the same whether or not the address belongs to a user.",
        },
      },
    )
    .post("/verify", ({ body, requestContext }) => verifyCode(deps, body, requestContext), {
      public: { isSignIn: true },
      body: verifyBody,
      response: { 200: verifyCodeAnswer },
      detail: {
        operationId: "verifyCode",
        summary: "Exchange a mailed code for a token that sets the password",
        description: "The token is valid for 15 minutes, for `/reset-password` only.",
      },
    });
}

function newPasswordRoutes(deps: PasswordRouteDeps) {
  return new Elysia({ prefix: BASE_PATH, tags: ["Sign-in"] })
    .use(deps.checks)
    .post(
      "/reset-password",
      ({ principal, requestContext, body }) =>
        resetPassword(deps, { principal, requestContext }, body.password),
      {
        access: passwordSetter(),
        body: resetBody,
        rules: ({ body: { password } }: RuleInput<typeof resetBody>) => ({
          password: password && passwordError(password),
        }),
        response: {
          200: resetAnswer,
          401: errorResponse("second_factor_required"),
          503: errorResponse("overloaded"),
        },
        detail: {
          operationId: "resetPassword",
          summary: "Set a new password and end all sessions",
          description:
            "Requires the token of a mailed code or of the user's own sign-in. Returns a new token.",
        },
      },
    )
    .post(
      "/auth/invitation",
      ({ body, requestContext }) => acceptInvitation(deps, body, requestContext),
      {
        public: true,
        body: acceptBody,
        rules: ({ body: { password } }: RuleInput<typeof acceptBody>) => ({
          password: password && passwordError(password),
        }),
        response: {
          200: resetAnswer,
          400: errorResponse("invalid_code"),
          401: errorResponse("second_factor_required"),
          503: errorResponse("overloaded"),
        },
        detail: {
          operationId: "acceptInvitation",
          summary: "Set the first password with an invitation",
          description: "The code works once.",
        },
      },
    )
    .post("/auth/invitation/preview", ({ body }) => previewInvitation(deps, body.code), {
      public: true,
      body: previewBody,
      response: { 200: shownInvitation, 400: errorResponse("invalid_code") },
      detail: {
        operationId: "previewInvitation",
        summary: "Show an invitation",
        description: "The code stays unused.",
      },
    })
    .post(
      "/change-password",
      async ({ principal, requestContext, body }) => {
        await requestPasswordChange(deps, { principal, requestContext }, body.current_password);
        return { message: "A code to change your password was sent." };
      },
      {
        access: ownSignIn("*"),
        body: changeBody,
        response: {
          200: messageAnswer,
          429: errorResponse("account_locked"),
          503: errorResponse("overloaded"),
        },
        detail: {
          operationId: "changePassword",
          summary: "Check the current password and mail the code for a new one",
          description:
            "Change the password with `/email-otp/verify` and `/reset-password` afterwards.",
        },
      },
    );
}
