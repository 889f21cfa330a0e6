import { queryOptions } from "@tanstack/react-query";

import { allPages, answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { apiWith } from "../../api/connect.ts";
import { readIdentity } from "../../session/identity.ts";
import { useApi, useSessionState } from "../../session/session.tsx";
import { listOptions, type RowOf } from "../../ui/pages.ts";

export const ownAccountsOptions = (
  api: ApiClient,
  filter: { readonly name?: string; readonly is_active?: "true" | "false" },
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
