import { Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "wouter";

import { roleName } from "../../session/roles.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { CopyableId } from "../../ui/copy.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { idOf } from "../../ui/format.ts";
import { Facts, PageHeader, Section } from "../../ui/layout.tsx";
import { Loaded, NotFound } from "../../ui/states.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { MemberAccess } from "../access/member.tsx";
import { RecentActivity } from "../audit/recent.tsx";
import { userState } from "../users/user-state.tsx";
import { UserSwitch } from "../users/user-switch.tsx";
import { type TeamUser, useTeamActions, wholeTeamOptions } from "../partner/data.ts";
import { ResendInvitation } from "../partner/invited.tsx";

const BACK = { href: "/team", title: "Team" };

/** Page of one member of the partner's team. Owners change the role, the state and the access of the member. */
export function Page() {
  const id = idOf(useParams()["id"]);
  const team = useQuery(wholeTeamOptions(useApi()));
  if (team.data === undefined)
    return (
      <>
        <PageHeader title="Team member" back={BACK} />
        <Loaded query={team}>{() => null}</Loaded>
      </>
    );
  const user = team.data.find((one) => one.id === id);
  if (user === undefined) return <NotFound />;
  const owners = team.data.filter((one) => one.is_active && one.role === "partner_owner");
  return <MemberPage user={user} isLastOwner={owners.length === 1 && owners[0]?.id === id} />;
}

interface UserProps {
  readonly user: TeamUser;
}

interface MemberProps extends UserProps {
  /** True for the only active owner, whose role and state the API does not let change. */
  readonly isLastOwner: boolean;
}

function MemberPage({ user, isLastOwner }: MemberProps) {
  const { user: me } = useSession();
  const isOwner = me.role === "partner_owner";
  const { id, name, role, is_active: isActive } = user;
  return (
    <>
      <PageHeader
        title={id === me.id ? `${name} (you)` : name}
        back={BACK}
        description={
          <Group gap="xs">
            <StateBadge state={userState(user)} />
            <span>{roleName(role)}</span>
          </Group>
        }
        actions={isOwner && isActive && !user.has_password && <ResendInvitation user={user} />}
      />
      <Stack gap="lg">
        <Role user={user} isLastOwner={isLastOwner} />
        <MemberAccess user={user} isOwner={isOwner} />
        <RecentActivity about="user" id={id} />
      </Stack>
    </>
  );
}

/** Section with the role of a member, what the role may do, and the details of the member. */
function Role({ user, isLastOwner }: MemberProps) {
  const { setActive } = useTeamActions();
  const { user: me } = useSession();
  const meaning =
    user.role === "partner_owner"
      ? "Owners manage webhooks, keys, the team and integrations, and receive alert emails."
      : "Admins manage webhooks and keys, but not the team.";
  return (
    <Section
      title={roleName(user.role)}
      description={
        isLastOwner
          ? `${meaning} This is the only active owner. Make somebody else an owner before you change this.`
          : meaning
      }
      actions={
        me.role === "partner_owner" &&
        !isLastOwner && (
          <Group gap="xs">
            {user.is_active && <RoleSwitch user={user} />}
            <UserSwitch user={user} onSwitch={(next) => setActive(user.id, next)} />
          </Group>
        )
      }
    >
      <Facts
        facts={[
          ["Email", user.email],
          ["Member since", <ExactTime key="since" at={user.created_at} />],
          ["ID", <CopyableId key="id" id={String(user.id)} label="Copy the user ID" />],
        ]}
      />
    </Section>
  );
}

/** Button that makes an admin an owner, or an owner an admin. */
function RoleSwitch({ user: { id, name, role } }: UserProps) {
  const { setRole } = useTeamActions();
  const { user: me } = useSession();
  const isOwner = role === "partner_owner";
  const words = isOwner ? "Make admin" : "Make owner";
  return (
    <ConfirmedAction
      label={words}
      button={{ size: "xs", "aria-label": `${words}: ${name}` }}
      title={isOwner ? `Make ${name} an admin?` : `Make ${name} an owner?`}
      action={words}
      onConfirm={() => setRole(id, isOwner ? "partner_admin" : "partner_owner")}
      done={`${name} is ${isOwner ? "an admin" : "an owner"}.`}
    >
      {me.id === id && (
        <Text size="sm" fw={600} mb="xs">
          This is your own account. You will no longer be able to manage the team; only another
          owner can undo this.
        </Text>
      )}
      {isOwner
        ? "Admins manage webhooks and keys. They cannot manage the team and receive no alert emails."
        : "Owners manage the team and change every role including yours, and receive alert emails."}
    </ConfirmedAction>
  );
}
