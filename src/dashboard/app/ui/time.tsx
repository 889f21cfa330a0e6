import { Tooltip } from "@mantine/core";
import { useEffect, useLayoutEffect, useState } from "react";

import { inWords } from "./instants.ts";

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const TICK_MS = 10_000;
const COUNT_MS = 250;

interface TimeProps {
  readonly at: string | null;
  /** Whether it may be to come. What has happened never is, whatever the clock of this machine or its last tick says. */
  readonly mayBeAhead?: boolean;
}

/** Shows an instant as people say it, and the exact one on hover and focus. */
export function Time({ at, mayBeAhead = false }: TimeProps) {
  const now = useNow(TICK_MS);
  if (at === null) return <>–</>;
  const instant = new Date(at);
  return (
    <Tooltip label={EXACT.format(instant)} events={{ hover: true, focus: true, touch: true }}>
      <time dateTime={at}>{inWords(instant.getTime(), now, mayBeAhead)}</time>
    </Tooltip>
  );
}

export function ExactTime({ at }: { readonly at: string | null }) {
  return at === null ? <>–</> : <time dateTime={at}>{EXACT.format(new Date(at))}</time>;
}

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** Shows a date with hours and minutes, for an instant that is long ago or matters for long. */
export function Day({ at }: { readonly at: string }) {
  return <time dateTime={at}>{DAY.format(new Date(at))}</time>;
}

export function LastUsed({ at }: { readonly at: string | null }) {
  if (at === null) return <>never used</>;
  return (
    <>
      last used <Time at={at} />
    </>
  );
}

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

/** Writes 65 as `1:05`. */
export function minutes(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
