import { ColorInput, ColorSwatch, NativeSelect, Switch, Textarea, TextInput } from "@mantine/core";
import "@mantine/core/styles/ColorInput.css";
import "@mantine/core/styles/ColorPicker.css";
import "@mantine/core/styles/ColorSwatch.css";

import { useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";

import { useApi } from "../../session/session.tsx";
import { Form, type FormState, useForm } from "../../ui/form.tsx";
import { counted } from "../../ui/format.ts";
import {
  type AccountDraft,
  accountDraft,
  type CompanyDraft,
  EMPTY_ACCOUNT,
  EMPTY_PARTNER,
  type PartnerDraft,
  partnerDraft,
  storeNames,
} from "./company-drafts.ts";
import { CompanySelect } from "./company-select.tsx";
import {
  type Account,
  type Partner,
  partnerOptions,
  plansOptions,
  useCompanyActions,
} from "./data.ts";

function NameField({ form }: { readonly form: FormState<CompanyDraft> }) {
  return <TextInput label="Name" required data-autofocus {...form.text("name")} />;
}

/** Color that the API gives to a partner that is created without one. */
const DEFAULT_COLOR = "#1f6feb";

interface BrandingFieldsProps {
  readonly form: FormState<CompanyDraft>;
  /** True if an empty field stands for the color of the company's partner. */
  readonly isInherited?: boolean;
  /**
   * Color for which an empty field stands. An existing company keeps its color. Undefined as long as the partner of a
   * new account is not known.
   */
  readonly ifEmpty?: string | undefined;
}

/** Form fields for a company's branding, such as its logo and colour. */
function BrandingFields({ form, isInherited = false, ifEmpty }: BrandingFieldsProps) {
  const shown = form.draft.primary_color || ifEmpty;
  return (
    <>
      <ColorInput
        label="Color"
        description={`Optional. Used for buttons and links.${isInherited ? " Leave it empty to take the partner's color." : ""}`}
        placeholder={ifEmpty ?? "The partner's color"}
        leftSection={shown !== undefined && <ColorSwatch color={shown} size={18} aria-hidden />}
        withPreview={false}
        // Otherwise a faulty color would vanish without an error.
        fixOnBlur={false}
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
      <TextInput
        label="External ID"
        description="Optional. The ID of this company in your own systems."
        {...form.text("external_id")}
      />
    </>
  );
}

function PlanField({ form }: { readonly form: FormState<AccountDraft> }) {
  const { plan_id: value } = form.draft;
  const plans = useQuery(plansOptions(useApi())).data ?? [];
  return (
    <NativeSelect
      label="Plan"
      required
      value={value}
      error={form.errorOf("plan_id") && "Choose a plan."}
      data={[
        ...(value === 0 ? [{ value: "0", label: "Choose a plan" }] : []),
        ...plans.map((one) => ({ value: String(one.id), label: one.name })),
      ]}
      onChange={(event) => form.edit({ plan_id: Number(event.currentTarget.value) })}
    />
  );
}

interface NewCompanyProps {
  readonly onClose: () => void;
}

interface NewAccountProps extends NewCompanyProps {
  /** Partner of the new account; undefined if the operator chooses it. */
  readonly partnerId?: number;
}

/** Form for a new account, of the given partner or of any. */
export function NewAccount({ partnerId, onClose }: NewAccountProps) {
  const { createAccount } = useCompanyActions();
  const [, navigate] = useLocation();
  const initial: AccountDraft = { ...EMPTY_ACCOUNT, partner_id: partnerId };
  const form = useForm({
    name: partnerId === undefined ? "new account" : `new account of ${partnerId}`,
    initial,
    send: createAccount,
    done: ({ name }) => `${name} created. Invite its first owner next.`,
    onDone: ({ id }) => {
      onClose();
      navigate(`/companies/${id}?tab=users`);
    },
  });
  const { data: chosen } = useQuery(partnerOptions(useApi(), form.draft.partner_id ?? null));
  return (
    <Form form={form} action="Create account" onCancel={onClose}>
      <NameField form={form} />
      {partnerId === undefined && (
        <CompanySelect
          label="Partner"
          types={["partner"]}
          required
          value={form.draft.partner_id}
          error={form.errorOf("partner_id") && "Choose a partner."}
          onChange={(partner) => form.edit({ partner_id: partner?.id })}
        />
      )}
      <PlanField form={form} />
      <StoresField form={form} />
      <BrandingFields form={form} isInherited ifEmpty={chosen?.primary_color} />
    </Form>
  );
}

function StoresField({ form }: { readonly form: FormState<AccountDraft> }) {
  const { length } = storeNames(form.draft.stores);
  return (
    <Textarea
      label="Stores"
      description={`One name per line. ${counted(length, "store")} so far.`}
      autosize
      minRows={3}
      maxRows={10}
      {...form.text("stores")}
    />
  );
}

/** Form for a new partner. */
export function NewPartner({ onClose }: NewCompanyProps) {
  const { createPartner } = useCompanyActions();
  const [, navigate] = useLocation();
  const form = useForm({
    name: "new partner",
    initial: EMPTY_PARTNER,
    names: LABEL_NAMES,
    send: createPartner,
    done: ({ name }) => `${name} created. Invite its first owner next.`,
    onDone: ({ id }) => {
      onClose();
      navigate(`/companies/${id}?tab=users`);
    },
  });
  return (
    <Form form={form} action="Create partner" onCancel={onClose}>
      <NameField form={form} />
      <BrandingFields form={form} ifEmpty={DEFAULT_COLOR} />
      <WhiteLabelFields form={form} />
    </Form>
  );
}

const LABEL_NAMES = { brand_name: "white_label.brand_name", domain: "white_label.domain" } as const;

/** Form that changes a partner. */
export function EditPartner({ partner, onClose }: NewCompanyProps & { readonly partner: Partner }) {
  const { changePartner } = useCompanyActions();
  const form = useForm({
    initial: partnerDraft(partner),
    names: LABEL_NAMES,
    send: (draft) => changePartner(partner, draft),
    done: ({ name }) => `${name} saved.`,
    onDone: onClose,
  });
  return (
    <Form form={form} action="Save" onCancel={onClose}>
      <NameField form={form} />
      <BrandingFields form={form} ifEmpty={partner.primary_color} />
      <WhiteLabelFields form={form} />
    </Form>
  );
}

/** Form that changes an account. */
export function EditAccount({ account, onClose }: NewCompanyProps & { readonly account: Account }) {
  const { changeAccount } = useCompanyActions();
  const form = useForm({
    initial: accountDraft(account),
    send: (draft) => changeAccount(account, draft),
    done: ({ name }) => `${name} saved.`,
    onDone: onClose,
  });
  return (
    <Form form={form} action="Save" onCancel={onClose}>
      <NameField form={form} />
      <PlanField form={form} />
      <BrandingFields form={form} ifEmpty={account.primary_color} />
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
