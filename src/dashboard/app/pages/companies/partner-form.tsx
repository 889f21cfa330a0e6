import { Switch, TextInput } from "@mantine/core";

import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons, Form } from "../../ui/form.tsx";
import { notify } from "../../ui/notify.ts";
import { useForm, type FormState } from "../../ui/use-form.ts";
import { COMPANY_FIELDS, EMPTY_PARTNER, type PartnerDraft } from "./company-drafts.ts";
import { BrandingFields, NameField } from "./company-fields.tsx";
import { useCompanyActions } from "./data.ts";

interface PartnerFormProps {
  readonly opened: boolean;
  readonly onClose: () => void;
}

export function PartnerForm({ opened, onClose }: PartnerFormProps) {
  return (
    <Dialog opened={opened} onClose={onClose} title="New partner" size="lg">
      <NewPartner onClose={onClose} />
    </Dialog>
  );
}

function NewPartner({ onClose }: { readonly onClose: () => void }) {
  const { createPartner } = useCompanyActions();
  const form = useForm({
    name: "new partner",
    initial: EMPTY_PARTNER,
    names: {
      ...COMPANY_FIELDS,
      brandName: "white_label.brand_name",
      domain: "white_label.domain",
    },
    send: createPartner,
    onDone: ({ name }) => {
      notify.done(`${name} is created. Give it an owner next, in Users.`);
      onClose();
    },
  });
  return (
    <Form
      form={form}
      buttons={<DialogButtons form={form} action="Create partner" onCancel={onClose} />}
    >
      <NameField form={form} />
      <BrandingFields form={form} />
      <WhiteLabelFields form={form} />
    </Form>
  );
}

function WhiteLabelFields({ form }: { readonly form: FormState<PartnerDraft> }) {
  const { isWhiteLabel } = form.draft;
  return (
    <>
      <Switch
        label="White label"
        description="The partner's people and accounts see its own name instead of ours."
        checked={isWhiteLabel}
        onChange={(event) => form.edit({ isWhiteLabel: event.currentTarget.checked })}
      />
      {isWhiteLabel && (
        <>
          <TextInput label="Brand name" required {...form.text("brandName")} />
          <TextInput
            label="Domain"
            description="Such as reviews.partner.example; no two partners share one."
            required
            {...form.text("domain")}
          />
        </>
      )}
    </>
  );
}
