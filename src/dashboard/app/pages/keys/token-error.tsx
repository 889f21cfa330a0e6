import { Alert, Button, Group, Text } from "@mantine/core";

import { apiErrorOf } from "../../api/api-error.ts";
import { useSessionState } from "../../session/session.tsx";
import { Icon } from "../../ui/icon.tsx";
import { ErrorNotice } from "../../ui/states.tsx";

/** A 403 means that the role may, but the kind of sign-in may not (contract 4.18). */
export function TokenError({ error }: { readonly error: unknown }) {
  const { signOut } = useSessionState();
  if (apiErrorOf(error)?.status !== 403) return <ErrorNotice error={error} />;
  return (
    <Alert
      role="alert"
      color="yellow"
      variant="light"
      icon={<Icon name="lock" />}
      title="This sign-in may not manage the token"
    >
      <Group justify="space-between">
        <Text size="sm" className="grows">
          You came in by choosing a new password. The token is shown only to somebody who signed in
          with a password or through single sign-on: sign out, then in again.
        </Text>
        <Button variant="default" size="xs" onClick={signOut}>
          Sign out
        </Button>
      </Group>
    </Alert>
  );
}
