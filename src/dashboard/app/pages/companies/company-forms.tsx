import { ColorInput, NativeSelect, Switch, Textarea, TextInput } from "@mantine/core";
import "@mantine/core/styles/ColorInput.css";
import "@mantine/core/styles/ColorPicker.css";
import "@mantine/core/styles/ColorSwatch.css";

import { useQuery } from "@tanstack/react-query";

import { useApi } from "../../session/session.tsx";
import { Form, type FormState, useForm } from "../../ui/form.tsx";
import { counted } from "../../ui/format.ts";
import {
  type AccountDraft,
  type CompanyDraft,
  EMPTY_ACCOUNT,
  EMPTY_PARTNER,
  type PartnerDraft,
  storeNames,
} from "./company-drafts.ts";
import { CompanySelect } from "./company-select.tsx";
import { plansOptions, useCompanyActions } from "./data.ts";

function NameField({ form }: { readonly form: FormState<CompanyDraft> }) {
  return <TextInput label="Name" required data-autofocus {...form.text("name")} />;
}

/** Form fields for a company's branding, such as its logo and colour. */
function BrandingFields({ form }: { readonly form: FormState<CompanyDraft> }) {
  return (
    <>
      <ColorInput
        label="Colour"
        description="Optional. Used for buttons and links."
        placeholder="#1f6feb"
        format="hex"
        withEyeDropper={false}
        value={form.draft.primary_color}
        error={form.errorOf("primary_color")}
        onChange={(color) => form.edit({ primary_color: color })}
      />
      <TextInput
        label="Logo"
        description="Optional. An https URL, shown in the header."
        type="url"
        placeholder="https://"
        {...form.text("logo_url")}
      />
    </>
  );
}

interface NewCompanyProps {
  readonly onClose: () => void;
}

export function NewAccount({ onClose }: NewCompanyProps) {
  const { createAccount } = useCompanyActions();
  const plans = useQuery(plansOptions(useApi())).data ?? [];
  // Selects the first plan by default. The plans may load after the form has opened, so the default cannot be
  // an initial value.
  const withPlan = (draft: AccountDraft) => ({
    ...draft,
    plan_id: draft.plan_id || plans[0]?.id || 0,
  });
  const form = useForm({
    name: "new account",
    initial: EMPTY_ACCOUNT,
    send: (draft) => createAccount(withPlan(draft)),
    done: ({ name }) => `${name} is created. Give it an owner next, in Users.`,
    onDone: onClose,
  });
  return (
    <Form form={form} action="Create account" onCancel={onClose}>
      <NameField form={form} />
      <CompanySelect
        label="Partner"
        types={["partner"]}
        required
        value={form.draft.partner_id}
        error={form.errorOf("partner_id") && "Choose a partner."}
        onChange={(partner) => form.edit({ partner_id: partner?.id })}
      />
      <NativeSelect
        label="Plan"
        required
        value={withPlan(form.draft).plan_id}
        error={form.errorOf("plan_id")}
        data={plans.map((one) => ({ value: String(one.id), label: one.name }))}
        onChange={(event) => form.edit({ plan_id: Number(event.currentTarget.value) })}
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
      description={`One name per line. You cannot add stores later. ${counted(length, "store")} so far.`}
      autosize
      minRows={3}
      maxRows={10}
      {...form.text("stores")}
    />
  );
}

export function NewPartner({ onClose }: NewCompanyProps) {
  const { createPartner } = useCompanyActions();
  const form = useForm({
    name: "new partner",
    initial: EMPTY_PARTNER,
    names: { brand_name: "white_label.brand_name", domain: "white_label.domain" },
    send: createPartner,
    done: ({ name }) => `${name} is created. Give it an owner next, in Users.`,
    onDone: onClose,
  });
  return (
    <Form form={form} action="Create partner" onCancel={onClose}>
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
        description="Users of the partner and its accounts see this name instead of ReviewRelay."
        checked={isWhiteLabel}
        onChange={(event) => form.edit({ isWhiteLabel: event.currentTarget.checked })}
      />
      {isWhiteLabel && (
        <>
          <TextInput label="Brand name" required {...form.text("brand_name")} />
          <TextInput
            label="Domain"
            description="For example reviews.partner.example. Must be unique."
            required
            {...form.text("domain")}
          />
        </>
      )}
    </>
  );
}
