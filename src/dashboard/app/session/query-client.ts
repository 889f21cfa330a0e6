import { notifyManager, QueryClient } from "@tanstack/react-query";

import { apiErrorOf } from "../api/client.ts";

// By default what a click has begun is shown a moment later, and a second click in between would begin it again.
notifyManager.setScheduler(queueMicrotask);

const STALE_MS = 5_000;
const TRIES = 2;

/** What was read is kept until sign-out; an answer of 4xx is final, anything else is asked for again. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: STALE_MS,
      retry: (failures, error) => failures < TRIES && (apiErrorOf(error)?.status ?? 500) >= 500,
    },
    mutations: {
      // Without a connection a write fails and says so; it does not wait to be sent later.
      networkMode: "always",
      // Answers hold secrets: nothing of them is kept once the component that sent them is gone.
      gcTime: 0,
    },
  },
});
