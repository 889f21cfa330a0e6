import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { answerOf, atCursor } from "../../../api/client.ts";
import { type LiveState, useReconnect } from "../../../session/live.ts";
import { type ReadPage, usePages } from "../../../ui/pages.ts";
import {
  ALL_FAILURES,
  type AttemptRow,
  isMatch,
  type MessageFilter,
  messageQuery,
} from "../data/filters.ts";
import { type FollowAttempts, keys, useReader } from "../data/data.ts";
import { type Message, readableAt, type Reader } from "../data/reads.ts";

const PAGE = 100;
/**
 * Maximum number of empty pages that are skipped automatically. A filtered page may be empty although later
 * pages contain matches; after this number the user must ask for more.
 */
const MAX_EMPTY_PAGES = 10;

async function readPage(
  reader: Reader,
  id: string,
  filter: MessageFilter,
  cursor: string | undefined,
): Promise<ReadPage<Message>> {
  let page = await readMessages(reader, id, filter, { limit: PAGE, cursor });
  for (let i = 0; i < MAX_EMPTY_PAGES && page.data.length === 0 && page.next_cursor !== null; i++)
    page = await readMessages(reader, id, filter, { limit: PAGE, cursor: page.next_cursor });
  return { rows: page.data, next: page.next_cursor };
}

export function readMessages(
  reader: Reader,
  id: string,
  filter: MessageFilter,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
) {
  const { messages } = readableAt(reader, id);
  type Query = NonNullable<Parameters<typeof messages.get>[0]>["query"];
  const given = { limit, ...messageQuery(filter, Date.now()), ...atCursor(cursor) };
  // The assertion is needed because the filter values are plain strings from the address. They were checked
  // against the values that this version knows, and the API validates them again.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return answerOf(messages.get({ query: given as unknown as NonNullable<Query> }));
}

function useMessagePages(id: string, filter: MessageFilter) {
  const reader = useReader();
  return usePages(keys.messages(id, filter), (cursor) => readPage(reader, id, filter, cursor), {
    isReadOnce: true,
  });
}

/** Reads one event in the form in which the event list returns it, which includes the review. */
export function useMessage(id: string, eventId: string) {
  const reader = useReader();
  const filter = { event_id: eventId };
  return useQuery({
    queryKey: keys.messages(id, { ...filter, limit: 1 }),
    queryFn: async () => {
      const page = await readMessages(reader, id, filter, { limit: 1, cursor: undefined });
      return page.data[0] ?? null;
    },
  });
}

/** Minimum interval in ms between two refreshes of the newest page. */
const REFRESH_MS = 2_000;
const CHECK_MS = 200;

interface MessageStream {
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  /**
   * Returns whether the newest row is in view. Only then is the list updated immediately, because otherwise new
   * rows would move the rows that the user is reading.
   */
  readonly isAtTop: () => boolean;
}

/**
 * Reads the events that match the filter. Reads the newest page again when the event stream delivers an attempt
 * that may belong to the list.
 */
export function useMessages(id: string, filter: MessageFilter, stream: MessageStream) {
  const { pages, slots, onView, readNewest } = useMessagePages(id, filter);
  const { live, follow, isAtTop } = stream;
  const [isOutdated, setOutdated] = useState(
    live === "waiting" || (pages.data?.pages.length ?? 0) > 1,
  );
  const [wasLive, setWasLive] = useState(live);
  if (live !== wasLive) {
    setWasLive(live);
    if (live === "waiting") setOutdated(true);
  }
  const hasUpdates = useRef(false);
  useReconnect(live, () => {
    hasUpdates.current = true;
  });
  const showNewest = async () => {
    hasUpdates.current = false;
    await readNewest();
    setOutdated(false);
  };
  const latest = useRef({ filter, isAtTop, showNewest });
  useEffect(() => {
    latest.current = { filter, isAtTop, showNewest };
  });
  useEffect(() => {
    let quietUntil = 0;
    const take = () => {
      if (!hasUpdates.current || performance.now() < quietUntil) return;
      hasUpdates.current = false;
      if (!latest.current.isAtTop()) {
        setOutdated(true);
        return;
      }
      quietUntil = Number.POSITIVE_INFINITY;
      void latest.current.showNewest().finally(() => (quietUntil = performance.now() + REFRESH_MS));
    };
    const timer = setInterval(take, CHECK_MS);
    const leave = follow((row) => {
      if (mayMatch(row, latest.current.filter)) hasUpdates.current = true;
    });
    return () => {
      clearInterval(timer);
      leave();
    };
  }, [follow]);
  return { pages, rows: slots, onView, isOutdated, showNewest };
}

/**
 * Returns whether an attempt from the event stream may belong to the list. Filters by review and by response
 * are ignored, because the stream does not contain these data.
 */
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
