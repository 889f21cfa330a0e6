import { Button, Group, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";

import { useSession } from "../../session/session.tsx";
import { ActiveSwitch, ConfirmedAction } from "../../ui/dialog.tsx";
import { notify } from "../../ui/notify.ts";
import { useTeamActions, type TeamUser } from "./team-data.ts";
import { Dimmed } from "../../ui/layout.tsx";

interface UserProps {
  readonly user: TeamUser;
}

interface TeamActionsProps extends UserProps {
  /**
   * The team's only active owner; undefined if there are several owners. The API rejects changes of the role or
   * state of a last owner.
   */
  readonly lastOwner: TeamUser | undefined;
}

/** Actions that a partner owner may take on a team member, such as a change of the role. */
export function TeamActions({ user, lastOwner }: TeamActionsProps) {
  return (
    <Group gap="xs" justify="flex-end" className="row-actions">
      {user.is_active && !user.has_password && <InviteAgain user={user} />}
      {user.id === lastOwner?.id ? (
        <Dimmed>The only active owner</Dimmed>
      ) : (
        <>
          {user.is_active && <RoleSwitch user={user} />}
          <MemberSwitch user={user} />
        </>
      )}
    </Group>
  );
}

function InviteAgain({ user: { id, name, email } }: UserProps) {
  const { inviteAgain } = useTeamActions();
  const { mutate, isPending } = useMutation({
    mutationFn: () => inviteAgain(id),
    onSuccess: () => notify.done(`${email} is invited again; the link of before has ended.`),
    onError: (error) => notify.failed(error),
  });
  return (
    <Button
      size="xs"
      variant="default"
      loading={isPending}
      onClick={() => mutate()}
      aria-label={`Invite again: ${name}`}
    >
      Invite again
    </Button>
  );
}

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
          This is you: you can change the team no more, and another owner has to undo it.
        </Text>
      )}
      {isOwner
        ? "An admin manages webhooks, keys and accounts, but not the team, and gets no warnings by mail."
        : "An owner can change the team and everybody’s role, yours too, and gets the warnings by mail."}
    </ConfirmedAction>
  );
}

function MemberSwitch({ user: { id, name, email, is_active: isActive } }: UserProps) {
  const { setActive } = useTeamActions();
  const { user: me } = useSession();
  return (
    <ActiveSwitch
      isActive={isActive}
      name={name}
      onSwitch={(next) => setActive(id, next)}
      done={`${name} is ${isActive ? "inactive and signed out" : "active"}.`}
    >
      {isActive && me.id === id && (
        <Text size="sm" fw={600} mb="xs">
          This is you: you are signed out at once and cannot undo it yourself.
        </Text>
      )}
      {isActive
        ? `${email} is signed out everywhere at once and cannot sign in. Tokens and API keys end for good.`
        : `${email} can sign in again. Tokens and API keys of before stay ended.`}
    </ActiveSwitch>
  );
}
