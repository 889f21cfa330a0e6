import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { useApi } from "../../session.tsx";
import type { ApiClient } from "../../ui/api-client.ts";
import { STATS_RANGES, type StatsRange } from "./stats-range.ts";

const readStats = (api: ApiClient, id: string, range: StatsRange) => {
  const { spanMs, stepS } = STATS_RANGES[range];
  const since = new Date(Date.now() - spanMs).toISOString();
  const query = { since, step: stepS };
  return api.call("GET", "/partner/webhooks/:id/stats", { params: { id }, query });
};

/** Everything of one subscription is below its id, so that one call forgets it all. */
export const keys = {
  all: ["webhooks"],
  list: ["webhooks", "list"],
  catalog: ["webhooks", "catalog"],
  one: (id: string) => ["webhooks", "one", id],
  health: (id: string) => ["webhooks", "one", id, "health"],
  stats: (id: string, range: string) => ["webhooks", "one", id, "stats", range],
  attempts: (id: string, filter: object) => ["webhooks", "one", id, "attempts", filter],
  delivery: (id: string, eventId: string) => ["webhooks", "one", id, "delivery", eventId],
} as const;

const LIST_MS = 10_000;
const STATS_MS = 30_000;
/** Until the first attempt there is little to see, and somebody waits for it. */
const WAITING_FOR_ATTEMPT_MS = 500;
const WAITING_FOR_RETRY_MS = 2_000;

export function useSubscriptions() {
  const api = useApi();
  return useQuery({
    queryKey: keys.list,
    queryFn: () => api.call("GET", "/partner/webhooks", { query: { limit: 100 } }),
    refetchInterval: LIST_MS,
  });
}

export function useSubscription(id: string) {
  const api = useApi();
  return useQuery({
    queryKey: keys.one(id),
    queryFn: () => api.call("GET", "/partner/webhooks/:id", { params: { id } }),
  });
}

export function useCatalog() {
  const api = useApi();
  return useQuery({
    queryKey: keys.catalog,
    queryFn: () => api.call("GET", "/partner/webhooks/events", {}),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useHealth(id: string) {
  const api = useApi();
  return useQuery({
    queryKey: keys.health(id),
    queryFn: () => api.call("GET", "/partner/webhooks/:id/health", { params: { id } }),
    refetchInterval: LIST_MS,
  });
}

/** What is shown stays until the next range is there. */
export function useStats(id: string, range: StatsRange) {
  const api = useApi();
  return useQuery({
    queryKey: keys.stats(id, range),
    queryFn: () => readStats(api, id, range),
    refetchInterval: STATS_MS,
    placeholderData: keepPreviousData,
  });
}

/** Asked again by itself until the delivery is settled. */
export function useDelivery(id: string, eventId: string) {
  const api = useApi();
  return useQuery({
    queryKey: keys.delivery(id, eventId),
    queryFn: () =>
      api.call("GET", "/partner/webhooks/:id/deliveries/:eventId", { params: { id, eventId } }),
    refetchInterval: ({ state: { data } }) => {
      if (data === undefined || data.state === "pending") return WAITING_FOR_ATTEMPT_MS;
      return data.settled_at === null ? WAITING_FOR_RETRY_MS : false;
    },
  });
}
