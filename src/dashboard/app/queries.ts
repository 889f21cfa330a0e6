import { QueryClient } from "@tanstack/react-query";

import { ApiError } from "../../client/api-error.ts";

const STALE_MS = 5_000;
const TRIES = 2;

/** What was read is kept until sign-out; an answer of 4xx is final, anything else is asked for again. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: STALE_MS,
      retry: (failures, error) =>
        failures < TRIES && !(error instanceof ApiError && error.status < 500),
    },
  },
});
