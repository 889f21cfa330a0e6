import { Group, NativeSelect, Text, TextInput } from "@mantine/core";

import { roleName } from "../../session/identity.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { ActionButton, ConfirmedAction, DialogButton, useRowDialog } from "../../ui/dialog.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { CellText, Dimmed, PageHeader } from "../../ui/layout.tsx";
import { rowsOf, TableList } from "../../ui/list.tsx";
import { type PagedList, useList } from "../../ui/pages.ts";
import { Time } from "../../ui/time.tsx";
import { Identities, IdentitiesButton } from "../users/identities.tsx";
import { UserSwitch } from "../users/user-switch.tsx";
import {
  type Teammate,
  teamOptions,
  type TeamRole,
  type TeamUser,
  useTeamActions,
} from "./data.ts";

/**
 * Returns the only active owner of the team. Returns undefined if the team has several owners, or if not all
 * pages of the team are loaded.
 */
function lastOwnerOf(team: PagedList<TeamUser>): TeamUser | undefined {
  const owners = rowsOf(team).filter((one) => one.is_active && one.role === "partner_owner");
  const isWhole = !team.pages.hasNextPage && !team.slots.includes(undefined);
  return isWhole && owners.length === 1 ? owners[0] : undefined;
}

/** Page of the partner's team. Owners can change the team; admins can only read it. */
export function Page() {
  const { user: me } = useSession();
  const isOwner = me.role === "partner_owner";
  const team = useList(teamOptions(useApi()));
  const identities = useRowDialog<TeamUser>();
  return (
    <>
      <PageHeader
        title="Team"
        description={
          isOwner
            ? "Users who manage webhooks, keys and accounts."
            : "Users who manage webhooks, keys and accounts. Owners invite users and change roles."
        }
        actions={
          isOwner && (
            <DialogButton label="Invite" title="Invite to the team">
              {(close) => <Invitation onClose={close} />}
            </DialogButton>
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
              <CellText title={one.id === me.id ? `${one.name} (you)` : one.name}>
                {one.email}
              </CellText>
            ),
            Role: roleName(one.role),
            State: (
              <>
                <StateBadge state={one.is_active ? "active" : "inactive"} />
                {one.is_active && !one.has_password && <Dimmed>No password set</Dimmed>}
              </>
            ),
            Since: <Time at={one.created_at} />,
            ...(isOwner && {
              Change: (
                <TeamActions
                  user={one}
                  lastOwner={lastOwnerOf(team)}
                  onIdentities={() => identities.show(one)}
                />
              ),
            }),
          }),
        }}
      />
      <Identities area="partner" {...identities.dialog} />
    </>
  );
}

const ROLES: readonly TeamRole[] = ["partner_admin", "partner_owner"];

const ROLE_MEANING: Readonly<Record<TeamRole, string>> = {
  partner_admin: "Manages webhooks, keys and accounts.",
  partner_owner: "Also manages the team and receives alert emails.",
};

const EMPTY_TEAMMATE: Teammate = { name: "", email: "", role: "partner_admin" };

function Invitation({ onClose }: { readonly onClose: () => void }) {
  const { invite } = useTeamActions();
  const form = useForm({
    name: "invitation",
    initial: EMPTY_TEAMMATE,
    send: invite,
    done: ({ email }) => `${email} is invited.`,
    onDone: onClose,
  });
  const { role } = form.draft;
  return (
    <Form form={form} action="Invite" onCancel={onClose}>
      <Text size="sm">
        We email a link to set the first password or to sign in with your identity provider. It is
        valid for seven days.
      </Text>
      <TextInput label="Name" required data-autofocus {...form.text("name")} />
      <TextInput label="Email" type="email" required autoComplete="off" {...form.text("email")} />
      <NativeSelect
        label="Role"
        description={ROLE_MEANING[role]}
        value={role}
        error={form.errorOf("role")}
        data={ROLES.map((one) => ({ value: one, label: roleName(one) }))}
        onChange={(event) => {
          const next = ROLES.find((one) => one === event.currentTarget.value);
          if (next !== undefined) form.edit({ role: next });
        }}
      />
    </Form>
  );
}

interface UserProps {
  readonly user: TeamUser;
}

interface TeamActionsProps extends UserProps {
  /**
   * The team's only active owner; undefined if there are several owners. The API rejects changes of the role or
   * state of a last owner.
   */
  readonly lastOwner: TeamUser | undefined;
  readonly onIdentities: () => void;
}

/** Actions that a partner owner may take on a team member, such as a change of the role. */
function TeamActions({ user, lastOwner, onIdentities }: TeamActionsProps) {
  const { inviteAgain, setActive } = useTeamActions();
  return (
    <Group gap="xs" justify="flex-end" className="row-actions">
      {user.is_active && !user.has_password && (
        <ActionButton
          label="Invite again"
          fullLabel={`Invite again: ${user.name}`}
          onClick={() => inviteAgain(user.id)}
          done={`${user.email} is invited again. The previous link no longer works.`}
        />
      )}
      <IdentitiesButton user={user} onClick={onIdentities} />
      {user.id === lastOwner?.id ? (
        <Dimmed>The only active owner</Dimmed>
      ) : (
        <>
          {user.is_active && <RoleSwitch user={user} />}
          <UserSwitch user={user} onSwitch={(next) => setActive(user.id, next)} />
        </>
      )}
    </Group>
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
          This is your own account. You will no longer be able to manage the team; only another
          owner can undo this.
        </Text>
      )}
      {isOwner
        ? "Admins manage webhooks, keys and accounts. They cannot manage the team and receive no alert emails."
        : "Owners can manage the team, change every role including yours, and receive alert emails."}
    </ConfirmedAction>
  );
}
