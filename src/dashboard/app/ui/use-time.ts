import { useEffect, useLayoutEffect, useState } from "react";

import { apiErrorOf } from "../api/client.ts";

const COUNT_MS = 250;

/** Returns the current time in ms, and renders again at this interval. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Counts the whole seconds until an instant in ms; 0 if there is none or it has passed. */
export function useCountdown(until: number | undefined): number {
  const [left, setLeft] = useState(0);
  // A layout effect runs before the first paint, so that a running wait never appears as finished.
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

/** The wait after a 429 without Retry-After. */
const UNKNOWN_WAIT_S = 5;

/**
 * Counts the seconds until the server accepts another try after a 429 that `waitAfter` was called with; 0 if
 * it accepts one now.
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
