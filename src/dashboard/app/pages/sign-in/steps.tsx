import { LinkButton, Dimmed, ErrorText } from "../../ui/layout.tsx";
import { Alert, Button, Divider, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";

import { fieldError } from "../../api/client.ts";
import { type SignInMethods, useCredentials } from "../../session/credentials.ts";
import { startSsoFlow } from "../../session/links.ts";
import { useSessionState } from "../../session/session.tsx";
import { CodeEntry } from "../../ui/code-entry.tsx";
import { Form, SubmitButton, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { NewPassword } from "../../ui/new-password.tsx";
import { useWait } from "../../ui/time.tsx";
import { Remember } from "./frame.tsx";
import { SignInError } from "./messages.tsx";

interface MethodStepProps {
  readonly email: string;
  readonly remember: boolean;
  readonly onRemember: (remember: boolean) => void;
  readonly methods: SignInMethods;
  readonly onOtherEmail: () => void;
  readonly onForgotten: () => void;
}

/** Offers the sign-in methods that the domain of the email allows: password, single sign-on or both. */
export function MethodStep(props: MethodStepProps) {
  const { methods, email, remember, onRemember } = props;
  return (
    <Stack>
      {methods.password ? (
        <PasswordForm {...props} />
      ) : (
        <>
          <ChosenEmail {...props} />
          <Text size="sm">Your company signs in through its own identity provider.</Text>
          <Remember value={remember} onChange={onRemember} />
        </>
      )}
      {methods.password && methods.sso && <Divider label="or" />}
      {methods.sso && (
        <SingleSignOn email={email} remember={remember} isOnlyMethod={!methods.password} />
      )}
    </Stack>
  );
}

function ChosenEmail({ email, onOtherEmail }: Pick<MethodStepProps, "email" | "onOtherEmail">) {
  return (
    <TextInput
      label="Email"
      name="email"
      autoComplete="username"
      readOnly
      value={email}
      rightSectionWidth={80}
      rightSection={
        <Button variant="subtle" size="compact-sm" onClick={onOtherEmail}>
          Change
        </Button>
      }
    />
  );
}

/** Form for the password. After a failed sign-in the password field is cleared. */
function PasswordForm(props: MethodStepProps) {
  const { email, remember, onRemember, onForgotten } = props;
  const { signInWith } = useSessionState();
  const { logIn } = useCredentials();
  const { wait, waitAfter } = useWait();
  const form = useForm({
    initial: { password: "" },
    send: ({ password }) => signInWith(logIn(email, password, remember), { remember }),
    onFailed: (error, changes) => {
      waitAfter(error);
      changes.edit({ password: "" });
    },
  });
  const field = useRef<HTMLInputElement>(null);
  const isFree = wait === 0 && !form.isBusy;
  useEffect(() => {
    // Focuses the password field when the step opens, after a wrong password, and when a sign-in lock has ended.
    if (isFree) field.current?.focus();
  }, [isFree]);
  return (
    <Form
      form={form}
      isCheckedByBrowser
      renderError={(error) => <SignInError error={error} wait={wait} />}
      buttons={
        <>
          <SubmitButton form={form} isReady={wait === 0}>
            Sign in
          </SubmitButton>
          <LinkButton onClick={onForgotten}>Forgot your password?</LinkButton>
        </>
      }
    >
      <ChosenEmail {...props} />
      <PasswordInput
        ref={field}
        label="Password"
        name="password"
        autoComplete="current-password"
        required
        withAsterisk={false}
        maxLength={128}
        visibilityToggleFocusable
        disabled={wait > 0}
        {...form.text("password")}
      />
      <Remember value={remember} onChange={onRemember} />
    </Form>
  );
}

interface SingleSignOnProps extends Pick<MethodStepProps, "email" | "remember"> {
  readonly isOnlyMethod: boolean;
}

/** Starts the SSO flow: the browser navigates to the identity provider. */
function SingleSignOn({ email, remember, isOnlyMethod }: SingleSignOnProps) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const begin = async () => {
    setBusy(true);
    const address = await startSsoFlow({ email, remember });
    if (address !== undefined) return location.assign(address);
    setBusy(false);
    setError(
      "Single sign-on needs a secure connection (https) and a browser that can store data for this page.",
    );
  };
  return (
    <>
      <Button
        variant={isOnlyMethod ? "filled" : "default"}
        leftSection={<Icon name="building" />}
        loading={isBusy}
        // Autofocus is needed because the control that had the focus was removed with the previous step.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus={isOnlyMethod}
        onClick={() => void begin()}
      >
        Continue with single sign-on
      </Button>
      {error !== undefined && <ErrorText>{error}</ErrorText>}
    </>
  );
}

interface ForgottenProps extends Pick<MethodStepProps, "email" | "remember" | "onRemember"> {
  /** Code of the link that opened the page, so that nobody types it; undefined without a link. */
  readonly code: string | undefined;
  readonly onBack: () => void;
}

/**
 * Resets a forgotten password with a mailed code. The texts do not disclose whether a user has this email: they are
 * the same in both cases.
 */
export function Forgotten({ email, code, remember, onRemember, onBack }: ForgottenProps) {
  const { signInWith } = useSessionState();
  const { sendCode, verifyCode, setPassword } = useCredentials();
  const [isSent, setSent] = useState(false);
  const [token, setToken] = useState<string>();
  const [link, setLink] = useState(code === undefined ? "none" : "open");
  const request = { email, type: "forgot_password" } as const;
  const send = () => sendCode(request);
  const verify = async (otp: string) => setToken(await verifyCode(request, otp));
  /** Verifies the code of a link only now, because a program that scans mails may open the link before the user. */
  const tokenOfLink = async () => {
    const verified = await verifyCode(request, code ?? "");
    setToken(verified);
    return verified;
  };
  const reset = async (password: string) => {
    try {
      const proof = token ?? (await tokenOfLink()) ?? "";
      await signInWith(setPassword(proof, password), { remember });
    } catch (error) {
      if (fieldError(error, "otp") === undefined) throw error;
      setLink("ended");
    }
  };
  const isNew = token !== undefined || link === "open";
  return (
    <Stack>
      {link === "ended" && !isSent && (
        <Alert
          color="red"
          role="alert"
          icon={<Icon name="alert" />}
          title="This link cannot be used any more"
        >
          It has expired or was already used. Request another code.
        </Alert>
      )}
      {!isSent && !isNew && (
        <>
          <AskForCode email={email} send={send} onSent={() => setSent(true)} />
          <LinkButton onClick={() => setSent(true)}>I already have a code</LinkButton>
        </>
      )}
      {isSent && !isNew && (
        <>
          <Text size="sm">
            If <strong>{email}</strong> has an account, we have sent a 6-digit code. It is valid for
            10 minutes. Check your spam folder, too.
          </Text>
          <CodeEntry onCode={verify} onResend={send} />
        </>
      )}
      {isNew && (
        <NewPassword email={email} action="Set the password and sign in" onPassword={reset}>
          <Dimmed size="sm">
            You set the password of <strong>{email}</strong>. This ends all your sessions and API
            tokens.
          </Dimmed>
          <Remember value={remember} onChange={onRemember} />
        </NewPassword>
      )}
      <LinkButton onClick={onBack}>Back to the sign-in</LinkButton>
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
  const form = useForm({ initial: {}, send, onDone: onSent, onFailed: waitAfter });
  return (
    <Form
      form={form}
      renderError={(error) => <SignInError error={error} wait={wait} />}
      buttons={
        // Autofocus is needed because the control that had the focus was removed with the previous step.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        <SubmitButton form={form} isReady={wait === 0} autoFocus>
          Email me a code
        </SubmitButton>
      }
    >
      <Text size="sm">
        We email a 6-digit code to <strong>{email}</strong>. With it, you choose a new password.
      </Text>
    </Form>
  );
}
