import { Alert, Anchor, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { type SignInMethods, useCredentials } from "../../session/credentials.ts";
import type { ResetLink } from "../../session/links.ts";
import { useSessionState } from "../../session/session.tsx";
import { Form, SubmitButton, useForm } from "../../ui/form.tsx";
import { page } from "../../shell/page.tsx";
import { Icon } from "../../ui/icon.tsx";
import { useWait } from "../../ui/time.tsx";
import { Forgotten, MethodStep } from "./steps.tsx";
import { Frame } from "./frame.tsx";
import { type Notice, SignInError, useNotice } from "./messages.tsx";
import css from "./sign-in.module.css";

/** Second step of a sign-in. It is a separate script chunk, because most users have no second factor. */
const SecondStep = page(() => import("./second-step.tsx"));

type Step =
  | { readonly name: "email" }
  | { readonly name: "method"; readonly methods: SignInMethods }
  | { readonly name: "forgotten" };

const TITLES: Readonly<Record<Step["name"], string>> = {
  email: "Sign in",
  method: "Sign in",
  forgotten: "Choose a new password",
};

interface SignInProps {
  /** Link that resets a password at once; undefined for a usual sign-in. */
  readonly reset?: ResetLink | undefined;
  /**
   * Called when the user has entered an email, so that the caller can preload the signed-in pages while the
   * user authenticates.
   */
  readonly onMethod: () => void;
}

/**
 * Sign-in page, rendered at every path while there is no session. The address does not change, so that the
 * requested page opens after the sign-in.
 */
export function SignIn({ reset, onMethod }: SignInProps) {
  const { ssoCallback, waiting, stopWaiting } = useSessionState();
  const flow = "flow" in ssoCallback ? ssoCallback.flow : undefined;
  const [email, setEmail] = useState(reset?.email ?? flow?.email ?? "");
  const [remember, setRemember] = useState(flow?.remember ?? true);
  const [step, setStep] = useState<Step>(
    reset === undefined ? { name: "email" } : { name: "forgotten" },
  );
  const [mailedCode, setMailedCode] = useState(reset?.code);
  const { notice, isExchanging, dismiss, restore } = useNotice();
  const go = (next: Step) => {
    dismiss();
    setStep(next);
  };
  const common = { email, remember, onRemember: setRemember };
  if (waiting !== undefined) {
    const stop = (reason?: "too_late") => {
      restore();
      stopWaiting(reason);
    };
    const { challenge_token: key } = waiting.challenge;
    return <SecondStep key={key} email={email} waiting={waiting} onStop={stop} />;
  }
  return (
    <Frame
      title={isExchanging ? "Signing you in…" : TITLES[step.name]}
      below={
        <Text size="sm" c="dimmed" ta="center">
          Building an integration?{" "}
          <Anchor href="/docs/getting-started" underline="always">
            Read the documentation
          </Anchor>
        </Text>
      }
    >
      <NoticeBox notice={notice} />
      {!isExchanging && step.name === "email" && (
        <EmailStep
          email={email}
          onDiscovered={(typed, methods) => {
            setEmail(typed);
            onMethod();
            go({ name: "method", methods });
          }}
        />
      )}
      {step.name === "method" && (
        <MethodStep
          {...common}
          methods={step.methods}
          onOtherEmail={() => go({ name: "email" })}
          onForgotten={() => go({ name: "forgotten" })}
        />
      )}
      {step.name === "forgotten" && (
        <Forgotten
          {...common}
          code={mailedCode}
          onBack={() => {
            setMailedCode(undefined);
            go({ name: "email" });
          }}
        />
      )}
    </Frame>
  );
}

/**
 * Live region for messages above the sign-in form. The element is always rendered, because screen readers
 * announce only changes of an existing live region.
 */
function NoticeBox({ notice }: { readonly notice: Notice | undefined }) {
  return (
    <output className={css.notice}>
      {notice !== undefined && (
        <Alert
          color={notice.isError ? "red" : "blue"}
          title={notice.title}
          icon={<Icon name={notice.isError ? "alert" : "shield"} />}
        >
          {notice.advice}
        </Alert>
      )}
    </output>
  );
}

interface EmailStepProps {
  /** Email that the user entered before coming back to this step; empty at first. */
  readonly email: string;
  readonly onDiscovered: (email: string, methods: SignInMethods) => void;
}

/**
 * Asks for the email and reads the sign-in methods of its domain. The API does not look up a user, so this step does
 * not disclose whether a user has this email.
 */
function EmailStep({ email, onDiscovered }: EmailStepProps) {
  const { discover } = useCredentials();
  const { wait, waitAfter } = useWait();
  const form = useForm({
    initial: { email },
    send: async (draft) => ({ typed: draft.email, methods: await discover(draft.email) }),
    onDone: ({ typed, methods }) => onDiscovered(typed, methods),
    onFailed: waitAfter,
  });
  return (
    <Form
      form={form}
      renderError={(error) => <SignInError error={error} wait={wait} />}
      buttons={
        <SubmitButton form={form} isReady={wait === 0}>
          Continue
        </SubmitButton>
      }
    >
      <TextInput
        label="Email"
        type="email"
        name="email"
        autoComplete="username"
        autoCapitalize="none"
        spellCheck={false}
        required
        withAsterisk={false}
        maxLength={254}
        // Autofocus is acceptable because the page has no other content that a screen reader would skip.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        {...form.text("email")}
        error={form.errorOf("email") && "Enter an email address such as name@company.com."}
      />
    </Form>
  );
}
