import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";

import { allPages, answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { useList } from "../../ui/list.tsx";

/** Roles that members of a partner's team can have. */
export type TeamRole = "partner_owner" | "partner_admin";

export interface Teammate {
  readonly name: string;
  readonly email: string;
  readonly role: TeamRole;
}

function readTeam(api: ApiClient, cursor: string | undefined) {
  return answerOf(api.partner.users.get({ query: pageAt(cursor) }));
}

export type TeamUser = Awaited<ReturnType<typeof readTeam>>["data"][number];

const KEY = ["team"];
/** Cached names may be up to a minute old, because names rarely change. */
const NAMES_STALE_MS = 60_000;

export function useTeam() {
  const api = useApi();
  return useList(KEY, (cursor) => readTeam(api, cursor));
}

/** Returns the names of the team members by user id, for pages that only know user ids. */
export function useTeamNames(enabled: boolean): ReadonlyMap<number, string> {
  const api = useApi();
  const { data } = useQuery({
    queryKey: [...KEY, "names"],
    queryFn: () => allPages((cursor) => readTeam(api, cursor)),
    enabled,
    staleTime: NAMES_STALE_MS,
  });
  return useMemo(() => new Map(data?.map((one) => [one.id, one.name])), [data]);
}

/** Requests that change the partner's team. Each request invalidates the cached team list. */
export function useTeamActions() {
  const api = useApi();
  const queries = useQueryClient();
  const done = async <T>(call: Promise<T>): Promise<T> => {
    const answer = await call;
    await queries.invalidateQueries({ queryKey: KEY });
    return answer;
  };
  return {
    invite: (teammate: Teammate) => done(answerOf(api.partner.users.post({ ...teammate }))),
    inviteAgain: (id: number) => done(answerOf(api.partner.users({ id }).invite.post())),
    setRole: (id: number, role: TeamRole) =>
      done(answerOf(api.partner.users({ id }).role.post({ role }))),
    setActive: (id: number, isActive: boolean) => {
      const user = api.partner.users({ id });
      return done(answerOf(isActive ? user.activate.post() : user.deactivate.post()));
    },
  };
}
