import { Group, NativeSelect, Text, TextInput } from "@mantine/core";

import { roleName } from "../../session/roles.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { DialogButton } from "../../ui/dialog.tsx";
import { useOpenedByLink } from "../../ui/filters.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { CellText, PageHeader, RowLink } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { Time } from "../../ui/time.tsx";
import { UserState, userState } from "../users/user-state.tsx";
import {
  type Teammate,
  teamOptions,
  type TeamRole,
  type TeamUser,
  useTeamActions,
} from "./data.ts";
import { ResendInvitation } from "./invited.tsx";

/** Page of the partner's team. Owners can change the team; admins can only read it. */
export function Page() {
  const { user: me } = useSession();
  const isOwner = me.role === "partner_owner";
  const team = useList(teamOptions(useApi()));
  const opened = useOpenedByLink();
  return (
    <>
      <PageHeader
        title="Team"
        description={
          isOwner
            ? "Your colleagues who manage webhooks and keys."
            : "Your colleagues who manage webhooks and keys. Owners invite people and change roles."
        }
        actions={
          isOwner && (
            <DialogButton label="Invite" title="Invite to the team" {...opened}>
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
          columns: (one) => ({
            Name: (
              <CellText
                title={
                  <RowLink href={`/team/${one.id}`}>
                    {one.id === me.id ? `${one.name} (you)` : one.name}
                  </RowLink>
                }
              >
                {one.email}
              </CellText>
            ),
            Role: roleName(one.role),
            State: <MemberState user={one} isOwner={isOwner} />,
            Added: <Time at={one.created_at} />,
          }),
        }}
      />
    </>
  );
}

interface MemberStateProps {
  readonly user: TeamUser;
  /** True if the signed-in user may invite. */
  readonly isOwner: boolean;
}

function MemberState({ user, isOwner }: MemberStateProps) {
  return (
    <Group gap="xs">
      <div>
        <UserState user={user} />
      </div>
      {isOwner && userState(user) === "invited" && (
        <span className="on-top">
          <ResendInvitation user={user} />
        </span>
      )}
    </Group>
  );
}

const ROLES: readonly TeamRole[] = ["partner_admin", "partner_owner"];

const ROLE_MEANING: Readonly<Record<TeamRole, string>> = {
  partner_admin: "Manages webhooks and keys, and assists accounts.",
  partner_owner: "Also manages the team, its access and integrations, and receives alert emails.",
};

const EMPTY_TEAMMATE: Teammate = { name: "", email: "", role: "partner_admin" };

function Invitation({ onClose }: { readonly onClose: () => void }) {
  const { invite } = useTeamActions();
  const form = useForm({
    name: "invitation",
    initial: EMPTY_TEAMMATE,
    send: invite,
    done: ({ email }) => `Invitation sent to ${email}.`,
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
