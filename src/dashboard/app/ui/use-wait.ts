import { useState } from "react";

import { apiErrorOf } from "../api/api-error.ts";
import { useCountdown } from "./use-time.ts";

/** The wait after an answer of 429 that has no Retry-After. */
const UNKNOWN_WAIT_S = 5;

/**
 * Counts the seconds until the server takes another try, after an error that `waitAfter` was given; 0 where it takes
 * one now.
 */
export function useWait() {
  const [until, setUntil] = useState<number>();
  const waitAfter = (error: unknown) => {
    const answer = apiErrorOf(error);
    const seconds = answer?.status === 429 ? (answer.retryAfterS ?? UNKNOWN_WAIT_S) : 0;
    setUntil(Date.now() + seconds * 1_000);
  };
  return { wait: useCountdown(until), waitAfter };
}
