import { Alert, Button, PasswordInput, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { apiErrorOf } from "../../api/client.ts";
import { useCredentials } from "../../session/credentials.ts";
import { useSession, useSessionState } from "../../session/session.tsx";
import { CodeEntry } from "../../ui/code-entry.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { minutes } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { ErrorText, LinkButton, PageHeader, Section } from "../../ui/layout.tsx";
import { NewPassword } from "../../ui/new-password.tsx";
import { notify } from "../../ui/notify.ts";
import { useWait } from "../../ui/time.tsx";
import { SecondFactorsSection } from "./second-factors.tsx";
import { SessionsSection } from "./sessions.tsx";

export function Page() {
  return (
    <>
      <PageHeader
        title="Security"
        description="Your password, two-step verification and active sessions."
      />
      <Stack gap="lg">
        <PasswordSection />
        <SecondFactorsSection />
        <SessionsSection />
      </Stack>
    </>
  );
}

type Step =
  | { readonly name: "closed" }
  | { readonly name: "current" }
  | { readonly name: "code" }
  | { readonly name: "new"; readonly token: string };

/** Changes the password in three steps: the current password, a mailed code, the new password. */
function PasswordSection() {
  const { email } = useSession().user;
  const { discover } = useCredentials();
  const { data: methods } = useQuery({
    queryKey: ["sign-in-methods", email],
    queryFn: () => discover(email),
  });
  const [step, setStep] = useState<Step>({ name: "closed" });
  if (methods?.password === false)
    return (
      <Section
        title="Password"
        description="Your company uses its own identity provider. Change your password there."
      />
    );
  const close = () => setStep({ name: "closed" });
  return (
    <Section
      title="Password"
      description="To change it, you need your current password and a code that we email you."
      actions={
        step.name === "closed" && (
          <Button variant="default" onClick={() => setStep({ name: "current" })}>
            Change password
          </Button>
        )
      }
    >
      {step.name !== "closed" && (
        <Stack maw={440}>
          <Alert
            color="yellow"
            icon={<Icon name="alert" />}
            title="A new password ends all other sessions"
          >
            Every other browser and app is signed out, and all your API tokens stop working,
            including those of scripts and servers.
          </Alert>
          {step.name === "current" && (
            <CurrentPassword onRight={() => setStep({ name: "code" })} onCancel={close} />
          )}
          {step.name === "code" && (
            <MailedCode onToken={(token) => setStep({ name: "new", token })} />
          )}
          {step.name === "new" && <NextPassword token={step.token} onDone={close} />}
          {step.name !== "current" && <LinkButton onClick={close}>Cancel</LinkButton>}
        </Stack>
      )}
    </Section>
  );
}

interface CurrentPasswordProps {
  readonly onRight: () => void;
  readonly onCancel: () => void;
}

function CurrentPassword({ onRight, onCancel }: CurrentPasswordProps) {
  const { startPasswordChange } = useCredentials();
  const { wait, waitAfter } = useWait();
  const form = useForm({
    initial: { current_password: "" },
    send: (draft) => startPasswordChange(draft.current_password),
    onDone: onRight,
    onFailed: waitAfter,
  });
  const isWrong = form.errorOf("current_password") !== undefined;
  const isLocked = apiErrorOf(form.error)?.code === "account_locked";
  return (
    <Form
      form={form}
      isCheckedByBrowser
      action="Email me a code"
      isReady={wait === 0}
      onCancel={onCancel}
    >
      <PasswordInput
        label="Current password"
        autoComplete="current-password"
        required
        withAsterisk={false}
        maxLength={128}
        visibilityToggleFocusable
        // Autofocus is acceptable because the user has just pressed the button that opens this field.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        {...form.text("current_password")}
        error={isWrong && !isLocked && "The password is wrong."}
      />
      {isLocked && (
        <ErrorText>
          {wait > 0
            ? `Too many wrong passwords were entered. This form and the sign-in are locked for ${minutes(wait)}.`
            : "You can try again now."}
        </ErrorText>
      )}
    </Form>
  );
}

/** Step of a password change that asks for the mailed code. The previous step has already requested the mail. */
function MailedCode({ onToken }: { readonly onToken: (token: string) => void }) {
  const { email } = useSession().user;
  const { sendCode, verifyCode } = useCredentials();
  const request = { email, type: "change_password" } as const;
  const verify = async (otp: string) => {
    const token = await verifyCode(request, otp);
    if (token !== undefined) onToken(token);
  };
  return (
    <>
      <Text size="sm">
        We sent a 6-digit code to <strong>{email}</strong>. It works for 10 minutes.
      </Text>
      <CodeEntry onCode={verify} onResend={() => sendCode(request)} />
    </>
  );
}

function NextPassword({ token, onDone }: { readonly token: string; readonly onDone: () => void }) {
  const { signInWith, isRemembered } = useSessionState();
  const { email } = useSession().user;
  const { setPassword } = useCredentials();
  const reset = async (password: string) => {
    const isSignedIn = await signInWith(setPassword(token, password), { remember: isRemembered });
    if (!isSignedIn) return;
    notify.done("Password changed. All other sessions are signed out.");
    onDone();
  };
  return <NewPassword email={email} action="Set the password" onPassword={reset} />;
}
