import { NativeSelect, Textarea } from "@mantine/core";

import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons, Form } from "../../ui/form.tsx";
import { counted } from "../../ui/format.ts";
import { notify } from "../../ui/notify.ts";
import { useForm, type FormState } from "../../ui/use-form.ts";
import { COMPANY_FIELDS, EMPTY_ACCOUNT, storeNames, type AccountDraft } from "./company-drafts.ts";
import { BrandingFields, NameField } from "./company-fields.tsx";
import { CompanySelect } from "./company-select.tsx";
import { useCompanyActions, usePlans } from "./data.ts";

interface AccountFormProps {
  readonly opened: boolean;
  readonly onClose: () => void;
}

export function AccountForm({ opened, onClose }: AccountFormProps) {
  return (
    <Dialog opened={opened} onClose={onClose} title="New account" size="lg">
      <NewAccount onClose={onClose} />
    </Dialog>
  );
}

function NewAccount({ onClose }: { readonly onClose: () => void }) {
  const { createAccount } = useCompanyActions();
  const plans = usePlans().data ?? [];
  const form = useForm({
    name: "new account",
    initial: { ...EMPTY_ACCOUNT, planId: plans[0]?.id ?? 0 },
    names: { ...COMPANY_FIELDS, partnerId: "partner_id", planId: "plan_id", stores: "stores" },
    send: createAccount,
    onDone: ({ name }) => {
      notify.done(`${name} is created. Give it an owner next, in Users.`);
      onClose();
    },
  });
  return (
    <Form
      form={form}
      buttons={<DialogButtons form={form} action="Create account" onCancel={onClose} />}
    >
      <NameField form={form} />
      <CompanySelect
        label="Partner"
        types={["partner"]}
        required
        value={form.draft.partnerId}
        error={form.errorOf("partnerId") && "Choose a partner."}
        onChange={(partner) => form.edit({ partnerId: partner?.id })}
      />
      <NativeSelect
        label="Plan"
        required
        value={form.draft.planId}
        error={form.errorOf("planId")}
        data={plans.map((one) => ({ value: String(one.id), label: one.name }))}
        onChange={(event) => form.edit({ planId: Number(event.currentTarget.value) })}
      />
      <StoresField form={form} />
      <BrandingFields form={form} />
    </Form>
  );
}

function StoresField({ form }: { readonly form: FormState<AccountDraft> }) {
  const { length } = storeNames(form.draft.stores);
  return (
    <Textarea
      label="Stores"
      description={`One name per line; none can be added later. ${counted(length, "store")} so far.`}
      autosize
      minRows={3}
      maxRows={10}
      {...form.text("stores")}
    />
  );
}
