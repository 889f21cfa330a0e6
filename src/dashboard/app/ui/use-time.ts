import { useEffect, useLayoutEffect, useState } from "react";

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
