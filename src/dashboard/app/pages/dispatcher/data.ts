import { useQuery, useQueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient, atCursor } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { useLive } from "../../session/live.ts";
import { useList } from "../../ui/list.tsx";

const KEY = ["dispatcher"];

function readState(api: ApiClient) {
  return answerOf(api.admin.dispatcher.get());
}

export type DispatcherState = Awaited<ReturnType<typeof readState>>;

/** Reads the current state of the dispatchers once; afterwards the event stream keeps the cached state up to date. */
export function useDispatcherState() {
  const api = useApi();
  const queries = useQueryClient();
  const state = useQuery({
    queryKey: KEY,
    queryFn: () => readState(api),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const live = useLive("/admin/stream", (event, data) => {
    if (event === "dispatcher") queries.setQueryData(KEY, data);
  });
  return { state, live };
}

type BacklogOrder = "depth" | "age";

const BACKLOGS_MS = 5_000;

function readBacklogs(api: ApiClient, order: BacklogOrder, cursor: string | undefined) {
  return answerOf(api.admin.backlogs.get({ query: { order, ...atCursor(cursor) } }));
}

type BacklogRow = Awaited<ReturnType<typeof readBacklogs>>["data"][number];
export type Backlog = BacklogRow & { readonly id: string };

/**
 * Reads the subscriptions that have queued events. Subscriptions with the longest queue or with the oldest
 * event come first.
 */
export function useBacklogs(order: BacklogOrder) {
  const api = useApi();
  return useList<Backlog>(
    ["backlogs", order],
    async (cursor) => {
      const { data, ...page } = await readBacklogs(api, order, cursor);
      return { ...page, data: data.map((one) => ({ ...one, id: one.subscription_id })) };
    },
    { refetchInterval: BACKLOGS_MS },
  );
}
