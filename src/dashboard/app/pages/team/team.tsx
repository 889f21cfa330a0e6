import { Button, Text } from "@mantine/core";
import { useState } from "react";

import { roleName } from "../../session/roles.ts";
import { useSession } from "../../session/session.tsx";
import { Icon } from "../../ui/icon.tsx";
import { rowsOf, TableList } from "../../ui/list.tsx";
import { PageHeader } from "../../ui/page-header.tsx";
import type { PagedList } from "../../ui/pages.ts";
import { StateBadge } from "../../ui/state-badge.tsx";
import { Time } from "../../ui/time.tsx";
import { useTeam, type TeamUser } from "./data.ts";
import { InviteForm } from "./invite-form.tsx";
import { TeamActions } from "./team-actions.tsx";

/** The only active owner; undefined if there are several, or if not all of the team is at hand. */
function lastOwnerOf(team: PagedList<TeamUser>): TeamUser | undefined {
  const owners = rowsOf(team).filter((one) => one.is_active && one.role === "partner_owner");
  const isWhole = !team.pages.hasNextPage && !team.slots.includes(undefined);
  return isWhole && owners.length === 1 ? owners[0] : undefined;
}

/** The partner's own people. Its owners say who belongs to it; admins see it. */
export function Page() {
  const [isInviting, setInviting] = useState(false);
  const { user: me } = useSession();
  const isOwner = me.role === "partner_owner";
  const team = useTeam();
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
        list={team}
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
            ...(isOwner && { Change: <TeamActions user={one} lastOwner={lastOwnerOf(team)} /> }),
          }),
        }}
      />
      <InviteForm opened={isInviting} onClose={() => setInviting(false)} />
    </>
  );
}
