import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useState } from "react";

import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";

const INBOX = ["inbox"];
/** Intervals in ms between two reads: while actions wait, and while none does. */
const BUSY_MS = 1_000;
const IDLE_MS = 5_000;
/** Wait in ms after which an action that nobody takes over means a problem. */
const STUCK_MS = 60_000;

export type InboxState = "rejected" | "waiting";

export const inboxStatusOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: [...INBOX, "status"],
    queryFn: () => answerOf(api.admin.inbox.status.get()),
    refetchInterval: ({ state: { data } }) => (data?.waiting ? BUSY_MS : IDLE_MS),
  });

/** Reads the counts of the inbox again and again, and its lists whenever a count has changed. */
export function useInboxStatus() {
  const status = useQuery(inboxStatusOptions(useApi()));
  const { refresh } = useRefresh([...INBOX, "list"]);
  const readLists = useEffectEvent(() => void refresh());
  const counts = status.data && `${status.data.waiting} ${status.data.rejected}`;
  useEffect(() => {
    if (counts !== undefined) readLists();
  }, [counts]);
  return status;
}

/**
 * Returns whether the same action is the oldest waiting one for a minute of this page. Its time of insertion does not
 * tell, because an action that was retried keeps it.
 */
export function useIsStuck(oldest: string | null, now: number): boolean {
  const [seen, setSeen] = useState({ oldest, at: now });
  if (seen.oldest !== oldest) setSeen({ oldest, at: now });
  return oldest !== null && seen.oldest === oldest && now - seen.at > STUCK_MS;
}

export const inboxOptions = (api: ApiClient, state: InboxState) => ({
  ...listOptions([...INBOX, "list", state], async (cursor) => {
    const query = { state, ...pageAt(cursor) };
    const { data, ...page } = await answerOf(api.admin.inbox.get({ query }));
    return { ...page, data: data.map((one) => ({ ...one, id: one.position })) };
  }),
  refetchInterval: IDLE_MS,
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
