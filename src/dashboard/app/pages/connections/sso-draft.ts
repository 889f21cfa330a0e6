/** What the form holds while it is filled in. */
export interface SsoDraft {
  readonly companyId: number | undefined;
  readonly issuer: string;
  readonly clientId: string;
  /** In a change, empty means that the secret stays as it is. */
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

/** Both a creation and a change send these settings. */
function ssoSettings({ issuer, clientId, domains, passwordLogin }: SsoDraft) {
  return {
    issuer: issuer.trim(),
    client_id: clientId.trim(),
    domains: [...domains],
    password_login: passwordLogin,
  };
}

export function newSsoBody(draft: SsoDraft) {
  return {
    // No company has the number 0: the server's answer names the field.
    company_id: draft.companyId ?? 0,
    client_secret: draft.clientSecret,
    ...ssoSettings(draft),
  };
}

export function changedSsoBody(draft: SsoDraft) {
  const { clientSecret } = draft;
  return { ...ssoSettings(draft), ...(clientSecret !== "" && { client_secret: clientSecret }) };
}
