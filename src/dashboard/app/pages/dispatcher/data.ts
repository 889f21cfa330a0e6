import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useSearchParams } from "wouter";

import { answerOf, type ApiClient, atCursor, type DataOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { useLive } from "../../session/live.ts";
import { listOptions, type RowOf, useList } from "../../ui/pages.ts";

const dispatcherOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["dispatcher"],
    queryFn: () => answerOf(api.admin.dispatcher.get()),
    staleTime: Number.POSITIVE_INFINITY,
  });

export type DispatcherState = DataOf<typeof dispatcherOptions>;

/** Reads the current state of the dispatchers once; afterwards the event stream keeps the cached state up to date. */
export function useDispatcherState() {
  const options = dispatcherOptions(useApi());
  const queries = useQueryClient();
  const live = useLive("/admin/stream", {
    dispatcher: (state: DispatcherState) => queries.setQueryData(options.queryKey, state),
  });
  return { state: useQuery(options), live };
}

const BACKLOGS_MS = 5_000;

/**
 * Reads the subscriptions that have queued events. With `depth`, the subscriptions with the longest queue come first;
 * with `age`, those with the oldest event.
 */
const backlogsOptions = (api: ApiClient, order: "depth" | "age") => ({
  ...listOptions(["backlogs", order], async (cursor) => {
    const query = { order, ...atCursor(cursor) };
    const { data, ...page } = await answerOf(api.admin.backlogs.get({ query }));
    return { ...page, data: data.map((one) => ({ ...one, id: one.subscription_id })) };
  }),
  refetchInterval: BACKLOGS_MS,
});

/** Returns the shown order of the subscriptions with queued events, which the address has, and their list. */
export function useBacklogs() {
  const [params, setParams] = useSearchParams();
  const order = params.get("order") === "age" ? "age" : "depth";
  const setOrder = (next: string) =>
    setParams(next === "age" ? { order: next } : {}, { replace: true });
  return { order, setOrder, list: useList(backlogsOptions(useApi(), order)) };
}

export type Backlog = RowOf<typeof backlogsOptions>;
