import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";

/** Values of the form for an SSO connection before they are sent. */
export interface SsoDraft {
  readonly companyId: number | undefined;
  readonly issuer: string;
  readonly clientId: string;
  /** Client secret at the identity provider. In an update, an empty text means that the secret does not change. */
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

/** Returns the settings that the API accepts in both the creation and the update of an SSO connection. */
function ssoSettings({ issuer, clientId, domains, passwordLogin }: SsoDraft) {
  return {
    issuer: issuer.trim(),
    client_id: clientId.trim(),
    domains: [...domains],
    password_login: passwordLogin,
  };
}

function newSsoBody(draft: SsoDraft) {
  return {
    // Id 0 stands for "no company selected". No company has this id, so the API answers with a validation error
    // for the field.
    company_id: draft.companyId ?? 0,
    client_secret: draft.clientSecret,
    ...ssoSettings(draft),
  };
}

function changedSsoBody(draft: SsoDraft) {
  const { clientSecret } = draft;
  return { ...ssoSettings(draft), ...(clientSecret !== "" && { client_secret: clientSecret }) };
}

/** Signing secret of a new provider. The API returns it only once, in the response to the creation. */
export interface ProviderSecret {
  readonly name: string;
  readonly secret: string;
}

interface ProviderDraft {
  readonly name: string;
  readonly slug: string;
}

export const providersOptions = (api: ApiClient) =>
  listOptions(["providers"], (cursor) =>
    answerOf(api.admin.providers.get({ query: pageAt(cursor) })),
  );

/** Requests that create or change providers. A creation invalidates the cached provider list. */
export function useProviderActions() {
  const { providers } = useApi().admin;
  const { inBackground } = useRefresh(["providers"]);
  return {
    create: ({ name, slug }: ProviderDraft): Promise<ProviderSecret> =>
      inBackground(answerOf(providers.post({ name: name.trim(), slug: slug.trim() }))),
    rotateSecret: (id: number): Promise<ProviderSecret> =>
      answerOf(providers({ id }).secret.post()),
  };
}

export const ssoConnectionsOptions = (api: ApiClient, filter: { readonly company_id?: number }) =>
  listOptions(["sso-connections", filter], (cursor) =>
    answerOf(api.admin["sso-connections"].get({ query: { ...filter, ...pageAt(cursor) } })),
  );

export type SsoConnection = RowOf<typeof ssoConnectionsOptions>;

/** Requests that create or change SSO connections. Each request invalidates the cached list of connections. */
export function useSsoActions() {
  const connections = useApi().admin["sso-connections"];
  const { inBackground, andRead } = useRefresh(["sso-connections"]);
  return {
    create: (draft: SsoDraft) => inBackground(answerOf(connections.post(newSsoBody(draft)))),
    change: (id: string, draft: SsoDraft) =>
      inBackground(answerOf(connections({ id }).patch(changedSsoBody(draft)))),
    setActive: (id: string, isActive: boolean) =>
      andRead(answerOf(connections({ id }).patch({ is_active: isActive }))),
    remove: (id: string) => andRead(answerOf(connections({ id }).delete())),
  };
}
