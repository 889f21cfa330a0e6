import { useQueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient, atCursor } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf } from "../../ui/pages.ts";
import { clientBody, isPlatformPath, type ClientDraft, type ClientsPath } from "./client-model.ts";
import type { Scope } from "./scopes.ts";

const PAGE = 20;

const tokensOf = (api: ApiClient) => api.account["personal-access-tokens"];

export const apiTokensOptions = (api: ApiClient) =>
  listOptions(["api-tokens"], (cursor) =>
    answerOf(tokensOf(api).get({ query: { limit: PAGE, ...atCursor(cursor) } })),
  );

export type ApiToken = RowOf<typeof apiTokensOptions>;

export interface TokenDraft {
  readonly name: string;
  readonly scopes: readonly Scope[];
}

/** Requests that create or delete API tokens. Each request invalidates the cached token list. */
export function useApiTokenActions() {
  const api = useApi();
  const queries = useQueryClient();
  const refresh = () => queries.invalidateQueries({ queryKey: ["api-tokens"] });
  return {
    /** Creates an API token and returns its value, which the API never returns again. */
    create: async ({ name, scopes }: TokenDraft): Promise<string> => {
      const answer = await answerOf(tokensOf(api).post({ name, scopes: [...scopes] }));
      void refresh();
      return answer.access_token;
    },
    remove: async (id: string) => {
      await answerOf(tokensOf(api)({ id }).delete());
      await refresh();
    },
  };
}

function clientsAt(api: ApiClient, path: ClientsPath) {
  return isPlatformPath(path) ? api.sso.clients : api.partner["oauth-clients"];
}

export const oauthClientsOptions = (api: ApiClient, path: ClientsPath) =>
  listOptions(["oauth-clients", path], (cursor) =>
    answerOf(clientsAt(api, path).get({ query: { limit: PAGE, ...atCursor(cursor) } })),
  );

export type OAuthClient = RowOf<typeof oauthClientsOptions>;

/** Secret of an OAuth client; null for a public client. The API returns a secret only when it is created or rotated. */
export interface NewClientSecret {
  readonly client_id: string;
  readonly client_secret: string | null;
}

/** Requests that create, change or delete OAuth clients. Each request invalidates the cached list of clients. */
export function useOAuthClientActions(path: ClientsPath) {
  const api = useApi();
  const queries = useQueryClient();
  const clients = clientsAt(api, path);
  const refresh = () => queries.invalidateQueries({ queryKey: ["oauth-clients", path] });
  return {
    create: async (draft: ClientDraft): Promise<NewClientSecret> => {
      const body = { ...clientBody(draft, isPlatformPath(path)), confidential: draft.confidential };
      const created = await answerOf(clients.post(body));
      void refresh();
      return created;
    },
    change: async (id: string, draft: ClientDraft) => {
      await answerOf(clients({ id }).patch(clientBody(draft, isPlatformPath(path))));
      void refresh();
    },
    rotateSecret: async (id: string): Promise<NewClientSecret> => {
      const rotated = await answerOf(clients({ id }).secret.post());
      void refresh();
      return rotated;
    },
    remove: async (id: string) => {
      await answerOf(clients({ id }).delete());
      await refresh();
    },
  };
}
