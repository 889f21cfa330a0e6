import { Alert, Button, Group, Text } from "@mantine/core";
import { useEffect, useRef } from "react";

import { useSession, useSessionState } from "../session/session.tsx";
import { Icon } from "../ui/icon.tsx";
import { notify } from "../ui/notify.ts";

/** Says for as long as somebody acts as the owner of an account, and ends it. */
export function ActingBanner() {
  const { user, company, origin } = useSession();
  const { comeBack } = useSessionState();
  const before = useRef(origin);
  useEffect(() => {
    // It ends by the button, and by itself.
    if (before.current !== undefined && origin === undefined)
      notify.done(`You are ${user.name} again.`);
    before.current = origin;
  }, [origin, user.name]);
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
