import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, use, useCallback, useRef } from "react";

import { useReconnect, useLive } from "../../../session/live.ts";
import { useApi, useSession } from "../../../session/session.tsx";
import type { AttemptRow } from "./filters.ts";
import {
  readCatalog,
  readDelivery,
  type Reader,
  readHealth,
  readIncident,
  readStats,
  readSubscription,
  readSubscriptions,
  streamPath,
} from "./reads.ts";
import type { Span } from "./stats-range.ts";

/** Partner whose webhooks an operator is viewing. */
interface ViewedPartner {
  readonly id: number;
  readonly name: string;
}

/** Provides the partner whose webhooks an operator is viewing; undefined on a partner's own pages. */
export const ViewedPartnerContext = createContext<ViewedPartner | undefined>(undefined);

export const useViewedPartner = (): ViewedPartner | undefined => use(ViewedPartnerContext);

/**
 * Returns whether controls that change something must be hidden, which is the case for operators and for
 * read-only portal links.
 */
export function useIsReadOnly(): boolean {
  const { portal } = useSession();
  const isViewed = useViewedPartner() !== undefined;
  return isViewed || (portal?.isReadOnly ?? false);
}

export function useReader(): Reader {
  return { api: useApi(), partnerId: useViewedPartner()?.id };
}

/**
 * Query keys of cached webhook data. All data of a subscription has a key that begins with the key of the
 * subscription, so that one call can invalidate all of it.
 */
export const keys = {
  all: ["webhooks"],
  list: ["webhooks", "list"],
  listOf: (partnerId: number | undefined) => ["webhooks", "list", partnerId],
  catalog: ["webhooks", "catalog"],
  one: (id: string) => ["webhooks", "one", id],
  incident: (id: string) => ["webhooks", "one", id, "incident"],
  health: (id: string) => ["webhooks", "one", id, "health"],
  allStats: (id: string) => ["webhooks", "one", id, "stats"],
  stats: (id: string, span: Span, isByEvent: boolean) => [
    "webhooks",
    "one",
    id,
    "stats",
    span,
    isByEvent,
  ],
  attempts: (id: string, filter: object) => ["webhooks", "one", id, "attempts", filter],
  messages: (id: string, filter: object) => ["webhooks", "one", id, "messages", filter],
  delivery: (id: string, eventId: string) => ["webhooks", "one", id, "delivery", eventId],
} as const;

const LIST_MS = 10_000;
const STATS_MS = 30_000;
/**
 * Polling interval in ms before the first delivery attempt. It is short because the user is waiting for the
 * result of a test.
 */
const WAITING_FOR_ATTEMPT_MS = 500;
const WAITING_FOR_RETRY_MS = 2_000;

export function useSubscriptions() {
  const reader = useReader();
  return useQuery({
    queryKey: keys.listOf(reader.partnerId),
    queryFn: () => readSubscriptions(reader),
    refetchInterval: LIST_MS,
  });
}

export function useSubscription(id: string) {
  const reader = useReader();
  return useQuery({ queryKey: keys.one(id), queryFn: () => readSubscription(reader, id) });
}

export function useCatalog() {
  const reader = useReader();
  return useQuery({
    queryKey: keys.catalog,
    queryFn: () => readCatalog(reader),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useHealth(id: string) {
  const reader = useReader();
  return useQuery({
    queryKey: keys.health(id),
    queryFn: () => readHealth(reader, id),
    refetchInterval: LIST_MS,
  });
}

export function useIncident(id: string) {
  const reader = useReader();
  return useQuery({
    queryKey: keys.incident(id),
    queryFn: () => readIncident(reader, id),
    refetchInterval: LIST_MS,
  });
}

/**
 * Reads the statistics of a subscription. When the time span changes, the previous statistics stay visible
 * until the new ones have loaded.
 */
export function useStats(id: string, span: Span, isByEvent = false) {
  const reader = useReader();
  return useQuery({
    queryKey: keys.stats(id, span, isByEvent),
    queryFn: () => readStats(reader, id, span, isByEvent),
    refetchInterval: STATS_MS,
    placeholderData: keepPreviousData,
  });
}

/** Polls a delivery until it is settled, which means that no further attempt will follow. */
export function useDelivery(id: string, eventId: string) {
  const reader = useReader();
  return useQuery({
    queryKey: keys.delivery(id, eventId),
    queryFn: () => readDelivery(reader, id, eventId),
    refetchInterval: ({ state: { data } }) => {
      if (data === undefined || data.state === "pending") return WAITING_FOR_ATTEMPT_MS;
      return data.settled_at === null ? WAITING_FOR_RETRY_MS : false;
    },
  });
}

export type FollowAttempts = (listener: (row: AttemptRow) => void) => () => void;

/**
 * Opens the event stream of a subscription, which the whole page shares. Stream messages update the query
 * cache, and delivery attempts are passed to the listeners that were added with `follow`.
 */
export function useSubscriptionLive(id: string) {
  const client = useQueryClient();
  const listeners = useRef(new Set<(row: AttemptRow) => void>());
  const hasUpdates = useRef(false);
  const state = useLive(streamPath(useReader(), id), (event, data) => {
    if (event === "subscription") client.setQueryData(keys.one(id), data);
    if (event === "attempt") {
      hasUpdates.current = true;
      // The assertion is needed because stream data has the type `unknown`. The server declares the type of the
      // stream's attempts beside that of the API's attempts.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      for (const listener of listeners.current) listener(data as AttemptRow);
    }
    if (event !== "health") return;
    client.setQueryData(keys.health(id), data);
    // Refreshes the charts with each health message, because health messages are less frequent than attempts.
    if (hasUpdates.current) void client.invalidateQueries({ queryKey: keys.allStats(id) });
    hasUpdates.current = false;
  });
  useReconnect(state, () => {
    hasUpdates.current = true;
  });
  const follow: FollowAttempts = useCallback((listener) => {
    listeners.current.add(listener);
    return () => listeners.current.delete(listener);
  }, []);
  return { state, follow };
}
