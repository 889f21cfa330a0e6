import { Button, Text } from "@mantine/core";
import { useState } from "react";

import { roleName } from "../../session/roles.ts";
import { useSession } from "../../session/session.tsx";
import { Icon } from "../../ui/icon.tsx";
import { TableList } from "../../ui/list.tsx";
import { PageHeader } from "../../ui/page-header.tsx";
import { StateBadge } from "../../ui/state-badge.tsx";
import { Time } from "../../ui/time.tsx";
import { useTeam } from "./data.ts";
import { InviteForm } from "./invite-form.tsx";
import { TeamActions } from "./team-actions.tsx";

/** The partner's own people. Its owners say who belongs to it; admins see it. */
export function Page() {
  const [isInviting, setInviting] = useState(false);
  const { user: me } = useSession();
  const isOwner = me.role === "partner_owner";
  return (
    <>
      <PageHeader
        title="Team"
        description={
          isOwner
            ? "Everybody who manages webhooks, keys and accounts with you."
            : "Everybody who manages webhooks, keys and accounts with you. An owner invites people and changes roles."
        }
        actions={
          isOwner && (
            <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setInviting(true)}>
              Invite
            </Button>
          )
        }
      />
      <TableList
        list={useTeam()}
        noun={["person", "people"]}
        table={{
          caption: "The team, newest first",
          end: "Change",
          columns: (one) => ({
            Name: (
              <>
                <Text fw={600} size="sm">
                  {one.name}
                  {one.id === me.id && " (you)"}
                </Text>
                <Text size="xs" c="dimmed">
                  {one.email}
                </Text>
              </>
            ),
            Role: roleName(one.role),
            State: (
              <>
                <StateBadge state={one.is_active ? "active" : "inactive"} />
                {one.is_active && !one.has_password && (
                  <Text size="xs" c="dimmed">
                    Has set no password
                  </Text>
                )}
              </>
            ),
            Since: <Time at={one.created_at} />,
            ...(isOwner && { Change: <TeamActions user={one} /> }),
          }),
        }}
      />
      <InviteForm opened={isInviting} onClose={() => setInviting(false)} />
    </>
  );
}
