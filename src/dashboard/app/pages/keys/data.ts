import { useQueryClient } from "@tanstack/react-query";

import type { ApiClient } from "../../api/api-client.ts";
import { atCursor } from "../../api/cursor.ts";
import { useApi } from "../../session/session.tsx";
import { useList } from "../../ui/list.tsx";
import { clientBody, isPlatformPath, type ClientDraft, type ClientsPath } from "./client-model.ts";
import type { Scope } from "./scopes.ts";

const TOKENS = "/account/personal-access-tokens";
const PAGE = 20;

function readTokens(api: ApiClient, cursor: string | undefined) {
  return api.call("GET", TOKENS, { query: { limit: PAGE, ...atCursor(cursor) } });
}

export type ApiToken = Awaited<ReturnType<typeof readTokens>>["data"][number];

export function useApiTokens() {
  const api = useApi();
  return useList(["api-tokens"], (cursor) => readTokens(api, cursor));
}

export interface TokenDraft {
  readonly name: string;
  readonly scopes: readonly Scope[];
}

/** The actions on API tokens; the list follows them. */
export function useApiTokenActions() {
  const api = useApi();
  const queries = useQueryClient();
  const refresh = () => queries.invalidateQueries({ queryKey: ["api-tokens"] });
  return {
    /** Answers the token, which the API tells this once. */
    create: async ({ name, scopes }: TokenDraft): Promise<string> => {
      const answer = await api.call("POST", TOKENS, { body: { name, scopes: [...scopes] } });
      void refresh();
      return answer.access_token;
    },
    remove: async (id: string) => {
      await api.call("DELETE", `${TOKENS}/:id`, { params: { id } });
      await refresh();
    },
  };
}

function readClients(api: ApiClient, path: ClientsPath, cursor: string | undefined) {
  return api.call("GET", path, { query: { limit: PAGE, ...atCursor(cursor) } });
}

export type OAuthClient = Awaited<ReturnType<typeof readClients>>["data"][number];

/** The API tells the secret of a client only when it is made; it is null for a public client. */
export interface NewClientSecret {
  readonly client_id: string;
  readonly client_secret: string | null;
}

export function useOAuthClients(path: ClientsPath) {
  const api = useApi();
  return useList(["oauth-clients", path], (cursor) => readClients(api, path, cursor));
}

/** The actions on OAuth clients; the list follows them. */
export function useOAuthClientActions(path: ClientsPath) {
  const api = useApi();
  const queries = useQueryClient();
  const refresh = () => queries.invalidateQueries({ queryKey: ["oauth-clients", path] });
  return {
    create: async (draft: ClientDraft): Promise<NewClientSecret> => {
      const body = { ...clientBody(draft, isPlatformPath(path)), confidential: draft.confidential };
      const created = await api.call("POST", path, { body });
      void refresh();
      return created;
    },
    change: async (id: string, draft: ClientDraft) => {
      await api.call("PATCH", `${path}/:id`, {
        params: { id },
        body: clientBody(draft, isPlatformPath(path)),
      });
      void refresh();
    },
    rotateSecret: async (id: string): Promise<NewClientSecret> => {
      const rotated = await api.call("POST", `${path}/:id/secret`, { params: { id } });
      void refresh();
      return rotated;
    },
    remove: async (id: string) => {
      await api.call("DELETE", `${path}/:id`, { params: { id } });
      await refresh();
    },
  };
}
