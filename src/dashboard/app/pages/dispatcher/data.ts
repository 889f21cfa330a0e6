import { useQuery, useQueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient } from "../../api/api-client.ts";
import { useApi } from "../../session/session.tsx";
import { useLive } from "../../session/use-live.ts";

const KEY = ["dispatcher"];

function readState(api: ApiClient) {
  return answerOf(api.admin.dispatcher.get());
}

export type DispatcherState = Awaited<ReturnType<typeof readState>>;

/** Reads what the dispatchers do at the moment; the stream keeps it fresh. */
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
