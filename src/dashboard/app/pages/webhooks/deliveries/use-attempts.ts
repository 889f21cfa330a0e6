import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { answerOf, atCursor } from "../../../api/client.ts";
import { type LiveState, useReconnect } from "../../../session/live.ts";
import { type ReadPage, usePages } from "../../../ui/pages.ts";
import { type AttemptFilter, type AttemptRow, isMatch, mergeRows, rowOf } from "../data/filters.ts";
import { type FollowAttempts, keys, useReader } from "../data/data.ts";
import { readableAt, type Reader } from "../data/reads.ts";

const PAGE = 100;

export async function readAttempts(
  reader: Reader,
  id: string,
  filter: AttemptFilter,
  cursor: string | undefined,
): Promise<ReadPage<AttemptRow>> {
  const { deliveries } = readableAt(reader, id);
  type Query = NonNullable<Parameters<typeof deliveries.get>[0]>["query"];
  // The assertion is needed because the filter values are plain strings from the address. They were checked
  // against the values that this version knows, and the API validates them again.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const query = { limit: PAGE, ...filter, ...atCursor(cursor) } as NonNullable<Query>;
  const page = await answerOf(deliveries.get({ query }));
  // Drops request and response bodies, because the bodies of thousands of attempts would fill the memory.
  return { rows: page.data.map(rowOf), next: page.next_cursor };
}

function useAttemptPages(id: string, filter: AttemptFilter) {
  const reader = useReader();
  return usePages(keys.attempts(id, filter), (cursor) => readAttempts(reader, id, filter, cursor), {
    isReadOnce: true,
  });
}

/**
 * Number of new attempts per flush from which the list counts as outdated. In a larger burst the event stream
 * may drop attempts, so the list must be read again.
 */
const BURST = 100;
const FLUSH_MS = 200;
/**
 * Maximum number of attempts that are added from the event stream. Beyond it the list starts again with the
 * newest page, so that hours of watching do not fill the memory.
 */
const MAX_LIVE_ROWS = 500;

interface AttemptStream {
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  /**
   * Returns whether the newest row is in view. Only then are new rows inserted immediately, because otherwise
   * they would move the rows that the user is reading.
   */
  readonly isAtTop: () => boolean;
}

/** Reads the attempts that match the filter, newest first. Counts new attempts that are not shown yet. */
export function useAttempts(id: string, filter: AttemptFilter, stream: AttemptStream) {
  const { pages, slots, onView, readNewest } = useAttemptPages(id, filter);
  const { liveRows, waiting, isOutdated, beginAnew } = useLiveRows(filter, stream, readNewest);
  // True if the cache contains several pages from an earlier visit. The attempts since that visit are missing there.
  const [isLeftOver, setLeftOver] = useState((pages.data?.pages.length ?? 0) > 1);
  const newest = pages.data?.pages[0];
  const rows = useMemo(
    () => [...mergeRows(liveRows, newest?.rows ?? []), ...slots.slice(newest?.rows?.length ?? 0)],
    [liveRows, newest, slots],
  );
  const ahead = rows.length - slots.length;
  const view = useCallback(
    (first: number, last: number) => onView(first - ahead, last - ahead),
    [onView, ahead],
  );
  const showNewest = async () => {
    await beginAnew();
    setLeftOver(false);
  };
  return { pages, rows, onView: view, waiting, isOutdated: isOutdated || isLeftOver, showNewest };
}

/** Collects the attempts that arrived over the event stream since the list was read. */
function useLiveRows(
  filter: AttemptFilter,
  { live, follow, isAtTop }: AttemptStream,
  readNewest: () => Promise<void>,
) {
  const [liveRows, setLiveRows] = useState<readonly AttemptRow[]>([]);
  const [waiting, setWaiting] = useState(0);
  const [isOutdated, setOutdated] = useState(live === "waiting");
  const [wasLive, setWasLive] = useState(live);
  if (live !== wasLive) {
    setWasLive(live);
    if (live === "waiting") setOutdated(true);
  }
  const kept = useRef(0);
  /** Reads the newest page again. Keeps the attempts that arrive during the read, because the page may lack them. */
  const beginAnew = async () => {
    const read = kept.current;
    await readNewest();
    kept.current -= read;
    setLiveRows((before) => before.slice(read));
    setWaiting(0);
    setOutdated(false);
  };
  useReconnect(live, () => {
    if (isAtTop()) void beginAnew();
  });
  const latest = useRef({ filter, isAtTop, beginAnew });
  useEffect(() => {
    latest.current = { filter, isAtTop, beginAnew };
  });
  useEffect(() => {
    let batch: AttemptRow[] = [];
    let isFull = false;
    const take = () => {
      const fresh = batch;
      batch = [];
      if (fresh.length >= BURST) setOutdated(true);
      if (fresh.length === 0) return;
      if (!latest.current.isAtTop()) {
        setWaiting((before) => before + fresh.length);
        return;
      }
      kept.current += fresh.length;
      setLiveRows((before) => [...before, ...fresh]);
      if (isFull || kept.current <= MAX_LIVE_ROWS) return;
      isFull = true;
      void latest.current.beginAnew().finally(() => (isFull = false));
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
  return { liveRows, waiting, isOutdated, beginAnew };
}
