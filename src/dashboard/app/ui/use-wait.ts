import { useState } from "react";

import { apiErrorOf } from "../api/api-error.ts";
import { useCountdown } from "./time.tsx";

/** For an answer of 429 without Retry-After. */
const UNKNOWN_WAIT_S = 5;

/** The seconds until the server takes another try, and what tells it of an error; 0 where it would take one now. */
export function useWait() {
  const [until, setUntil] = useState<number>();
  const waitAfter = (error: unknown) => {
    const answer = apiErrorOf(error);
    const seconds = answer?.status === 429 ? (answer.retryAfterS ?? UNKNOWN_WAIT_S) : 0;
    setUntil(Date.now() + seconds * 1_000);
  };
  return { wait: useCountdown(until), waitAfter };
}
