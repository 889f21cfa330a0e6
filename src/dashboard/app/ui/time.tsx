import { Button, Group, Tooltip } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useLayoutEffect, useState, useSyncExternalStore } from "react";

import { apiErrorOf } from "../api/client.ts";
import { inWords } from "./format.ts";

/** Time zone in which the pages show times. */
export type Zone = "local" | "utc";

/** Returns the time zone that the user has chosen, and a function that changes it for all pages of the browser. */
export function useZone() {
  return useLocalStorage<Zone>({
    key: "reviewrelay.zone",
    defaultValue: "local",
    getInitialValueInEffect: false,
  });
}

const inZones = (options: Intl.DateTimeFormatOptions) => ({
  local: new Intl.DateTimeFormat(undefined, options),
  utc: new Intl.DateTimeFormat(undefined, { ...options, timeZone: "UTC" }),
});

const EXACT_FORMATS = inZones({
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "numeric",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
});
const SHORT_FORMATS = inZones({
  month: "short",
  day: "numeric",
  hour: "numeric",
  minute: "2-digit",
  second: "2-digit",
});
const CLOCK = { hour: "numeric", minute: "2-digit" } as const;
const CLOCK_FORMATS = inZones(CLOCK);
const ZONED_CLOCK_FORMATS = inZones({ ...CLOCK, timeZoneName: "short" });

/** Formats a time with its date, without a year and a zone, for the rows of a list that names its zone once. */
export const shortTime = (at: string, zone: Zone): string =>
  SHORT_FORMATS[zone].format(new Date(at));

/** Formats the hours and minutes of a time. */
export const clockTime = (at: string, zone: Zone): string =>
  CLOCK_FORMATS[zone].format(new Date(at));

/** Returns whether two times are on the same day. */
export const isSameDay = (one: string, other: string, zone: Zone): boolean =>
  shortTime(one, zone).split(",")[0] === shortTime(other, zone).split(",")[0];

/** Returns the abbreviation of a time zone, such as `UTC` or `GMT+2`. */
export function zoneName(zone: Zone): string {
  const parts = EXACT_FORMATS[zone].formatToParts(new Date());
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
}

const TICK_MS = 10_000;

/** Names the time zone of the pages, with a button that changes it unless local time is UTC. */
export function ZoneSwitch() {
  const [zone, setZone] = useZone();
  return (
    <Group gap={0} wrap="nowrap" fz="xs" c="dimmed" flex="none">
      <span>
        <span className="unseen-on-phones">Times in </span>
        {zoneName(zone)}
      </span>
      {zoneName("local") !== zoneName("utc") && (
        <Button
          size="xs"
          px="xs"
          variant="subtle"
          onClick={() => setZone(zone === "local" ? "utc" : "local")}
        >
          {zone === "local" ? "Show UTC" : "Show local time"}
        </Button>
      )}
    </Group>
  );
}

interface TimeProps {
  readonly at: string | null;
  /**
   * Allows times in the future. Must not be set for past events: if the clock of this computer is behind, such
   * an event would be shown as "in 2 seconds".
   */
  readonly mayBeAhead?: boolean;
}

/** Shows a time relative to now, such as "2 hours ago". A tooltip shows the exact time on hover and focus. */
export function Time({ at, mayBeAhead = false }: TimeProps) {
  const now = useNow(TICK_MS);
  const [zone] = useZone();
  if (at === null) return <>–</>;
  const instant = new Date(at);
  return (
    <Tooltip
      label={EXACT_FORMATS[zone].format(instant)}
      events={{ hover: true, focus: true, touch: true }}
    >
      <time dateTime={at}>{inWords(instant.getTime(), now, mayBeAhead)}</time>
    </Tooltip>
  );
}

export function ExactTime({ at }: { readonly at: string | null }) {
  const [zone] = useZone();
  return at === null ? (
    <>–</>
  ) : (
    <time dateTime={at}>{EXACT_FORMATS[zone].format(new Date(at))}</time>
  );
}

const DAY_FORMATS = inZones({
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "numeric",
  minute: "2-digit",
  timeZoneName: "short",
});

/** Shows a date with hours and minutes, for times far away. */
export function Day({ at }: { readonly at: string }) {
  const [zone] = useZone();
  return <time dateTime={at}>{DAY_FORMATS[zone].format(new Date(at))}</time>;
}

/** Shows the hours and minutes of a time, with the date if it is on another day than now. */
export function NearTime({ at }: { readonly at: string }) {
  const now = useNow(TICK_MS);
  const [zone] = useZone();
  if (!isSameDay(at, new Date(now).toISOString(), zone)) return <Day at={at} />;
  return <time dateTime={at}>{ZONED_CLOCK_FORMATS[zone].format(new Date(at))}</time>;
}

export function LastUsed({ at }: { readonly at: string | null }) {
  return at === null ? "Never" : <Time at={at} />;
}

const COUNTDOWN_TICK_MS = 1_000;

/** Shows the seconds until a time. The role `timer` keeps screen readers from announcing every tick. */
export function Countdown({ to }: { readonly to: string }) {
  const seconds = Math.round((Date.parse(to) - useNow(COUNTDOWN_TICK_MS)) / 1_000);
  return (
    <time dateTime={to} role="timer" className="tabular">
      {seconds <= 0 ? "any moment now" : `in ${untilText(seconds)}`}
    </time>
  );
}

function untilText(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  const rest = seconds % 60;
  if (minutes === 0) return `${rest} s`;
  if (minutes < 60) return `${minutes} min ${rest} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const COUNT_MS = 250;

/** Age in ms at which the time of a shared clock is read again for a component that begins to use it. */
const STALE_MS = 1_000;

/** Creates a clock that ticks while components use it. All of them see the same time. */
function sharedClock(everyMs: number) {
  const listeners = new Set<() => void>();
  let now = Date.now();
  let timer: ReturnType<typeof setInterval> | undefined;
  const isStale = () => Math.abs(Date.now() - now) >= STALE_MS;
  const tick = () => {
    now = Date.now();
    for (const listener of listeners) listener();
  };
  return {
    read: () => {
      if (listeners.size === 0 && isStale()) now = Date.now();
      return now;
    },
    subscribe: (listener: () => void) => {
      listeners.add(listener);
      timer ??= setInterval(tick, everyMs);
      if (isStale()) tick();
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
  };
}

/** Clocks of the pages by interval, so that all times of a page change together. */
const clocks = new Map<number, ReturnType<typeof sharedClock>>();

/** Returns the current time in ms, and renders the component again after each interval of `everyMs`. */
export function useNow(everyMs: number): number {
  const clock = clocks.get(everyMs) ?? sharedClock(everyMs);
  clocks.set(everyMs, clock);
  return useSyncExternalStore(clock.subscribe, clock.read);
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
