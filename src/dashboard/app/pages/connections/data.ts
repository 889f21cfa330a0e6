import { useQueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { useList } from "../../ui/list.tsx";

/** The draft of the form for an SSO connection. */
export interface SsoDraft {
  readonly companyId: number | undefined;
  readonly issuer: string;
  readonly clientId: string;
  /** Empty in an edit means that the secret is not changed. */
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

/** Returns the settings that a creation and an update have in common. */
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
    // No company has the id 0, so the API answers with a validation error for this field.
    company_id: draft.companyId ?? 0,
    client_secret: draft.clientSecret,
    ...ssoSettings(draft),
  };
}

function changedSsoBody(draft: SsoDraft) {
  const { clientSecret } = draft;
  return { ...ssoSettings(draft), ...(clientSecret !== "" && { client_secret: clientSecret }) };
}

/** The secret of a provider. The API returns it only at the creation. */
export interface ProviderSecret {
  readonly name: string;
  readonly secret: string;
}

interface ProviderDraft {
  readonly name: string;
  readonly slug: string;
}

interface SsoFilter {
  readonly company_id?: number;
}

export function useProviders() {
  const api = useApi();
  return useList(["providers"], (cursor) =>
    answerOf(api.admin.providers.get({ query: pageAt(cursor) })),
  );
}

/** The mutations of providers. Each refreshes the list. */
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

function readSsoConnections(api: ApiClient, filter: SsoFilter, cursor: string | undefined) {
  const query = { ...filter, ...pageAt(cursor) };
  return answerOf(api.admin["sso-connections"].get({ query }));
}

export type SsoConnection = Awaited<ReturnType<typeof readSsoConnections>>["data"][number];

export function useSsoConnections(filter: SsoFilter) {
  const api = useApi();
  return useList(["sso-connections", filter], (cursor) => readSsoConnections(api, filter, cursor));
}

/** The mutations of SSO connections. Each refreshes the list. */
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
