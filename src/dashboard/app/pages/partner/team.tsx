import { Button, NativeSelect, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { roleName } from "../../session/identity.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { CellText, Dimmed, PageHeader } from "../../ui/layout.tsx";
import { rowsOf, TableList } from "../../ui/list.tsx";
import { notify } from "../../ui/notify.ts";
import { type PagedList, useList } from "../../ui/pages.ts";
import { Time } from "../../ui/time.tsx";
import {
  type Teammate,
  type TeamRole,
  teamOptions,
  type TeamUser,
  useTeamActions,
} from "./team-data.ts";
import { TeamActions } from "./team-actions.tsx";

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
  const [isInviting, setInviting] = useState(false);
  const stop = () => setInviting(false);
  const { user: me } = useSession();
  const isOwner = me.role === "partner_owner";
  const team = useList(teamOptions(useApi()));
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
              <CellText title={one.id === me.id ? `${one.name} (you)` : one.name}>
                {one.email}
              </CellText>
            ),
            Role: roleName(one.role),
            State: (
              <>
                <StateBadge state={one.is_active ? "active" : "inactive"} />
                {one.is_active && !one.has_password && <Dimmed>Has set no password</Dimmed>}
              </>
            ),
            Since: <Time at={one.created_at} />,
            ...(isOwner && { Change: <TeamActions user={one} lastOwner={lastOwnerOf(team)} /> }),
          }),
        }}
      />
      <Dialog opened={isInviting} onClose={stop} title="Invite to the team">
        <Invitation onClose={stop} />
      </Dialog>
    </>
  );
}

const ROLES: readonly TeamRole[] = ["partner_admin", "partner_owner"];

const MEANING: Readonly<Record<TeamRole, string>> = {
  partner_admin: "Manages webhooks, keys and accounts.",
  partner_owner: "The same, and says who is in the team. Gets the warnings by mail.",
};

const EMPTY: Teammate = { name: "", email: "", role: "partner_admin" };

function Invitation({ onClose }: { readonly onClose: () => void }) {
  const { invite } = useTeamActions();
  const form = useForm({
    name: "invitation",
    initial: EMPTY,
    names: { name: "name", email: "email", role: "role" },
    send: invite,
    onDone: ({ email }) => {
      notify.done(`${email} is invited.`);
      onClose();
    },
  });
  const { role } = form.draft;
  return (
    <Form form={form} action="Invite" onCancel={onClose}>
      <Text size="sm">
        We mail a link that sets the first password, or that leads to your identity provider. It
        works for seven days.
      </Text>
      <TextInput label="Name" required data-autofocus {...form.text("name")} />
      <TextInput label="Email" type="email" required autoComplete="off" {...form.text("email")} />
      <NativeSelect
        label="Role"
        description={MEANING[role]}
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
