import { useEffect, useLayoutEffect, useState } from "react";

import { apiErrorOf } from "../api/client.ts";

const COUNT_MS = 250;

/** Returns the current time in ms, and renders the component again after each interval of `everyMs`. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Returns the whole seconds until a time in ms, and updates them. Returns 0 if there is no time or it has passed. */
export function useCountdown(until: number | undefined): number {
  const [left, setLeft] = useState(0);
  // Uses a layout effect, which runs before the first paint, so that a running countdown never appears as finished.
  useLayoutEffect(() => {
    const look = () => setLeft(Math.max(0, Math.ceil(((until ?? 0) - Date.now()) / 1_000)));
    look();
    const timer = setInterval(() => {
      look();
      if (Date.now() >= (until ?? 0)) clearInterval(timer);
    }, COUNT_MS);
    return () => clearInterval(timer);
  }, [until]);
  return left;
}

/** Seconds to wait after a 429 response without a Retry-After header. */
const UNKNOWN_WAIT_S = 5;

/**
 * Counts down the seconds until the server accepts another request after a 429 response. `waitAfter` must be
 * called with the error of the response; `wait` is 0 when a request is possible.
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
