import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { answerOf, atCursor } from "../../../api/client.ts";
import { type LiveState, useCameBack } from "../../../session/live.ts";
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
  // The address was validated as far as this version knows the values; the API makes the final decision.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const query = { limit: PAGE, ...filter, ...atCursor(cursor) } as NonNullable<Query>;
  const page = await answerOf(deliveries.get({ query }));
  // Bodies are dropped, because those of thousands of rows would fill the memory.
  return { rows: page.data.map(rowOf), next: page.next_cursor };
}

function useAttemptPages(id: string, filter: AttemptFilter) {
  const reader = useReader();
  return usePages(keys.attempts(id, filter), (cursor) => readAttempts(reader, id, filter, cursor), {
    isReadOnce: true,
  });
}

/** The stream may drop attempts in a larger burst, so the list must be read again. */
const BURST = 100;
const FLUSH_MS = 200;
/**
 * Above this number of live rows the list starts again with the newest page, so that hours of watching do not
 * fill the memory.
 */
const ARRIVALS_KEPT = 500;

interface AttemptStream {
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  /**
   * Returns whether the newest row is in view. New rows are inserted at once only then, because otherwise
   * they would move the rows that the user reads.
   */
  readonly isAtTop: () => boolean;
}

/** Reads the attempts that match the filter, newest first, and counts new ones that are not shown yet. */
export function useAttempts(id: string, filter: AttemptFilter, stream: AttemptStream) {
  const { pages, slots, onView, readNewest } = useAttemptPages(id, filter);
  const { arrived, waiting, isBehind, beginAnew } = useArrivals(filter, stream, readNewest);
  // Pages in the cache from an earlier visit lack the attempts since then.
  const [isLeftOver, setLeftOver] = useState((pages.data?.pages.length ?? 0) > 1);
  const newest = pages.data?.pages[0];
  const rows = useMemo(
    () => [...mergeRows(arrived, newest?.rows ?? []), ...slots.slice(newest?.rows?.length ?? 0)],
    [arrived, newest, slots],
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
  return { pages, rows, onView: view, waiting, isBehind: isBehind || isLeftOver, showNewest };
}

/** Collects the attempts that the stream has delivered since the list was read. */
function useArrivals(
  filter: AttemptFilter,
  { live, follow, isAtTop }: AttemptStream,
  readNewest: () => Promise<void>,
) {
  const [arrived, setArrived] = useState<readonly AttemptRow[]>([]);
  const [waiting, setWaiting] = useState(0);
  const [isBehind, setBehind] = useState(live === "waiting");
  const [wasLive, setWasLive] = useState(live);
  if (live !== wasLive) {
    setWasLive(live);
    if (live === "waiting") setBehind(true);
  }
  const kept = useRef(0);
  /** Reads the newest page. Attempts that arrive meanwhile may be missing on it, so they are kept. */
  const beginAnew = async () => {
    const read = kept.current;
    await readNewest();
    kept.current -= read;
    setArrived((before) => before.slice(read));
    setWaiting(0);
    setBehind(false);
  };
  useCameBack(live, () => {
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
      if (fresh.length >= BURST) setBehind(true);
      if (fresh.length === 0) return;
      if (!latest.current.isAtTop()) {
        setWaiting((before) => before + fresh.length);
        return;
      }
      kept.current += fresh.length;
      setArrived((before) => [...before, ...fresh]);
      if (isFull || kept.current <= ARRIVALS_KEPT) return;
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
  return { arrived, waiting, isBehind, beginAnew };
}
