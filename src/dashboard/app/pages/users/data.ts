import { useQuery, useQueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient } from "../../api/api-client.ts";
import { pageAt } from "../../api/cursor.ts";
import type { Role } from "../../session/roles.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { useList } from "../../ui/list.tsx";
import { userBody, type UserDraft } from "./user-draft.ts";

export interface UserFilter {
  readonly company_id?: number;
  readonly role?: Role;
  readonly email?: string;
  readonly q?: string;
  readonly is_active?: "true" | "false";
}

/** Names hardly change, so that they may be a minute old. */
const NAMES_STALE_MS = 60_000;

function readUsers(api: ApiClient, filter: UserFilter, cursor?: string) {
  return answerOf(api.admin.users.get({ query: { ...filter, ...pageAt(cursor) } }));
}

export type User = Awaited<ReturnType<typeof readUsers>>["data"][number];

export function useUsers(filter: UserFilter) {
  const api = useApi();
  return useList(["users", filter], (cursor) => readUsers(api, filter, cursor));
}

/** Reads one user by number, for the places that know no more of the user. */
export function useUser(id: number | null) {
  const api = useApi();
  return useQuery({
    queryKey: ["user", id],
    queryFn: () => answerOf(api.admin.users({ id: String(id) }).get()),
    enabled: id !== null,
    staleTime: NAMES_STALE_MS,
  });
}

/** Finds the user who has this email; undefined where nobody has. */
export function useFindByEmail(): (email: string) => Promise<User | undefined> {
  const api = useApi();
  return async (email) => (await readUsers(api, { email })).data[0];
}

/** The changes that an operator makes to users; the list follows them. */
export function useUserActions() {
  const api = useApi();
  const queries = useQueryClient();
  const { company: platform } = useSession();
  const refresh = () => queries.invalidateQueries({ queryKey: ["users"] });
  return {
    create: async (draft: UserDraft) => {
      const user = await answerOf(api.admin.users.post(userBody(draft, platform.id)));
      void refresh();
      return user;
    },
    unlock: async (id: number) => {
      await answerOf(api.admin.users({ id }).unlock.post());
      await refresh();
    },
    setActive: async (id: number, isActive: boolean) => {
      const user = api.admin.users({ id });
      await answerOf(isActive ? user.activate.post() : user.deactivate.post());
      await refresh();
    },
  };
}
