import { queryOptions } from "@tanstack/react-query";

import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";

const INBOX = ["inbox"];
const READ_AGAIN_MS = 5_000;

export type InboxState = "rejected" | "waiting";

export const inboxStatusOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: [...INBOX, "status"],
    queryFn: () => answerOf(api.admin.inbox.status.get()),
    refetchInterval: READ_AGAIN_MS,
  });

export const inboxOptions = (api: ApiClient, state: InboxState) => ({
  ...listOptions([...INBOX, state], async (cursor) => {
    const query = { state, ...pageAt(cursor) };
    const { data, ...page } = await answerOf(api.admin.inbox.get({ query }));
    return { ...page, data: data.map((one) => ({ ...one, id: one.position })) };
  }),
  refetchInterval: READ_AGAIN_MS,
});

export type InboxAction = RowOf<typeof inboxOptions>;

/** Requests that take a rejected action again, or drop an action. Each request invalidates the cached inbox. */
export function useInboxActions() {
  const { inbox } = useApi().admin;
  const { andRead } = useRefresh(INBOX);
  return {
    retry: (id: number) => andRead(answerOf(inbox({ id }).retry.post())),
    drop: (id: number) => andRead(answerOf(inbox({ id }).delete())),
  };
}
