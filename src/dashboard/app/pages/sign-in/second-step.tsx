import { LinkButton } from "../../ui/layout.tsx";
import { Button, Stack, Text } from "@mantine/core";
import { useState } from "react";

import type { ApiClient } from "../../api/client.ts";
import { apiWith } from "../../api/connect.ts";
import { factorRequests, type NewFactor } from "../../factors/data.ts";
import { NewApp, NewPasskey } from "../../factors/new-factor.tsx";
import { hasPasskeys } from "../../factors/data.ts";
import { ProofForm } from "../../factors/proof-form.tsx";
import { RecoveryCodes } from "../../factors/recovery-codes.tsx";
import type { Session } from "../../session/identity.ts";
import { type SessionState, useSessionState } from "../../session/session.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Frame } from "./frame.tsx";

interface SecondStepProps {
  /** Email of the user who signs in; empty after an invitation. */
  readonly email: string;
  readonly waiting: NonNullable<SessionState["waiting"]>;
  /** Returns to the first step of the sign-in. `too_late` says that the server has ended the sign-in. */
  readonly onStop: (reason?: "too_late") => void;
}

/**
 * Second step of a sign-in. It asks for a second factor, or sets up the first one if the company requires it.
 */
export function Page({ email, waiting: { challenge, remember }, onStop }: SecondStepProps) {
  const { signIn } = useSessionState();
  const [api] = useState(() =>
    apiWith(challenge.challenge_token, { onUnauthorized: () => onStop("too_late") }),
  );
  const finish = (session: Session) => signIn(session, { remember });
  if (challenge.enrol) return <Enrolment api={api} onDone={finish} onBack={() => onStop()} />;
  return (
    <Frame title="Confirm that it is you">
      {email !== "" && (
        <Text size="sm">
          Signing in as <strong>{email}</strong>
        </Text>
      )}
      <ProofForm
        api={api}
        methods={challenge.methods}
        onProof={async (proof) => finish(await factorRequests(api).finishSignIn(proof))}
      />
      <LinkButton onClick={() => onStop()}>Back to the sign-in</LinkButton>
    </Frame>
  );
}

interface EnrolmentProps {
  readonly api: ApiClient;
  readonly onDone: (session: Session) => void;
  readonly onBack: () => void;
}

/** Sets up the first factor of a user whose company requires one, shows the recovery codes, and signs in. */
function Enrolment({ api, onDone, onBack }: EnrolmentProps) {
  const [kind, setKind] = useState<"totp" | "passkey">();
  const [added, setAdded] = useState<NewFactor>();
  const given = { api, onAdded: setAdded, onCancel: () => setKind(undefined) };
  const session = added?.sign_in ?? undefined;
  if (session !== undefined)
    return (
      <Frame title="Your recovery codes">
        <RecoveryCodes
          codes={added?.recovery_codes ?? []}
          done="I have stored them, continue"
          onDone={() => onDone(session)}
        />
      </Frame>
    );
  return (
    <Frame title="Set up two-step verification">
      {kind === undefined && (
        <Stack>
          <Text size="sm">
            Your company requires a second step after the password:{" "}
            {hasPasskeys() &&
              "a passkey, which uses the fingerprint, face or PIN of your device, or "}
            a code from an authenticator app on your phone.
          </Text>
          {hasPasskeys() && (
            <Choice icon="key" isFirst onClick={() => setKind("passkey")}>
              Passkey
            </Choice>
          )}
          <Choice icon="clock" isFirst={!hasPasskeys()} onClick={() => setKind("totp")}>
            Authenticator app
          </Choice>
          <LinkButton onClick={onBack}>Back to the sign-in</LinkButton>
        </Stack>
      )}
      {kind === "totp" && <NewApp {...given} />}
      {kind === "passkey" && <NewPasskey {...given} />}
    </Frame>
  );
}

interface ChoiceProps {
  readonly icon: "key" | "clock";
  readonly isFirst: boolean;
  readonly onClick: () => void;
  readonly children: string;
}

function Choice({ icon, isFirst, onClick, children }: ChoiceProps) {
  return (
    <Button
      variant={isFirst ? "filled" : "default"}
      leftSection={<Icon name={icon} />}
      // Autofocus is needed because the control that had the focus was removed with the previous step.
      // oxlint-disable-next-line jsx-a11y/no-autofocus
      autoFocus={isFirst}
      onClick={onClick}
    >
      {children}
    </Button>
  );
}
