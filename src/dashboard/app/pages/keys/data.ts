import { queryOptions } from "@tanstack/react-query";

import {
  allPages,
  answerOf,
  type ApiClient,
  atCursor,
  type DataOf,
  pageAt,
} from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { ALL_PAGES, listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";
import { clientBody, isPlatformPath, type ClientDraft, type ClientsPath } from "./client-model.ts";
import type { Scope } from "./client-model.ts";

const PAGE = 20;

const tokensOf = (api: ApiClient) => api.account["personal-access-tokens"];

export const apiTokensOptions = (api: ApiClient) =>
  listOptions(
    ["api-tokens"],
    (cursor) => answerOf(tokensOf(api).get({ query: { limit: PAGE, ...atCursor(cursor) } })),
    ALL_PAGES,
  );

/** Reads whether the user has a personal access token and when it was last used, but not the token itself. */
export const personalTokenOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["api-tokens", "personal"],
    queryFn: async () =>
      (await answerOf(tokensOf(api).get({ query: { limit: 1 } }))).dashboard_token,
  });

export type ApiToken = RowOf<typeof apiTokensOptions>;

export interface TokenDraft {
  readonly name: string;
  readonly scopes: readonly Scope[];
}

/** Requests that create or delete API tokens. Each request invalidates the cached token list. */
export function useApiTokenActions() {
  const tokens = tokensOf(useApi());
  const { inBackground, andRead } = useRefresh(["api-tokens"]);
  return {
    /** Creates an API token and returns its value, which the API never returns again. */
    create: async ({ name, scopes }: TokenDraft): Promise<string> =>
      (await inBackground(answerOf(tokens.post({ name, scopes: [...scopes] })))).access_token,
    remove: (id: string) => andRead(answerOf(tokens({ id }).delete())),
  };
}

function clientsAt(api: ApiClient, path: ClientsPath) {
  return isPlatformPath(path) ? api.sso.clients : api.partner["oauth-clients"];
}

export const oauthClientsOptions = (api: ApiClient, path: ClientsPath) =>
  listOptions(
    ["oauth-clients", path],
    (cursor) => answerOf(clientsAt(api, path).get({ query: { limit: PAGE, ...atCursor(cursor) } })),
    ALL_PAGES,
  );

export type OAuthClient = RowOf<typeof oauthClientsOptions>;

/** Secret of an OAuth client; null for a public client. The API returns a secret only when it is created or rotated. */
export interface NewClientSecret {
  readonly client_id: string;
  readonly client_secret: string | null;
}

/** Requests that create, change or delete OAuth clients. Each request invalidates the cached list of clients. */
export function useOAuthClientActions(path: ClientsPath) {
  const clients = clientsAt(useApi(), path);
  const { inBackground, andRead } = useRefresh(["oauth-clients", path]);
  const bodyOf = (draft: ClientDraft) => clientBody(draft, isPlatformPath(path));
  return {
    create: (draft: ClientDraft): Promise<NewClientSecret> => {
      const body = { ...bodyOf(draft), confidential: draft.confidential };
      return inBackground(answerOf(clients.post(body)));
    },
    change: (id: string, draft: ClientDraft) =>
      inBackground(answerOf(clients({ id }).patch(bodyOf(draft)))),
    rotateSecret: (id: string): Promise<NewClientSecret> =>
      inBackground(answerOf(clients({ id }).secret.post())),
    remove: (id: string) => andRead(answerOf(clients({ id }).delete())),
  };
}

/** Reads all integrations of the partner; there are at most 50. */
export const integrationsOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["integrations"],
    queryFn: () =>
      allPages((cursor) => answerOf(api.partner.integrations.get({ query: pageAt(cursor) }))),
  });

export type Integration = DataOf<typeof integrationsOptions>[number];

/** Reads the viewable tokens of the partner's users and integrations by user id, but not their values. */
export const integrationTokensOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["team-tokens", "viewable"],
    queryFn: async () => {
      const all = await allPages((cursor) =>
        answerOf(api.partner.tokens.get({ query: pageAt(cursor) })),
      );
      const own = all.filter(({ kind }) => kind === "dashboard_pat");
      return new Map(own.map((one) => [one.user_id, one]));
    },
  });

export interface IntegrationDraft {
  readonly name: string;
  readonly scopes: readonly Scope[];
}

const integrationBody = ({ name, scopes }: IntegrationDraft) => ({
  name: name.trim(),
  scopes: [...scopes],
});

/** Requests that create, change or delete integrations. Each request invalidates the cached list. */
export function useIntegrationActions() {
  const { integrations } = useApi().partner;
  const { inBackground, andRead } = useRefresh(["integrations"]);
  return {
    create: (draft: IntegrationDraft) =>
      inBackground(answerOf(integrations.post(integrationBody(draft)))),
    change: (id: number, draft: IntegrationDraft) =>
      inBackground(answerOf(integrations({ id }).patch(integrationBody(draft)))),
    remove: (id: number) => andRead(answerOf(integrations({ id }).delete())),
  };
}
