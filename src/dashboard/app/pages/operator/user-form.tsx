import { MultiSelect, NativeSelect, PasswordInput, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useApi, useSession } from "../../session.tsx";
import { fieldError, listError } from "../../ui/explain.ts";
import { DialogForm, FormDialog } from "../../ui/form.tsx";
import { notify } from "../../ui/notify.ts";
import { roleName } from "../../ui/words.ts";
import { CompanySelect } from "./company-select.tsx";
import { COMPANY_OF, ROLE_MEANING, ROLES } from "./roles.ts";
import { EMPTY_USER, userBody, withRole, type UserDraft } from "./user-draft.ts";

interface Props {
  readonly opened: boolean;
  readonly onClose: () => void;
}

export function UserForm({ opened, onClose }: Props) {
  return (
    <FormDialog opened={opened} onClose={onClose} title="New user">
      <Fields onClose={onClose} />
    </FormDialog>
  );
}

const SHOWN = ["name", "email", "role", "company_id", "store_ids", "password"] as const;

function Fields({ onClose }: { readonly onClose: () => void }) {
  const api = useApi();
  const queries = useQueryClient();
  const { company: platform } = useSession();
  const [draft, setDraft] = useState(EMPTY_USER);
  return (
    <DialogForm
      action="Create user"
      fields={SHOWN}
      onCancel={onClose}
      send={() => api.call("POST", "/admin/users", { body: userBody(draft, platform.id) })}
      onDone={(user) => {
        void queries.invalidateQueries({ queryKey: ["users"] });
        notify.done(`${user.name} is created.`);
        onClose();
      }}
    >
      {(error) => (
        <>
          <TextInput
            label="Name"
            required
            data-autofocus
            value={draft.name}
            error={fieldError(error, "name")}
            onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}
          />
          <TextInput
            label="Email"
            type="email"
            required
            autoComplete="off"
            value={draft.email}
            error={fieldError(error, "email")}
            onChange={(event) => setDraft({ ...draft, email: event.currentTarget.value })}
          />
          <Place draft={draft} onChange={setDraft} error={error} />
          <PasswordInput
            label="Password"
            description="Leave it out for somebody who signs in with the company's identity provider, or who sets one by email."
            autoComplete="new-password"
            value={draft.password}
            error={fieldError(error, "password")}
            onChange={(event) => setDraft({ ...draft, password: event.currentTarget.value })}
          />
        </>
      )}
    </DialogForm>
  );
}

interface PlaceProps {
  readonly draft: UserDraft;
  readonly onChange: (draft: UserDraft) => void;
  readonly error: unknown;
}

/** The role, and where the user has it. */
function Place({ draft, onChange, error }: PlaceProps) {
  const { role, company } = draft;
  const type = COMPANY_OF[role];
  return (
    <>
      <NativeSelect
        label="Role"
        description={ROLE_MEANING[role]}
        value={role}
        error={fieldError(error, "role")}
        data={ROLES.map((one) => ({ value: one, label: roleName(one) }))}
        onChange={(event) => {
          const next = ROLES.find((one) => one === event.currentTarget.value);
          if (next !== undefined) onChange(withRole(draft, next));
        }}
      />
      {type !== "platform" && (
        <CompanySelect
          key={type}
          label={type === "partner" ? "Partner" : "Account"}
          types={[type]}
          required
          value={company?.id}
          error={fieldError(error, "company_id") && `Choose the ${type}.`}
          onChange={(next) => onChange({ ...draft, company: next, storeIds: [] })}
        />
      )}
      {role === "location_user" && (
        <MultiSelect
          label="Stores"
          description="The user sees the reviews of these, and of no other."
          placeholder={company === undefined ? "Choose the account first" : ""}
          disabled={company === undefined}
          required
          searchable
          data={company?.stores.map(({ id, name }) => ({ value: String(id), label: name })) ?? []}
          value={[...draft.storeIds]}
          error={listError(error, "store_ids")}
          onChange={(storeIds) => onChange({ ...draft, storeIds })}
        />
      )}
    </>
  );
}
