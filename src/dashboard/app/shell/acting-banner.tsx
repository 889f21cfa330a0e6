import { Alert, Button, Group, Text } from "@mantine/core";

import { useSession, useSessionState } from "../session/session.tsx";
import { Icon } from "../ui/icon.tsx";

/** Says for as long as somebody acts as the owner of an account, and ends it. */
export function ActingBanner() {
  const { user, company, origin } = useSession();
  const { comeBack } = useSessionState();
  if (origin === undefined) return null;
  return (
    <Alert
      color="yellow"
      mb="md"
      role="note"
      icon={<Icon name="user" />}
      title={`You act as ${user.name}, owner of ${company.name}`}
    >
      <Group justify="space-between" gap="sm">
        <Text size="sm" className="shrinks">
          What you do here is done in the owner’s name, and the audit log names you both.
        </Text>
        <Button size="xs" onClick={comeBack}>
          End
        </Button>
      </Group>
    </Alert>
  );
}
