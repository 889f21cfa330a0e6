import { Alert, Anchor, Text } from "@mantine/core";
import { useState } from "react";

import type { SignInMethods } from "../../session/credentials.ts";
import { useSessionState } from "../../session/session.tsx";
import { Icon } from "../../ui/icon.tsx";
import { EmailStep } from "./email-step.tsx";
import { Forgotten } from "./forgotten.tsx";
import { Frame } from "./frame.tsx";
import { MethodStep } from "./method-step.tsx";
import { useNotice, type Notice } from "./notice.ts";

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
  /** Somebody is about to give a password, or to go to an identity provider. */
  readonly onMethod: () => void;
}

/**
 * Is shown at every path to whoever is not signed in. The address stays, so that they arrive where they wanted to go.
 */
export function SignIn({ onMethod }: SignInProps) {
  const { arrival } = useSessionState();
  const trip = "trip" in arrival ? arrival.trip : undefined;
  const [email, setEmail] = useState(trip?.email ?? "");
  const [remember, setRemember] = useState(trip?.remember ?? true);
  const [step, setStep] = useState<Step>({ name: "email" });
  const { notice, isArriving, dismiss } = useNotice();
  const go = (next: Step) => {
    dismiss();
    setStep(next);
  };
  const common = { email, remember, onRemember: setRemember };
  return (
    <Frame
      title={isArriving ? "Signing you in…" : TITLES[step.name]}
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
      {!isArriving && step.name === "email" && (
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
      {step.name === "forgotten" && <Forgotten {...common} onBack={() => go({ name: "email" })} />}
    </Frame>
  );
}

/** Is in the page from the beginning, so that screen readers say what comes later. */
function NoticeBox({ notice }: { readonly notice: Notice | undefined }) {
  return (
    <output className="notice">
      {notice !== undefined && (
        <Alert
          variant="light"
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
