import { useQuery } from "@tanstack/react-query";

import { allPages, answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { apiWith } from "../../api/connect.ts";
import { readIdentity } from "../../session/identity.ts";
import { useApi, useSessionState } from "../../session/session.tsx";
import { useList } from "../../ui/list.tsx";

interface AccountFilter {
  readonly name?: string;
  readonly is_active?: "true" | "false";
}

const NAMES_STALE_MS = 60_000;

function readAccounts(
  api: ApiClient,
  query: AccountFilter & { readonly limit?: number; readonly cursor?: string },
) {
  return answerOf(api.partner.accounts.get({ query }));
}

export type Account = Awaited<ReturnType<typeof readAccounts>>["data"][number];

export function useOwnAccounts(filter: AccountFilter) {
  const api = useApi();
  return useList(["own-accounts", filter], (cursor) =>
    readAccounts(api, { ...filter, ...pageAt(cursor) }),
  );
}

/** Reads all accounts of the partner, as choices of selects. */
export function useAllAccounts() {
  const api = useApi();
  return useQuery({
    queryKey: ["own-accounts", "all"],
    queryFn: () => allPages((cursor) => readAccounts(api, pageAt(cursor))),
    staleTime: NAMES_STALE_MS,
  });
}

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
