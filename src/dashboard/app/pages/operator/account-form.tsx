import { NativeSelect, Textarea, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { fieldError, listError } from "../../ui/explain.ts";
import { DialogForm, FormDialog } from "../../ui/form.tsx";
import { notify } from "../../ui/notify.ts";
import { counted } from "../../ui/words.ts";
import { BrandingFields } from "./branding-fields.tsx";
import { brandingBody, NO_BRANDING, storeNames } from "./branding.ts";
import { CompanySelect } from "./company-select.tsx";
import { usePlans } from "./data.ts";

interface Props {
  readonly opened: boolean;
  readonly onClose: () => void;
}

export function AccountForm({ opened, onClose }: Props) {
  return (
    <FormDialog opened={opened} onClose={onClose} title="New account">
      <Fields onClose={onClose} />
    </FormDialog>
  );
}

const SHOWN = ["name", "partner_id", "plan_id", "stores", "primary_color", "logo_url"] as const;

function Fields({ onClose }: { readonly onClose: () => void }) {
  const api = useApi();
  const queries = useQueryClient();
  const { data: plans } = usePlans();
  const [name, setName] = useState("");
  const [partnerId, setPartnerId] = useState<number>();
  const [chosenPlan, setPlan] = useState<number>();
  const [stores, setStores] = useState("");
  const [branding, setBranding] = useState(NO_BRANDING);
  const planId = chosenPlan ?? plans?.data[0]?.id ?? 0;
  return (
    <DialogForm
      action="Create account"
      fields={SHOWN}
      onCancel={onClose}
      send={() =>
        api.call("POST", "/admin/accounts", {
          body: {
            name: name.trim(),
            // Zero is nobody's number: the answer names the field.
            partner_id: partnerId ?? 0,
            plan_id: planId,
            stores: storeNames(stores),
            ...brandingBody(branding),
          },
        })
      }
      onDone={(account) => {
        void queries.invalidateQueries({ queryKey: ["accounts"] });
        notify.done(`${account.name} is created. Give it an owner next, in Users.`);
        onClose();
      }}
    >
      {(error) => (
        <>
          <TextInput
            label="Name"
            required
            data-autofocus
            value={name}
            error={fieldError(error, "name")}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <CompanySelect
            label="Partner"
            types={["partner"]}
            required
            value={partnerId}
            error={fieldError(error, "partner_id") && "Choose a partner."}
            onChange={(partner) => setPartnerId(partner?.id)}
          />
          <NativeSelect
            label="Plan"
            required
            value={planId}
            error={fieldError(error, "plan_id")}
            data={(plans?.data ?? []).map((one) => ({ value: String(one.id), label: one.name }))}
            onChange={(event) => setPlan(Number(event.currentTarget.value))}
          />
          <Textarea
            label="Stores"
            description={`One name per line; none can be added later. ${counted(storeNames(stores).length, "store")} so far.`}
            autosize
            minRows={3}
            maxRows={10}
            value={stores}
            error={listError(error, "stores")}
            onChange={(event) => setStores(event.currentTarget.value)}
          />
          <BrandingFields value={branding} onChange={setBranding} error={error} />
        </>
      )}
    </DialogForm>
  );
}
