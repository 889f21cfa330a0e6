import { useQueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf } from "../../ui/pages.ts";

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

/** Requests that create or change providers. Each request invalidates the cached provider list. */
export function useProviderActions() {
  const api = useApi();
  const queries = useQueryClient();
  return {
    create: async ({ name, slug }: ProviderDraft): Promise<ProviderSecret> => {
      const body = { name: name.trim(), slug: slug.trim() };
      const provider = await answerOf(api.admin.providers.post(body));
      void queries.invalidateQueries({ queryKey: ["providers"] });
      return provider;
    },
    rotateSecret: (id: number): Promise<ProviderSecret> =>
      answerOf(api.admin.providers({ id }).secret.post()),
  };
}

export const ssoConnectionsOptions = (api: ApiClient, filter: { readonly company_id?: number }) =>
  listOptions(["sso-connections", filter], (cursor) =>
    answerOf(api.admin["sso-connections"].get({ query: { ...filter, ...pageAt(cursor) } })),
  );

export type SsoConnection = RowOf<typeof ssoConnectionsOptions>;

/** Requests that create or change SSO connections. Each request invalidates the cached list of connections. */
export function useSsoActions() {
  const api = useApi();
  const queries = useQueryClient();
  const refresh = () => queries.invalidateQueries({ queryKey: ["sso-connections"] });
  return {
    create: async (draft: SsoDraft) => {
      await answerOf(api.admin["sso-connections"].post(newSsoBody(draft)));
      void refresh();
    },
    change: async (id: string, draft: SsoDraft) => {
      await answerOf(api.admin["sso-connections"]({ id }).patch(changedSsoBody(draft)));
      void refresh();
    },
    setActive: async (id: string, isActive: boolean) => {
      await answerOf(api.admin["sso-connections"]({ id }).patch({ is_active: isActive }));
      await refresh();
    },
    remove: async (id: string) => {
      await answerOf(api.admin["sso-connections"]({ id }).delete());
      await refresh();
    },
  };
}
