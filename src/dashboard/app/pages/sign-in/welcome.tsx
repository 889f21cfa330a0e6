import { LinkButton } from "../../ui/layout.tsx";
import { Text } from "@mantine/core";
import { useState } from "react";

import { useCredentials } from "../../session/credentials.ts";
import type { Invitation } from "../../session/links.ts";
import { useSessionState } from "../../session/session.tsx";
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
  const accept = async (password: string) => {
    await signInWith(acceptInvitation(code, password), { remember });
    onDone();
  };
  return (
    <Frame title="Welcome">
      <Text size="sm">
        Your account{email !== "" && <strong> {email}</strong>} is ready. Choose a password to sign
        in.
      </Text>
      <NewPassword email={email} action="Set the password and sign in" onPassword={accept}>
        <Remember value={remember} onChange={setRemember} />
      </NewPassword>
      <LinkButton onClick={onDone}>Go to the sign-in</LinkButton>
    </Frame>
  );
}
