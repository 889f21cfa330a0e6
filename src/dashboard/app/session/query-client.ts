import { notifyManager, QueryClient } from "@tanstack/react-query";

import { apiErrorOf } from "../api/client.ts";

// State changes are by default rendered in a later task, and a second click in between would start the
// mutation again.
notifyManager.setScheduler(queueMicrotask);

const STALE_MS = 5_000;
const TRIES = 2;

/** Cached data is kept until sign-out. An answer of 4xx is final; network errors and 5xx are retried. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: STALE_MS,
      retry: (failures, error) => failures < TRIES && (apiErrorOf(error)?.status ?? 500) >= 500,
    },
    mutations: {
      // A mutation without a connection fails at once, instead of being queued until the browser is online.
      networkMode: "always",
      // Answers of mutations may contain secrets, so they are removed from the cache as soon as their
      // component unmounts.
      gcTime: 0,
    },
  },
});
