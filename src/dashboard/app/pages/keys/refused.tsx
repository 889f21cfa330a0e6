import { Alert, Button, Group, Text } from "@mantine/core";

import { useSessionState } from "../../session.tsx";
import { problemOf } from "../../ui/explain.ts";
import { Icon } from "../../ui/icon.tsx";
import { ErrorNotice } from "../../ui/states.tsx";

/** The role may; the kind of sign-in may not (decisions.md 2, dashboard personal access token). */
export function Refused({ error }: { readonly error: unknown }) {
  const { signOut } = useSessionState();
  if (problemOf(error)?.status !== 403) return <ErrorNotice error={error} />;
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
