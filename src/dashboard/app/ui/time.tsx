import { Tooltip } from "@mantine/core";

import { inWords } from "./instants.ts";
import { useNow } from "./use-time.ts";

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const TICK_MS = 10_000;

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
