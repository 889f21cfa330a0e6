import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient, atCursor, type DataOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { useLive } from "../../session/live.ts";
import { listOptions, type RowOf } from "../../ui/pages.ts";

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
export const backlogsOptions = (api: ApiClient, order: "depth" | "age") => ({
  ...listOptions(["backlogs", order], async (cursor) => {
    const query = { order, ...atCursor(cursor) };
    const { data, ...page } = await answerOf(api.admin.backlogs.get({ query }));
    return { ...page, data: data.map((one) => ({ ...one, id: one.subscription_id })) };
  }),
  refetchInterval: BACKLOGS_MS,
});

export type Backlog = RowOf<typeof backlogsOptions>;
