import { Anchor, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { useCredentials } from "../../session/credentials.ts";
import { useSessionState } from "../../session/session.tsx";
import { CodeEntry } from "../../ui/code-entry.tsx";
import { Form, SubmitButton, useForm } from "../../ui/form.tsx";
import { NewPassword } from "../../ui/new-password.tsx";
import { useWait } from "../../ui/time.tsx";
import { Remember } from "./frame.tsx";
import { SignInError } from "./messages.tsx";

interface ForgottenProps {
  readonly email: string;
  readonly remember: boolean;
  readonly onRemember: (remember: boolean) => void;
  readonly onBack: () => void;
}

/**
 * Resets a forgotten password with a mailed code. The texts are the same for addresses with and without an
 * account, so that they do not disclose accounts.
 */
export function Forgotten({ email, remember, onRemember, onBack }: ForgottenProps) {
  const { signIn } = useSessionState();
  const { sendCode, verifyCode, setPassword } = useCredentials();
  const [isSent, setSent] = useState(false);
  const [token, setToken] = useState<string>();
  const request = { email, type: "forgot_password" } as const;
  const send = () => sendCode(request);
  const verify = async (otp: string) => setToken(await verifyCode(request, otp));
  const reset = async (password: string) =>
    signIn(await setPassword(token ?? "", password), { remember });
  return (
    <Stack>
      {!isSent && <AskForCode email={email} send={send} onSent={() => setSent(true)} />}
      {isSent && token === undefined && (
        <>
          <Text size="sm">
            If <strong>{email}</strong> has an account here, a code of six digits is on its way. It
            works for 10 minutes. Look among the spam, too.
          </Text>
          <CodeEntry onCode={verify} onResend={send} />
        </>
      )}
      {token !== undefined && (
        <NewPassword email={email} action="Set the password and sign in" onPassword={reset}>
          <Text size="sm" c="dimmed">
            This ends everything that was signed in as you, and all your API tokens.
          </Text>
          <Remember value={remember} onChange={onRemember} />
        </NewPassword>
      )}
      <Anchor component="button" type="button" size="sm" onClick={onBack}>
        Back to the sign-in
      </Anchor>
    </Stack>
  );
}

interface AskForCodeProps {
  readonly email: string;
  readonly send: () => Promise<void>;
  readonly onSent: () => void;
}

function AskForCode({ email, send, onSent }: AskForCodeProps) {
  const { wait, waitAfter } = useWait();
  const form = useForm({ initial: {}, names: {}, send, onDone: onSent, onFailed: waitAfter });
  return (
    <Form
      form={form}
      renderError={(error) => <SignInError error={error} wait={wait} />}
      buttons={
        // Autofocus is needed because the control that had the focus was removed with the previous step.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        <SubmitButton form={form} isReady={wait === 0} autoFocus>
          Mail me a code
        </SubmitButton>
      }
    >
      <TextInput label="Email" value={email} readOnly autoComplete="username" />
      <Text size="sm">We mail you a code. With it you choose a new password.</Text>
    </Form>
  );
}
