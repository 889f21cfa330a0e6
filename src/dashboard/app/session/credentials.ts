import { answerOf } from "../api/client.ts";
import { apiWith } from "../api/connect.ts";
import type { Session } from "./identity.ts";
import { useSessionState } from "./session.tsx";

/** The sign-in methods that the domain of an email allows. */
export interface SignInMethods {
  readonly password: boolean;
  readonly sso: boolean;
}

interface CodeRequest {
  readonly email: string;
  readonly type: "forgot_password" | "change_password";
}

/** Requests that prove an identity: by password, by a mailed code, by an invitation or by single sign-on. */
export function useCredentials() {
  const { api } = useSessionState();
  return {
    /**
     * Reads the sign-in methods of the email's domain. The API does not look up the user, so the answer does
     * not reveal accounts.
     */
    discover: (email: string): Promise<SignInMethods> =>
      answerOf(api.auth.discover.post({ email })),
    logIn: (email: string, password: string, rememberMe: boolean): Promise<Session> =>
      answerOf(api.login.post({ email, password, rememberMe })),
    /** Exchanges the code of an SSO callback for a session (PKCE). */
    exchangeCode: (code: string, verifier: string): Promise<Session> =>
      answerOf(api.auth.sso.exchange.get({ query: { code, code_verifier: verifier } })),
    /** Requests a mail with a code of six digits. */
    sendCode: async (request: CodeRequest): Promise<void> => {
      await answerOf(api["email-otp"].resend.post({ ...request }));
    },
    /** Returns a token that is accepted only for setting a new password. */
    verifyCode: async (request: CodeRequest, otp: string): Promise<string | undefined> => {
      const answer = await answerOf(api["email-otp"].verify.post({ ...request, otp }));
      return "token" in answer ? answer.token : undefined;
    },
    /** Verifies the current password, and requests a mail with a code of six digits. */
    startPasswordChange: async (currentPassword: string): Promise<void> => {
      await answerOf(api["change-password"].post({ current_password: currentPassword }));
    },
    /** Redeems an invitation code: sets the first password and signs in. */
    acceptInvitation: (code: string, password: string): Promise<Session> =>
      answerOf(api.auth.invitation.post({ code, password })),
    /**
     * Sets a new password with the token of `verifyCode`. The request has its own client, so that a 401 does
     * not end the session.
     */
    setPassword: (token: string, password: string): Promise<Session> =>
      answerOf(apiWith(token)["reset-password"].post({ password })),
  };
}
