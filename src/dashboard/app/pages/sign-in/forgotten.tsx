import { Anchor, Button, Stack, Text, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";

import { clientWith, useSessionState } from "../../session.tsx";
import { CodeEntry } from "../../ui/code-entry.tsx";
import { NewPassword } from "../../ui/new-password.tsx";
import { Refusal } from "./refusal.tsx";
import { Remember } from "./remember.tsx";
import { useProblem } from "./wait.ts";

const TYPE = "forgot_password";

interface ForgottenProps {
  readonly email: string;
  readonly remember: boolean;
  readonly onRemember: (remember: boolean) => void;
  readonly onBack: () => void;
}

/** A new password by a code in a mail. Nothing here tells whether the address has an account. */
export function Forgotten({ email, remember, onRemember, onBack }: ForgottenProps) {
  const { api, signIn } = useSessionState();
  const [isSent, setSent] = useState(false);
  const [token, setToken] = useState<string>();
  const send = async () => {
    await api.call("POST", "/email-otp/resend", { body: { email, type: TYPE } });
    setSent(true);
  };
  const verify = async (otp: string) => {
    const answer = await api.call("POST", "/email-otp/verify", {
      body: { email, otp, type: TYPE },
    });
    if ("token" in answer) setToken(answer.token);
  };
  const reset = async (password: string) => {
    const client = clientWith(token ?? "");
    signIn(await client.call("POST", "/reset-password", { body: { password } }), { remember });
  };
  return (
    <Stack>
      {!isSent && <Ask email={email} onSend={send} />}
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

function Ask({ email, onSend }: { readonly email: string; readonly onSend: () => Promise<void> }) {
  const { error, wait, report, dismiss } = useProblem();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    dismiss();
    try {
      await onSend();
    } catch (caught) {
      report(caught);
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack>
        <TextInput label="Email" value={email} readOnly autoComplete="username" />
        <Text size="sm">We mail you a code. With it you choose a new password.</Text>
        {error !== undefined && <Refusal error={error} wait={wait} />}
        {/* The button before it is gone. */}
        {/* oxlint-disable-next-line jsx-a11y/no-autofocus */}
        <Button type="submit" loading={isBusy} disabled={wait > 0} autoFocus>
          Mail me a code
        </Button>
      </Stack>
    </form>
  );
}
