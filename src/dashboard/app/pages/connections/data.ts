import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";

/** Values of the form for an SSO connection before they are sent. The fields have the same names as in the API. */
export interface SsoDraft extends Pick<
  SsoConnection,
  "issuer" | "client_id" | "password_login" | "trust_email"
> {
  readonly company_id: number | undefined;
  /** Client secret at the identity provider. In an update, an empty text means that the secret does not change. */
  readonly client_secret: string;
  readonly domains: readonly string[];
}

export const EMPTY_SSO: SsoDraft = {
  company_id: undefined,
  issuer: "",
  client_id: "",
  client_secret: "",
  domains: [],
  password_login: true,
  trust_email: false,
};

/** Returns the settings that the API accepts in both the creation and the update of an SSO connection. */
const ssoSettings = ({ issuer, client_id: clientId, domains, ...draft }: SsoDraft) => ({
  issuer: issuer.trim(),
  client_id: clientId.trim(),
  domains: [...domains],
  password_login: draft.password_login,
  trust_email: draft.trust_email,
});

function newSsoBody(draft: SsoDraft) {
  // Id 0 stands for "no company selected". No company has this id, so the API answers with a validation error
  // for the field.
  const { company_id = 0, client_secret } = draft;
  return { company_id, client_secret, ...ssoSettings(draft) };
}

function changedSsoBody(draft: SsoDraft) {
  const { client_secret } = draft;
  return { ...ssoSettings(draft), ...(client_secret !== "" && { client_secret }) };
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

/**
 * Requests that create, change or delete SSO connections. Each request invalidates the cached list of SSO
 * connections.
 */
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
