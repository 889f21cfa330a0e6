import { route } from "../../http/route.ts";
import { requestPasswordChange, type ChangeDeps } from "../actions/change-password.ts";
import { resendCode } from "../actions/resend-code.ts";
import { resetPassword, type ResetDeps } from "../actions/reset-password.ts";
import { verifyCode, type VerifyCodeDeps } from "../actions/verify-code.ts";
import { passwordFault } from "../common-passwords.ts";
import { ownSignIn, passwordSetter, publicAccess } from "../guard.ts";
import { messageAnswer } from "../model.ts";
import {
  changeBody,
  resendBody,
  resetAnswer,
  resetBody,
  verifyBody,
  verifyCodeAnswer,
} from "../password-model.ts";

export interface PasswordDeps extends ChangeDeps, ResetDeps, VerifyCodeDeps {
  readonly config: ChangeDeps["config"] & ResetDeps["config"];
}

/** interface.md 4.2; paths of decisions.md 2. */
export function passwordRoutes(deps: PasswordDeps) {
  return [...codeRoutes(deps), ...changeRoutes(deps)];
}

function codeRoutes(deps: PasswordDeps) {
  return [
    route({
      method: "POST",
      path: "/email-otp/resend",
      summary: "Mail a code, or mail another one",
      access: publicAccess,
      body: resendBody,
      answers: { 200: messageAnswer },
      handle: async ({ body }) => {
        await resendCode(deps, body);
        return { message: "If the address can be used for this, a code is on its way." };
      },
    }),
    route({
      method: "POST",
      path: "/email-otp/verify",
      summary: "Exchange a mailed code for a token that sets the password",
      access: publicAccess,
      body: verifyBody,
      answers: { 200: verifyCodeAnswer },
      handle: ({ body, call }) => verifyCode(deps, body, call),
    }),
  ];
}

function changeRoutes(deps: PasswordDeps) {
  return [
    route({
      method: "POST",
      path: "/reset-password",
      summary: "Set a new password and end everything that was signed in",
      access: passwordSetter(),
      body: resetBody,
      answers: { 200: resetAnswer },
      problems: ["overloaded"],
      rules: ({ body: { password } }) => ({ password: password && passwordFault(password) }),
      handle: ({ principal, body, call }) => resetPassword(deps, principal, body.password, call),
    }),
    route({
      method: "POST",
      path: "/change-password",
      summary: "Check the current password and mail the code for a new one",
      access: ownSignIn("*"),
      body: changeBody,
      answers: { 200: messageAnswer },
      problems: ["account_locked", "overloaded"],
      handle: async ({ principal, body, call }) => {
        await requestPasswordChange(deps, principal, body.current_password, call);
        return { message: "A code to change your password is on its way." };
      },
    }),
  ];
}
