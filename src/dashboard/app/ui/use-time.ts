import { useEffect, useLayoutEffect, useState } from "react";

import { apiErrorOf } from "../api/client.ts";

const COUNT_MS = 250;

/** Answers the present in ms, and renders anew as time goes by. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Counts the whole seconds down until an instant in ms; 0 where there is none or it has passed. */
export function useCountdown(until: number | undefined): number {
  const [left, setLeft] = useState(0);
  // This runs before the paint: a wait must not look as if it were over.
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
