/*
 * Values of the forms for companies before they are sent. Their fields have the same names as in the API. An empty
 * text means that the value is absent.
 */

export interface CompanyDraft {
  readonly name: string;
  readonly primary_color: string;
  readonly logo_url: string;
}

const EMPTY_COMPANY: CompanyDraft = { name: "", primary_color: "", logo_url: "" };

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
export function companyBody({ name, primary_color: color, logo_url: logo }: CompanyDraft) {
  return {
    name: name.trim(),
    ...(color.trim() !== "" && { primary_color: color.trim() }),
    ...(logo.trim() !== "" && { logo_url: logo.trim() }),
  };
}

export function partnerBody(draft: PartnerDraft) {
  const label = { brand_name: draft.brand_name.trim(), domain: draft.domain.trim().toLowerCase() };
  return { ...companyBody(draft), ...(draft.isWhiteLabel && { white_label: label }) };
}

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

/** Splits a text into store names, one per line. Repeated spaces are collapsed and empty lines skipped. */
export function storeNames(text: string): string[] {
  const lines = text.split("\n").map((line) => line.trim().replaceAll(/\s+/g, " "));
  return lines.filter((line) => line !== "");
}
