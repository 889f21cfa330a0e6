import { NativeSelect, Text, TextInput } from "@mantine/core";

import { roleName } from "../../session/roles.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons, Form } from "../../ui/form.tsx";
import { notify } from "../../ui/notify.ts";
import { useForm } from "../../ui/use-form.ts";
import { useTeamActions, type Teammate, type TeamRole } from "./data.ts";

const ROLES: readonly TeamRole[] = ["partner_admin", "partner_owner"];

const MEANING: Readonly<Record<TeamRole, string>> = {
  partner_admin: "Manages webhooks, keys and accounts.",
  partner_owner: "The same, and says who is in the team. Gets the warnings by mail.",
};

const EMPTY: Teammate = { name: "", email: "", role: "partner_admin" };

interface InviteFormProps {
  readonly opened: boolean;
  readonly onClose: () => void;
}

export function InviteForm({ opened, onClose }: InviteFormProps) {
  return (
    <Dialog opened={opened} onClose={onClose} title="Invite to the team">
      <Invitation onClose={onClose} />
    </Dialog>
  );
}

function Invitation({ onClose }: Pick<InviteFormProps, "onClose">) {
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
    <Form form={form} buttons={<DialogButtons form={form} action="Invite" onCancel={onClose} />}>
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
