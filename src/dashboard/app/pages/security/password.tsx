import { Alert, Button, Group, PasswordInput, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { clientWith, useApi, useSession, useSessionState } from "../../session.tsx";
import { CodeEntry } from "../../ui/code-entry.tsx";
import { fieldError, problemOf } from "../../ui/explain.ts";
import { Icon } from "../../ui/icon.tsx";
import { NewPassword } from "../../ui/new-password.tsx";
import { notify } from "../../ui/notify.ts";
import { Section } from "../../ui/section.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { minutes, useCountdown } from "../../ui/time.tsx";
import { useSubmit } from "../../ui/use-submit.ts";

const TYPE = "change_password";

type Step =
  | { readonly name: "closed" }
  | { readonly name: "current" }
  | { readonly name: "code" }
  | { readonly name: "new"; readonly token: string };

/** Current password, code from the mail, new password. */
export function PasswordSection() {
  const api = useApi();
  const { email } = useSession().user;
  const { data: ways } = useQuery({
    queryKey: ["ways", email],
    queryFn: () => api.call("POST", "/auth/discover", { body: { email } }),
  });
  const [step, setStep] = useState<Step>({ name: "closed" });
  if (ways?.password === false)
    return (
      <Section
        title="Password"
        description="Your company signs in through its own identity provider: your password is kept and changed there."
      />
    );
  const close = () => setStep({ name: "closed" });
  return (
    <Section
      title="Password"
      description="A new one takes your current password and a code that we mail you."
      actions={
        step.name === "closed" ? (
          <Button variant="default" onClick={() => setStep({ name: "current" })}>
            Change password
          </Button>
        ) : (
          <Button variant="subtle" onClick={close}>
            Cancel
          </Button>
        )
      }
    >
      {step.name !== "closed" && (
        <Stack maw={440}>
          <Consequences />
          <Steps step={step} onStep={setStep} />
        </Stack>
      )}
    </Section>
  );
}

/** Said before, not after. */
function Consequences() {
  return (
    <Alert
      variant="light"
      color="yellow"
      icon={<Icon name="alert" />}
      title="A new password ends everything else"
    >
      <Text size="sm">
        Every other browser and app is signed out, and all your API tokens stop at once, those of
        scripts and servers, too. Only this tab stays.
      </Text>
    </Alert>
  );
}

function Steps({ step, onStep }: { readonly step: Step; readonly onStep: (step: Step) => void }) {
  const { api, signIn, isRemembered } = useSessionState();
  const { email } = useSession().user;
  const verify = async (otp: string) => {
    const answer = await api.call("POST", "/email-otp/verify", {
      body: { email, otp, type: TYPE },
    });
    if ("token" in answer) onStep({ name: "new", token: answer.token });
  };
  const resend = async () => {
    await api.call("POST", "/email-otp/resend", { body: { email, type: TYPE } });
  };
  if (step.name === "current") return <CurrentPassword onRight={() => onStep({ name: "code" })} />;
  if (step.name === "code")
    return (
      <>
        <Text size="sm">
          A code of six digits is on its way to <strong>{email}</strong>. It works for 10 minutes.
        </Text>
        <CodeEntry onCode={verify} onResend={resend} />
      </>
    );
  if (step.name === "closed") return null;
  const reset = async (password: string) => {
    const client = clientWith(step.token);
    const next = await client.call("POST", "/reset-password", { body: { password } });
    signIn(next, { remember: isRemembered });
    notify.done("Your password is changed. Everything else is signed out.");
    onStep({ name: "closed" });
  };
  return <NewPassword email={email} action="Set the password" onPassword={reset} />;
}

function CurrentPassword({ onRight }: { readonly onRight: () => void }) {
  const api = useApi();
  const [password, setPassword] = useState("");
  const [lockedUntil, setLockedUntil] = useState<number>();
  const wait = useCountdown(lockedUntil);
  const { error, isBusy, onSubmit } = useSubmit(async () => {
    try {
      await api.call("POST", "/change-password", { body: { current_password: password } });
      onRight();
    } catch (caught) {
      const waitS = problemOf(caught)?.retryAfterS;
      setLockedUntil(waitS && Date.now() + waitS * 1_000);
      throw caught;
    }
  });
  const wrong = fieldError(error, "current_password");
  const isLocked = problemOf(error)?.code === "account_locked";
  return (
    <form onSubmit={onSubmit}>
      <Stack>
        <PasswordInput
          label="Current password"
          autoComplete="current-password"
          required
          withAsterisk={false}
          maxLength={128}
          visibilityToggleFocusable
          // The button before it was pressed for this field.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          error={wrong !== undefined && !isLocked && "This is not your current password."}
        />
        {isLocked && (
          <Text size="sm" c="var(--mantine-color-error)" role="alert">
            {wait > 0
              ? `There were too many wrong passwords: this and the sign-in are locked for ${minutes(wait)}.`
              : "You can try again now."}
          </Text>
        )}
        {error !== undefined && wrong === undefined && <ErrorNotice error={error} />}
        <Group>
          <Button type="submit" loading={isBusy} disabled={wait > 0}>
            Mail me a code
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
