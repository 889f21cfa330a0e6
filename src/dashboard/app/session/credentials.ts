import { answerOf } from "../api/client.ts";
import { apiWith } from "../api/connect.ts";
import type { Session } from "./identity.ts";
import { useSessionState } from "./session.tsx";

/** Which ways of signing in the domain of an email has. */
export interface SignInMethods {
  readonly password: boolean;
  readonly sso: boolean;
}

interface CodeRequest {
  readonly email: string;
  readonly type: "forgot_password" | "change_password";
}

/** Sends what proves who somebody is: passwords, codes from mails, and the code of a single sign-on. */
export function useCredentials() {
  const { api } = useSessionState();
  return {
    /** Asks for the domain of the email; nobody is looked up. */
    discover: (email: string): Promise<SignInMethods> =>
      answerOf(api.auth.discover.post({ email })),
    logIn: (email: string, password: string, rememberMe: boolean): Promise<Session> =>
      answerOf(api.login.post({ email, password, rememberMe })),
    /** Redeems the code that a single sign-on brought back. */
    exchangeCode: (code: string, verifier: string): Promise<Session> =>
      answerOf(api.auth.sso.exchange.get({ query: { code, code_verifier: verifier } })),
    /** Mails a code of six digits. */
    sendCode: async (request: CodeRequest): Promise<void> => {
      await answerOf(api["email-otp"].resend.post({ ...request }));
    },
    /** Answers the token that is good for a new password and for nothing else. */
    verifyCode: async (request: CodeRequest, otp: string): Promise<string | undefined> => {
      const answer = await answerOf(api["email-otp"].verify.post({ ...request, otp }));
      return "token" in answer ? answer.token : undefined;
    },
    /** Checks the present password, and mails a code of six digits. */
    startPasswordChange: async (currentPassword: string): Promise<void> => {
      await answerOf(api["change-password"].post({ current_password: currentPassword }));
    },
    /** Redeems the code of an invitation for the first password. */
    acceptInvitation: (code: string, password: string): Promise<Session> =>
      answerOf(api.auth.invitation.post({ code, password })),
    /** Needs the token of `verifyCode`; a 401 of it ends no session. */
    setPassword: (token: string, password: string): Promise<Session> =>
      answerOf(apiWith(token)["reset-password"].post({ password })),
  };
}
