import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";

import { useApi } from "../../session.tsx";
import type { ClientsPath } from "./client-model.ts";

const PAGE = 20;

export function useClients(path: ClientsPath) {
  const api = useApi();
  const cache = useQueryClient();
  const queryKey = ["oauth-clients", path];
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam }) =>
      api.call("GET", path, { query: { limit: PAGE, ...(pageParam && { cursor: pageParam }) } }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  return {
    clients: query.data?.pages.flatMap((page) => page.data),
    error: query.error,
    retry: () => void query.refetch(),
    next: query.hasNextPage ? () => void query.fetchNextPage() : undefined,
    refresh: () => cache.invalidateQueries({ queryKey }),
  };
}

export type OAuthClient = NonNullable<ReturnType<typeof useClients>["clients"]>[number];
