import { notifyManager, QueryClient } from "@tanstack/react-query";

import { apiErrorOf } from "../api/client.ts";

// Renders state changes in a microtask. With the default, a later task, a second click in between would start a
// mutation twice.
notifyManager.setScheduler(queueMicrotask);

const STALE_MS = 5_000;
const TRIES = 2;

/**
 * Cache of API responses, which is cleared at sign-out. Responses of 4xx are final; network errors and 5xx are
 * retried twice.
 */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: STALE_MS,
      retry: (failures, error) => failures < TRIES && (apiErrorOf(error)?.status ?? 500) >= 500,
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
