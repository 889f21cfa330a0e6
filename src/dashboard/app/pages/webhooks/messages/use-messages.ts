import { useEffect, useRef, useState } from "react";

import type { LiveState } from "../../../api/event-stream.ts";
import { useCameBack } from "../../../session/use-came-back.ts";
import { isMatch, type AttemptRow } from "../data/attempt-rows.ts";
import { useMessagePages } from "../data/message-pages.ts";
import { ALL_FAILURES, type MessageFilter } from "../data/message-filter.ts";
import type { FollowAttempts } from "../data/use-subscription-live.ts";

/** The newest page is read again so often at the most, whatever comes. */
const PAUSE_MS = 2_000;
const LOOK_MS = 200;

interface MessageStream {
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  /** Whether the newest row is in view: only then it may change at once, else it would move what one reads. */
  readonly isAtTop: () => boolean;
}

/** Reads the messages that fit the filter, and reads the newest again when an attempt has come that may be one of them. */
export function useMessages(id: string, filter: MessageFilter, stream: MessageStream) {
  const { pages, slots, onView, readNewest } = useMessagePages(id, filter);
  const { live, follow, isAtTop } = stream;
  const [isBehind, setBehind] = useState(live === "waiting" || (pages.data?.pages.length ?? 0) > 1);
  const [wasLive, setWasLive] = useState(live);
  if (live !== wasLive) {
    setWasLive(live);
    if (live === "waiting") setBehind(true);
  }
  const hasNews = useRef(false);
  useCameBack(live, () => {
    hasNews.current = true;
  });
  const showNewest = async () => {
    hasNews.current = false;
    await readNewest();
    setBehind(false);
  };
  const latest = useRef({ filter, isAtTop, showNewest });
  useEffect(() => {
    latest.current = { filter, isAtTop, showNewest };
  });
  useEffect(() => {
    let quietUntil = 0;
    const take = () => {
      if (!hasNews.current || performance.now() < quietUntil) return;
      hasNews.current = false;
      if (!latest.current.isAtTop()) {
        setBehind(true);
        return;
      }
      quietUntil = Number.POSITIVE_INFINITY;
      void latest.current.showNewest().finally(() => (quietUntil = performance.now() + PAUSE_MS));
    };
    const timer = setInterval(take, LOOK_MS);
    const leave = follow((row) => {
      if (mayMatch(row, latest.current.filter)) hasNews.current = true;
    });
    return () => {
      clearInterval(timer);
      leave();
    };
  }, [follow]);
  return { pages, rows: slots, onView, isBehind, showNewest };
}

/** Whether an attempt may belong to the list; what it is about and what was answered the stream does not tell. */
function mayMatch(
  row: AttemptRow,
  { event, event_id, outcome, since, until }: MessageFilter,
): boolean {
  if (outcome === ALL_FAILURES && row.outcome === "delivered") return false;
  const named = outcome === undefined || outcome === ALL_FAILURES ? {} : { outcome };
  return isMatch(row, {
    ...named,
    ...(event !== undefined && { event }),
    ...(event_id !== undefined && { event_id }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  });
}
