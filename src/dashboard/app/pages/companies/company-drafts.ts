/* What the forms of companies hold while they are filled in; an empty text means absent. */

interface Branding {
  readonly primaryColor: string;
  readonly logoUrl: string;
}

const NO_BRANDING: Branding = { primaryColor: "", logoUrl: "" };

export interface CompanyDraft extends Branding {
  readonly name: string;
}

/** Field → its name in the API. */
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
  /** Each line has one name. */
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
    // No company has the number 0: the server's answer names the field.
    partner_id: draft.partnerId ?? 0,
    plan_id: draft.planId,
    stores: storeNames(draft.stores),
    ...brandingBody(draft),
  };
}

/** Reads one store from each line, without repeated spaces; an empty line is no store. */
export function storeNames(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim().replaceAll(/\s+/g, " "))
    .filter((line) => line !== "");
}
