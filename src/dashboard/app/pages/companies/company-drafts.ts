/* Drafts of the forms for companies. An empty text in a draft means that the value is absent. */

interface Branding {
  readonly primaryColor: string;
  readonly logoUrl: string;
}

const NO_BRANDING: Branding = { primaryColor: "", logoUrl: "" };

export interface CompanyDraft extends Branding {
  readonly name: string;
}

/**
 * Maps a field of the draft to the API field of the same value, so that API validation errors appear at the
 * form field.
 */
export const COMPANY_FIELDS = {
  name: "name",
  primaryColor: "primary_color",
  logoUrl: "logo_url",
} as const;

export interface PartnerDraft extends CompanyDraft {
  readonly isWhiteLabel: boolean;
  readonly brandName: string;
  readonly domain: string;
}

export const EMPTY_PARTNER: PartnerDraft = {
  name: "",
  ...NO_BRANDING,
  isWhiteLabel: false,
  brandName: "",
  domain: "",
};

export interface AccountDraft extends CompanyDraft {
  readonly partnerId: number | undefined;
  readonly planId: number;
  /** Store names, one per line. */
  readonly stores: string;
}

export const EMPTY_ACCOUNT: AccountDraft = {
  name: "",
  ...NO_BRANDING,
  partnerId: undefined,
  planId: 0,
  stores: "",
};

export function brandingBody({ primaryColor, logoUrl }: Branding) {
  return {
    ...(primaryColor.trim() !== "" && { primary_color: primaryColor.trim() }),
    ...(logoUrl.trim() !== "" && { logo_url: logoUrl.trim() }),
  };
}

export function partnerBody(draft: PartnerDraft) {
  const { brandName, domain } = draft;
  return {
    name: draft.name.trim(),
    ...brandingBody(draft),
    ...(draft.isWhiteLabel && {
      white_label: { brand_name: brandName.trim(), domain: domain.trim().toLowerCase() },
    }),
  };
}

export function accountBody(draft: AccountDraft) {
  return {
    name: draft.name.trim(),
    // Id 0 stands for "no company selected". No company has this id, so the API answers with a validation error
    // for the field.
    partner_id: draft.partnerId ?? 0,
    plan_id: draft.planId,
    stores: storeNames(draft.stores),
    ...brandingBody(draft),
  };
}

/** Splits a text into store names, one per line. Repeated spaces are collapsed and empty lines skipped. */
export function storeNames(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim().replaceAll(/\s+/g, " "))
    .filter((line) => line !== "");
}
