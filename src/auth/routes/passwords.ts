import { Elysia } from "elysia";

import { BASE_PATH } from "../../http/base-path.ts";
import type { Checks } from "../../http/checks.ts";
import { problem } from "../../http/problem-schema.ts";
import type { Judged } from "../../http/rules.ts";
import { acceptInvitation } from "../actions/accept-invitation.ts";
import { requestPasswordChange, type ChangeDeps } from "../actions/change-password.ts";
import { resendCode } from "../actions/resend-code.ts";
import { resetPassword, type ResetDeps } from "../actions/reset-password.ts";
import { verifyCode, type VerifyCodeDeps } from "../actions/verify-code.ts";
import { passwordFault } from "../common-passwords.ts";
import { ownSignIn, passwordSetter } from "../guard.ts";
import { messageAnswer, resetAnswer } from "../model.ts";
import {
  acceptBody,
  changeBody,
  resendBody,
  resetBody,
  verifyBody,
  verifyCodeAnswer,
} from "../password-model.ts";

export interface PasswordRouteDeps extends ChangeDeps, ResetDeps, VerifyCodeDeps {
  readonly checks: Checks;
  readonly config: ChangeDeps["config"] & ResetDeps["config"];
}

/** See contract 4.14, 4.15 and 4.16. */
export function passwordRoutes(deps: PasswordRouteDeps) {
  return new Elysia().use(codeRoutes(deps)).use(newPasswordRoutes(deps));
}

function codeRoutes(deps: PasswordRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/email-otp`, tags: ["Sign-in"] })
    .use(deps.checks)
    .post(
      "/resend",
      async ({ body, call }) => {
        await resendCode(deps, body, call);
        return { message: "If the address can be used for this, a code is on its way." };
      },
      {
        public: true,
        signIn: true,
        body: resendBody,
        response: { 200: messageAnswer },
        detail: {
          operationId: "sendCode",
          summary: "Mail a code, or mail another one",
          description: "The answer is the same whether or not the address has a user.",
        },
      },
    )
    .post("/verify", ({ body, call }) => verifyCode(deps, body, call), {
      public: true,
      signIn: true,
      body: verifyBody,
      response: { 200: verifyCodeAnswer },
      detail: {
        operationId: "verifyCode",
        summary: "Exchange a mailed code for a token that sets the password",
        description: "The token is good for 15 minutes and for `/reset-password` alone.",
      },
    });
}

function newPasswordRoutes(deps: PasswordRouteDeps) {
  return new Elysia({ prefix: BASE_PATH, tags: ["Sign-in"] })
    .use(deps.checks)
    .post(
      "/reset-password",
      ({ principal, call, body }) => resetPassword(deps, { principal, call }, body.password),
      {
        access: passwordSetter(),
        body: resetBody,
        rules: ({ body: { password } }: Judged<typeof resetBody>) => ({
          password: password && passwordFault(password),
        }),
        response: { 200: resetAnswer, 503: problem("overloaded") },
        detail: {
          operationId: "resetPassword",
          summary: "Set a new password and end everything that was signed in",
          description:
            "Takes the token of a mailed code, or of the user's own sign-in; answers a fresh one.",
        },
      },
    )
    .post("/auth/invitation", ({ body, call }) => acceptInvitation(deps, body, call), {
      public: true,
      body: acceptBody,
      rules: ({ body: { password } }: Judged<typeof acceptBody>) => ({
        password: password && passwordFault(password),
      }),
      response: { 200: resetAnswer, 400: problem("invalid_code"), 503: problem("overloaded") },
      detail: {
        operationId: "acceptInvitation",
        summary: "Set the first password by an invitation",
        description: "The code is good once.",
      },
    })
    .post(
      "/change-password",
      async ({ principal, call, body }) => {
        await requestPasswordChange(deps, { principal, call }, body.current_password);
        return { message: "A code to change your password is on its way." };
      },
      {
        access: ownSignIn("*"),
        body: changeBody,
        response: {
          200: messageAnswer,
          429: problem("account_locked"),
          503: problem("overloaded"),
        },
        detail: {
          operationId: "changePassword",
          summary: "Check the current password and mail the code for a new one",
          description:
            "Changes nothing yet: the code does, at `/email-otp/verify` and `/reset-password`.",
        },
      },
    );
}
