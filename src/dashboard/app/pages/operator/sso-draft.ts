/** What the form holds while it is filled in. */
export interface SsoDraft {
  readonly companyId: number | undefined;
  readonly issuer: string;
  readonly clientId: string;
  /** Empty while editing: the secret of before stays. */
  readonly clientSecret: string;
  readonly domains: readonly string[];
  readonly passwordLogin: boolean;
}

export const EMPTY_SSO: SsoDraft = {
  companyId: undefined,
  issuer: "",
  clientId: "",
  clientSecret: "",
  domains: [],
  passwordLogin: true,
};

/** What both creating and changing send. */
export function ssoSettings({ issuer, clientId, domains, passwordLogin }: SsoDraft) {
  return {
    issuer: issuer.trim(),
    client_id: clientId.trim(),
    domains: [...domains],
    password_login: passwordLogin,
  };
}
