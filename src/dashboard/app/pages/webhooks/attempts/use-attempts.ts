import { useEffect, useMemo, useRef, useState } from "react";

import type { LiveState } from "../../../api/event-stream.ts";
import { useAttemptPages } from "../data/attempt-pages.ts";
import {
  isMatch,
  mergeRows,
  rowOf,
  type AttemptFilter,
  type AttemptRow,
} from "../data/attempt-rows.ts";
import type { FollowAttempts } from "../data/use-subscription-live.ts";

/** If more come at once, the stream itself may have left some out. */
const BURST = 100;
const FLUSH_MS = 200;

interface AttemptStream {
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  /** Whether the newest row is in view: only then new rows may appear at once, else they would move what one reads. */
  readonly isAtTop: () => boolean;
}

/** Reads the attempts that fit the filter, newest first, and counts those that have come meanwhile. */
export function useAttempts(id: string, filter: AttemptFilter, stream: AttemptStream) {
  const { pages, readNewest } = useAttemptPages(id, filter);
  const { arrived, waiting, isBehind, forget } = useArrivals(filter, stream);
  // Pages that were left from an earlier look do not have what has come since.
  const [isLeftOver, setLeftOver] = useState((pages.data?.pages.length ?? 0) > 1);
  const rows = useMemo(
    () => mergeRows(arrived, pages.data?.pages.flatMap((page) => page.rows) ?? []),
    [arrived, pages.data],
  );
  const showNewest = async () => {
    await readNewest();
    forget();
    setLeftOver(false);
  };
  return { pages, rows, waiting, isBehind: isBehind || isLeftOver, showNewest };
}

/** Collects what the stream has brought since the list was read. */
function useArrivals(filter: AttemptFilter, { live, follow, isAtTop }: AttemptStream) {
  const [arrived, setArrived] = useState<readonly AttemptRow[]>([]);
  const [waiting, setWaiting] = useState(0);
  const [isBehind, setBehind] = useState(false);
  const [wasLive, setWasLive] = useState(live);
  if (live !== wasLive) {
    setWasLive(live);
    // The stream does not bring later what happens while it is away.
    if (live === "waiting") setBehind(true);
  }
  const latest = useRef({ filter, isAtTop });
  useEffect(() => {
    latest.current = { filter, isAtTop };
  });
  useEffect(() => {
    let batch: AttemptRow[] = [];
    const take = () => {
      const fresh = batch;
      batch = [];
      if (fresh.length >= BURST) setBehind(true);
      if (fresh.length === 0) return;
      if (latest.current.isAtTop()) setArrived((before) => [...before, ...fresh]);
      else setWaiting((before) => before + fresh.length);
    };
    const timer = setInterval(take, FLUSH_MS);
    const leave = follow((row) => {
      if (isMatch(row, latest.current.filter)) batch.push(rowOf(row));
    });
    return () => {
      clearInterval(timer);
      leave();
    };
  }, [follow]);
  const forget = () => {
    setArrived([]);
    setWaiting(0);
    setBehind(false);
  };
  return { arrived, waiting, isBehind, forget };
}
