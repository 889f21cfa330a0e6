/*
 * Values of the forms for companies before they are sent. Their fields have the same names as in the API. An empty
 * text means that the value is absent.
 */

export interface CompanyChoice {
  readonly id: number;
  readonly name: string;
  readonly stores: readonly { readonly id: number; readonly name: string }[];
  /** Absent for the platform, which is always active. */
  readonly is_active?: boolean;
}

export interface CompanyDraft {
  readonly name: string;
  readonly primary_color: string;
  readonly logo_url: string;
  /** Id of the company in the platform's own systems. */
  readonly external_id: string;
}

const EMPTY_COMPANY: CompanyDraft = { name: "", primary_color: "", logo_url: "", external_id: "" };

export interface PartnerDraft extends CompanyDraft {
  readonly isWhiteLabel: boolean;
  readonly brand_name: string;
  readonly domain: string;
}

export const EMPTY_PARTNER: PartnerDraft = {
  ...EMPTY_COMPANY,
  isWhiteLabel: false,
  brand_name: "",
  domain: "",
};

export interface AccountDraft extends CompanyDraft {
  readonly partner_id: number | undefined;
  readonly plan_id: number;
  /** Store names, one per line. */
  readonly stores: string;
}

export const EMPTY_ACCOUNT: AccountDraft = {
  ...EMPTY_COMPANY,
  partner_id: undefined,
  plan_id: 0,
  stores: "",
};

/** Returns the values that all companies have, without those that are absent. */
export function companyBody({
  name,
  primary_color: color,
  logo_url: logo,
  ...draft
}: CompanyDraft) {
  const externalId = draft.external_id.trim();
  return {
    name: name.trim(),
    ...(color.trim() !== "" && { primary_color: color.trim() }),
    ...(logo.trim() !== "" && { logo_url: logo.trim() }),
    ...(externalId !== "" && { external_id: externalId }),
  };
}

export function partnerBody(draft: PartnerDraft) {
  return { ...companyBody(draft), ...(draft.isWhiteLabel && { white_label: labelOf(draft) }) };
}

const labelOf = ({ brand_name: name, domain }: PartnerDraft) => ({
  brand_name: name.trim(),
  domain: domain.trim().toLowerCase(),
});

export function accountBody(draft: AccountDraft) {
  return {
    ...companyBody(draft),
    // Id 0 stands for "no company selected". No company has this id, so the API answers with a validation error
    // for the field.
    partner_id: draft.partner_id ?? 0,
    plan_id: draft.plan_id,
    stores: storeNames(draft.stores),
  };
}

/** Fields of an existing company with which its form begins. */
interface SavedCompany {
  readonly name: string;
  readonly primary_color: string;
  readonly logo_url: string | null;
  readonly external_id: string | null;
}

const savedValues = ({ logo_url: logo, external_id: externalId, ...saved }: SavedCompany) => ({
  name: saved.name,
  primary_color: saved.primary_color,
  logo_url: logo ?? "",
  external_id: externalId ?? "",
});

interface SavedPartner extends SavedCompany {
  readonly white_label: {
    readonly enabled: boolean;
    readonly brand_name: string | null;
    readonly domain: string | null;
  };
}

export function partnerDraft(partner: SavedPartner): PartnerDraft {
  const { enabled, brand_name: brandName, domain } = partner.white_label;
  return {
    ...savedValues(partner),
    isWhiteLabel: enabled,
    brand_name: brandName ?? "",
    domain: domain ?? "",
  };
}

interface SavedAccount extends SavedCompany {
  readonly partner_id: number | null;
  readonly plan: { readonly id: number };
}

export function accountDraft(account: SavedAccount): AccountDraft {
  const { partner_id: partnerId, plan } = account;
  return {
    ...savedValues(account),
    partner_id: partnerId ?? undefined,
    plan_id: plan.id,
    stores: "",
  };
}

/** Returns the fields that a form has changed, because the audit log names the fields of a request. */
export function changedPartner(partner: SavedPartner, draft: PartnerDraft) {
  const before = partnerDraft(partner);
  const wanted = draft.isWhiteLabel ? labelOf(draft) : null;
  const saved = before.isWhiteLabel ? labelOf(before) : null;
  return {
    ...changedCompany(before, draft),
    ...(JSON.stringify(wanted) !== JSON.stringify(saved) && { white_label: wanted }),
  };
}

/** Returns the same for an account, whose partner and stores a form does not change. */
export function changedAccount(account: SavedAccount, draft: AccountDraft) {
  const before = accountDraft(account);
  return {
    ...changedCompany(before, draft),
    ...(draft.plan_id !== before.plan_id && { plan_id: draft.plan_id }),
  };
}

function changedCompany(before: CompanyDraft, draft: CompanyDraft) {
  const { primary_color: color } = companyBody(draft);
  return {
    ...(draft.name.trim() !== before.name && { name: draft.name.trim() }),
    ...(color !== undefined && color !== before.primary_color && { primary_color: color }),
    ...(draft.logo_url.trim() !== before.logo_url && { logo_url: draft.logo_url.trim() || null }),
    ...(draft.external_id.trim() !== before.external_id && {
      external_id: draft.external_id.trim() || null,
    }),
  };
}

/** Splits a text into store names, one per line. Repeated spaces are collapsed and empty lines skipped. */
export function storeNames(text: string): string[] {
  const lines = text.split("\n").map((line) => line.trim().replaceAll(/\s+/g, " "));
  return lines.filter((line) => line !== "");
}
