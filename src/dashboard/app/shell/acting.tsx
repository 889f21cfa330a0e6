import { Alert, Button, Group, Text } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";

import { useSession, useSessionState } from "../session/session.tsx";
import { Icon } from "../ui/icon.tsx";
import { notify } from "../ui/notify.ts";

/** Banner that names the impersonated user during impersonation, with a button that ends the impersonation. */
export function ActingBanner() {
  const { user, company, origin } = useSession();
  const { comeBack } = useSessionState();
  const before = useRef(origin);
  useEffect(() => {
    // Announces the end of an impersonation. The user ends it with the button, or its token expires.
    if (before.current !== undefined && origin === undefined)
      notify.done(`You are ${user.name} again.`);
    before.current = origin;
  }, [origin, user.name]);
  if (origin === undefined) return null;
  return (
    <Acting as={`${user.name}, owner of ${company.name}`}>
      <Button size="xs" onClick={comeBack}>
        End
      </Button>
    </Acting>
  );
}

interface ActingProps {
  /** Description of the impersonated owner. */
  readonly as: string;
  /** Names what only the owner may see or change. */
  readonly limits?: string;
  readonly children?: ReactNode;
}

/** Notice that everything on the page is done in the name of another user. */
export function Acting({ as, limits, children }: ActingProps) {
  return (
    <Alert
      color="yellow"
      mb="md"
      role="note"
      icon={<Icon name="user" />}
      title={`You are acting as ${as}`}
    >
      <Group justify="space-between" gap="sm">
        <Text size="sm" className="shrinks">
          Your changes are made on behalf of the owner. The audit log records both of you. {limits}
        </Text>
        {children}
      </Group>
    </Alert>
  );
}
