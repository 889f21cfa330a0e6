import { queryOptions } from "@tanstack/react-query";

import { allPages, answerOf, type ApiClient, pageAt, type QueryOf } from "../../api/client.ts";
import { apiWith } from "../../api/connect.ts";
import { readIdentity } from "../../session/identity.ts";
import { useApi, useSessionState } from "../../session/session.tsx";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";

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

/** Reads all members of the team. The API has no route for one of them. */
export const wholeTeamOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["team", "whole"],
    queryFn: () => allPages((cursor) => answerOf(api.partner.users.get({ query: pageAt(cursor) }))),
  });

/** Requests that change the partner's team. Each request invalidates the cached team. */
export function useTeamActions() {
  const { users } = useApi().partner;
  const { andRead } = useRefresh(["team"]);
  return {
    invite: (teammate: Teammate) => andRead(answerOf(users.post({ ...teammate }))),
    inviteAgain: (id: number) => andRead(answerOf(users({ id }).invite.post())),
    setRole: (id: number, role: TeamRole) => andRead(answerOf(users({ id }).role.post({ role }))),
    setActive: (id: number, isActive: boolean) => {
      const user = users({ id });
      return andRead(answerOf(isActive ? user.activate.post() : user.deactivate.post()));
    },
  };
}

export const ownAccountsOptions = (
  api: ApiClient,
  filter: QueryOf<ApiClient["partner"]["accounts"]["get"]>,
) =>
  listOptions(["own-accounts", filter], (cursor) =>
    answerOf(api.partner.accounts.get({ query: { ...filter, ...pageAt(cursor) } })),
  );

export type Account = RowOf<typeof ownAccountsOptions>;

/** Reads all accounts of the partner, as choices of selects. */
export const allAccountsOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["own-accounts", "all"],
    queryFn: () =>
      allPages((cursor) => answerOf(api.partner.accounts.get({ query: pageAt(cursor) }))),
    staleTime: 60_000,
  });

/** Starts impersonation of an account's owner. The API writes the given reason into the audit log. */
export function useActAsOwner() {
  const api = useApi();
  const { actAs } = useSessionState();
  return async (accountId: number, reason: string) => {
    const body = { account_id: accountId, ...(reason !== "" && { reason }) };
    const { access_token: token } = await answerOf(api.partner["account-owner"].token.post(body));
    const identity = await readIdentity(apiWith(token));
    actAs({ ...identity, token });
  };
}
