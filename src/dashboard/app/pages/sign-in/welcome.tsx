import { Alert, Button, Text } from "@mantine/core";
import { useState } from "react";

import { apiErrorOf } from "../../api/client.ts";
import { useCredentials } from "../../session/credentials.ts";
import type { Invitation } from "../../session/links.ts";
import { useSessionState } from "../../session/session.tsx";
import { Icon } from "../../ui/icon.tsx";
import { LinkButton } from "../../ui/layout.tsx";
import { NewPassword } from "../../ui/new-password.tsx";
import { Frame, Remember } from "./frame.tsx";

interface WelcomeProps {
  readonly invitation: Invitation;
  readonly onDone: () => void;
}

/** Page on which an invited user sets their first password. */
export function Welcome({ invitation: { code, email }, onDone }: WelcomeProps) {
  const { signInWith } = useSessionState();
  const { acceptInvitation } = useCredentials();
  const [remember, setRemember] = useState(true);
  const [isRefused, setRefused] = useState(false);
  const accept = async (password: string) => {
    try {
      await signInWith(acceptInvitation(code, password), { remember });
      onDone();
    } catch (error) {
      if (apiErrorOf(error)?.code !== "invalid_code") throw error;
      setRefused(true);
    }
  };
  if (isRefused)
    return (
      <Frame title="Welcome">
        <Alert
          color="red"
          role="alert"
          icon={<Icon name="alert" />}
          title="This invitation cannot be used any more"
        >
          It has expired, was already used, or access for your company is turned off. Ask the person
          who invited you for a new one. If you have set a password before, sign in with it.
        </Alert>
        <Button
          onClick={onDone}
          // Autofocus is needed because the control that had the focus was removed with the form.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus
        >
          Go to the sign-in
        </Button>
      </Frame>
    );
  return (
    <Frame title="Welcome">
      <Text size="sm">
        Choose a password
        {email !== "" && (
          <>
            {" "}
            for <strong>{email}</strong>
          </>
        )}{" "}
        to accept the invitation and sign in.
      </Text>
      <NewPassword email={email} action="Set the password and sign in" onPassword={accept}>
        <Remember value={remember} onChange={setRemember} />
      </NewPassword>
      <LinkButton onClick={onDone}>Go to the sign-in</LinkButton>
    </Frame>
  );
}
