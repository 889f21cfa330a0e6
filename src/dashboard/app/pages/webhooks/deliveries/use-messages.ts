import { type InfiniteData, useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { useSearchParams } from "wouter";

import { type LiveState, useStreamStart } from "../../../session/live.ts";
import { type KeptPage, slotsOf } from "../../../ui/kept-pages.ts";
import { listOptions, READ_ONCE, useList } from "../../../ui/pages.ts";
import { type FollowAttempts, useReader } from "../data/data.ts";
import {
  ALL_FAILURES,
  type AttemptRow,
  isMatch,
  type MessageFilter,
  messageFilterOf,
} from "../data/filters.ts";
import { type Message, readMessages } from "../data/list-reads.ts";
import { type Reader, subscriptionKey } from "../data/reads.ts";

interface ListStream {
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  /**
   * Returns whether the newest row is in view. Only then are new rows shown immediately, because otherwise they
   * would move the rows that the user is reading.
   */
  readonly isAtTop: () => boolean;
}

/**
 * Returns whether rows may be missing from a list, and a function that sets it. They may be missing after an
 * interruption of the event stream, and in several pages that the cache contains from an earlier visit.
 */
function useOutdated(live: LiveState, pages: number) {
  const [isOutdated, setOutdated] = useState(live === "waiting" || pages > 1);
  const [wasLive, setWasLive] = useState(live);
  if (live !== wasLive) {
    setWasLive(live);
    if (live === "waiting") setOutdated(true);
  }
  return [isOutdated, setOutdated] as const;
}

/** Interval in ms between two looks at the attempts that the event stream has delivered. */
const LOOK_MS = 200;

/**
 * Maximum number of empty pages that are skipped automatically. A filtered page may be empty although later
 * pages contain matches; after this number the user must ask for more.
 */
const MAX_EMPTY_PAGES = 10;

const messagesOptions = (reader: Reader, id: string, filter: MessageFilter) => ({
  ...listOptions(subscriptionKey(id, "messages", filter), async (cursor) => {
    let page = await readMessages(reader, id, filter, { cursor });
    for (let i = 0; i < MAX_EMPTY_PAGES && page.data.length === 0 && page.next_cursor !== null; i++)
      page = await readMessages(reader, id, filter, { cursor: page.next_cursor });
    return page;
  }),
  ...READ_ONCE,
});

/** Minimum interval in ms between two refreshes of the newest page. */
const REFRESH_MS = 2_000;

/**
 * Reads the events that match the filter. Reads the newest page again when the event stream delivers an attempt
 * that may belong to the list.
 */
export function useMessages(id: string, filter: MessageFilter, stream: ListStream) {
  const list = useList(messagesOptions(useReader(), id, filter));
  const { pages, readNewest } = list;
  const { live, follow, isAtTop } = stream;
  const [isOutdated, setOutdated] = useOutdated(live, pages.data?.pages.length ?? 0);
  const hasUpdates = useRef(false);
  const quietUntil = useRef(0);
  useStreamStart(live, () => {
    hasUpdates.current = true;
  });
  const showNewest = async () => {
    hasUpdates.current = false;
    await readNewest();
    setOutdated(false);
  };
  const refresh = () => {
    if (!hasUpdates.current || pages.isFetching || performance.now() < quietUntil.current) return;
    hasUpdates.current = false;
    if (!isAtTop()) {
      setOutdated(true);
      return;
    }
    quietUntil.current = Number.POSITIVE_INFINITY;
    void showNewest().finally(() => (quietUntil.current = performance.now() + REFRESH_MS));
  };
  const look = useEffectEvent(refresh);
  const take = useEffectEvent((row: AttemptRow) => {
    // An attempt also changes an event that the list has for an earlier one.
    const isListed = () => list.slots.some((one) => one?.event_id === row.event_id);
    if (mayMatch(row, filter) || isListed()) hasUpdates.current = true;
  });
  useEffect(() => {
    const timer = setInterval(() => look(), LOOK_MS);
    const leave = follow((row) => take(row));
    return () => {
      clearInterval(timer);
      leave();
    };
  }, [follow]);
  return { ...list, isOutdated, showNewest };
}

/**
 * Returns whether an attempt from the event stream may belong to the list. Filters by review and by response
 * are ignored, because the stream does not contain these data.
 */
function mayMatch(row: AttemptRow, { outcome, ...filter }: MessageFilter): boolean {
  if (outcome !== ALL_FAILURES) return isMatch(row, { ...filter, ...(outcome && { outcome }) });
  return row.outcome !== "delivered" && isMatch(row, filter);
}

/** Returns the events before and after an event in the list with the filter of the address, as far as it is loaded. */
export function useNeighbours(id: string, eventId: string) {
  const [params] = useSearchParams();
  const { queryKey } = messagesOptions(useReader(), id, messageFilterOf(params));
  const pages =
    useQueryClient().getQueryData<InfiniteData<KeptPage<Message>>>(queryKey)?.pages ?? [];
  const ids = slotsOf(pages).map((row) => row?.event_id);
  const at = ids.indexOf(eventId);
  return at < 0 ? {} : { previous: ids[at - 1], next: ids[at + 1] };
}
