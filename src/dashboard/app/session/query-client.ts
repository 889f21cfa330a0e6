import { notifyManager, QueryClient } from "@tanstack/react-query";

import { apiErrorOf } from "../api/client.ts";

// Renders state changes in a microtask. By default they are rendered in a later task, and a second click before that
// task would start the same mutation again.
notifyManager.setScheduler(queueMicrotask);

const STALE_MS = 5_000;
const RETRIES = 2;

/**
 * Cache of API responses, which is cleared at sign-out. A request that is answered with 4xx is not repeated; after a
 * network error or 5xx it is repeated twice.
 */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: STALE_MS,
      retry: (failures, error) => failures < RETRIES && (apiErrorOf(error)?.status ?? 500) >= 500,
    },
    mutations: {
      // Lets a mutation fail immediately without a network connection. By default TanStack Query would delay it
      // until the browser is online.
      networkMode: "always",
      // Removes the response of a mutation from the cache as soon as its component unmounts, because the
      // response may contain a secret.
      gcTime: 0,
    },
  },
});
