import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useState } from "react";

import { answerOf, type ApiClient, ended, pageAt } from "../../api/client.ts";
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

/** Retries that one read of the audit log finds. */
const READ_RETRIES = 100;

/** How often an action was retried, and when last. `times` is null if earlier retries were not read. */
export interface Retries {
  readonly times: number | null;
  readonly last: string;
}

/** Reads the newest retries from the audit log, by the position of their action. */
const retriesOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["audit-log", "inbox-retries"],
    queryFn: async () => {
      const query = { action: "INBOX_RETRIED", limit: READ_RETRIES };
      const { data, next_cursor: next } = await answerOf(api.admin["audit-log"].get({ query }));
      const retries = new Map<unknown, Retries>();
      for (const { at, details } of data) {
        const { position } = details;
        const known = retries.get(position);
        const times = next === null ? (known?.times ?? 0) + 1 : null;
        retries.set(position, { times, last: known?.last ?? at });
      }
      return retries;
    },
  });

/** Returns how often an action was retried; undefined if it was not. */
export function useRetries({ position }: InboxAction): Retries | undefined {
  return useQuery(retriesOptions(useApi())).data?.get(position);
}

/** Requests that take a rejected action again, or drop an action. Each request invalidates the cached inbox. */
export function useInboxActions() {
  const { inbox } = useApi().admin;
  const { andRead, refresh } = useRefresh(INBOX);
  /**
   * Sends a request for each action, one after the other, and reads the inbox when they end. Goes on after a failure,
   * and throws the last one at the end.
   */
  const forEach = async (
    ids: readonly number[],
    request: (id: number) => Promise<unknown>,
    onProgress: (done: number) => void,
  ) => {
    let done = 0;
    let failure: unknown;
    for (const id of ids) {
      try {
        await request(id);
        onProgress(++done);
      } catch (error) {
        failure = error;
      }
    }
    await refresh();
    if (failure !== undefined) throw failure;
  };
  return {
    retryAll: (ids: readonly number[], onProgress: (done: number) => void) =>
      forEach(ids, (id) => ended(inbox({ id }).retry.post()), onProgress),
    dropAll: (ids: readonly number[], onProgress: (done: number) => void) =>
      forEach(ids, (id) => ended(inbox({ id }).delete()), onProgress),
    retry: (id: number) => andRead(answerOf(inbox({ id }).retry.post())),
    drop: (id: number) => andRead(answerOf(inbox({ id }).delete())),
  };
}
