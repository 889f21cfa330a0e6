import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";

import { allPages, answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf } from "../../ui/pages.ts";

/** Roles that members of a partner's team can have. */
export type TeamRole = "partner_owner" | "partner_admin";

export interface Teammate {
  readonly name: string;
  readonly email: string;
  readonly role: TeamRole;
}

export const teamOptions = (api: ApiClient) =>
  listOptions(["team"], (cursor) => answerOf(api.partner.users.get({ query: pageAt(cursor) })));

export type TeamUser = RowOf<typeof teamOptions>;

/** Returns the names of the team members by user id, for pages that only know user ids. */
export function useTeamNames(enabled: boolean): ReadonlyMap<number, string> {
  const api = useApi();
  const { data } = useQuery({
    queryKey: ["team", "names"],
    queryFn: () => allPages((cursor) => answerOf(api.partner.users.get({ query: pageAt(cursor) }))),
    enabled,
    staleTime: 60_000,
  });
  return useMemo(() => new Map(data?.map((one) => [one.id, one.name])), [data]);
}

/** Requests that change the partner's team. Each request invalidates the cached team list. */
export function useTeamActions() {
  const api = useApi();
  const queries = useQueryClient();
  const done = async <T>(call: Promise<T>): Promise<T> => {
    const answer = await call;
    await queries.invalidateQueries({ queryKey: ["team"] });
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
