import { answerOf } from "../api/client.ts";
import { apiWith } from "../api/connect.ts";
import type { Session } from "./identity.ts";
import { useSessionState } from "./session.tsx";

/** Sign-in methods that the domain of an email address allows. */
export type SignInMethods = Awaited<ReturnType<ReturnType<typeof useCredentials>["discover"]>>;

interface CodeRequest {
  readonly email: string;
  readonly type: "forgot_password" | "change_password";
}

/** Returns the API requests that prove a user's identity: by password, mailed code, invitation or single sign-on. */
export function useCredentials() {
  const { api } = useSessionState();
  return {
    /**
     * Reads the sign-in methods of the email's domain. The API does not look up a user, so the response does not
     * disclose whether a user has this email.
     */
    discover: (email: string) => answerOf(api.auth.discover.post({ email })),
    logIn: (email: string, password: string, rememberMe: boolean): Promise<Session> =>
      answerOf(api.login.post({ email, password, rememberMe })),
    /** Exchanges the code of an SSO callback for a session. The API checks the code against the PKCE verifier. */
    exchangeCode: (code: string, verifier: string): Promise<Session> =>
      answerOf(api.auth.sso.exchange.get({ query: { code, code_verifier: verifier } })),
    /** Requests a mail with a code of six digits, which proves that the user owns the email address. */
    sendCode: async (request: CodeRequest): Promise<void> => {
      await answerOf(api["email-otp"].resend.post({ ...request }));
    },
    /** Verifies a mailed code. Returns a token that the API accepts only for setting a new password. */
    verifyCode: async (request: CodeRequest, otp: string): Promise<string | undefined> => {
      const answer = await answerOf(api["email-otp"].verify.post({ ...request, otp }));
      return "token" in answer ? answer.token : undefined;
    },
    /** Verifies the current password, and requests a mail with a code of six digits. */
    startPasswordChange: async (currentPassword: string): Promise<void> => {
      await answerOf(api["change-password"].post({ current_password: currentPassword }));
    },
    /** Reads who invites to what. The code stays unused. */
    previewInvitation: (code: string) => answerOf(api.auth.invitation.preview.post({ code })),
    /** Redeems an invitation code: sets the first password and signs in. */
    acceptInvitation: (code: string, password: string): Promise<Session> =>
      answerOf(api.auth.invitation.post({ code, password })),
    /**
     * Sets a new password with the token from `verifyCode`. The request uses a separate API client, so that a
     * 401 for this token does not end the user's session.
     */
    setPassword: (token: string, password: string): Promise<Session> =>
      answerOf(apiWith(token)["reset-password"].post({ password })),
  };
}
