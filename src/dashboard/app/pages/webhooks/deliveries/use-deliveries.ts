import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useState } from "react";
import { useSearchParams } from "wouter";

import { type LiveState, useStreamStart } from "../../../session/live.ts";
import { type Pages, useList } from "../../../ui/pages.ts";
import { type FollowAttempts, useReader } from "../data/data.ts";
import { ALL_FAILURES, type AttemptRow, isMatch, type DeliveryFilter } from "../data/filters.ts";
import { deliveriesOptions, type ListedDelivery } from "../data/reads.ts";
import { listedFilterOf } from "../data/resent.ts";

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
 * interruption of the event stream, or if the cache contains several pages of an earlier visit.
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

/** Minimum interval in ms between two refreshes of the newest page. */
const REFRESH_MS = 2_000;

/**
 * Reads the events that match the filter. Reads the newest page again when the event stream delivers an attempt
 * that may belong to the list.
 */
export function useDeliveries(id: string, filter: DeliveryFilter, stream: ListStream) {
  const list = useList(deliveriesOptions(useReader(), id, filter));
  const { pages, readNewest, cancelRead } = list;
  const { live, follow, isAtTop } = stream;
  const [isOutdated, setOutdated] = useOutdated(live, pages.data?.pages.length ?? 0);
  const showNewest = () => {
    setOutdated(false);
    void readNewest();
  };
  const refresh = () => {
    if (isAtTop()) showNewest();
    else setOutdated(true);
  };
  const pause = () => {
    if (!pages.isRefetching) return;
    void cancelRead();
    setOutdated(true);
  };
  useStreamStart(live, refresh);
  const refreshNow = useEffectEvent(refresh);
  const isOfList = useEffectEvent(
    // Also returns true for an attempt of an event that the list shows. The attempt may not match the filter itself,
    // but it changes this event.
    (row: AttemptRow) =>
      mayMatch(row, filter) || list.slots.some((one) => one?.event_id === row.event_id),
  );
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let quietUntil = 0;
    const refreshSoon = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        quietUntil = performance.now() + REFRESH_MS;
        refreshNow();
      }, quietUntil - performance.now());
    };
    const leave = follow((row) => isOfList(row) && refreshSoon());
    return () => {
      clearTimeout(timer);
      leave();
    };
  }, [follow]);
  return { ...list, isOutdated, showNewest, pause };
}

/**
 * Returns whether an attempt from the event stream may belong to the list. Filters by review and by response are
 * ignored, because the stream contains neither the review nor the response.
 */
function mayMatch(row: AttemptRow, { outcome, ...filter }: DeliveryFilter): boolean {
  if (outcome !== ALL_FAILURES) return isMatch(row, { ...filter, ...(outcome && { outcome }) });
  return row.outcome !== "delivered" && isMatch(row, filter);
}

/** Returns the loaded events before and after an event in the list with the filter of the address. */
export function useNeighbours(id: string, eventId: string) {
  const [params] = useSearchParams();
  const { queryKey } = deliveriesOptions(useReader(), id, listedFilterOf(params));
  const pages = useQueryClient().getQueryData<Pages<ListedDelivery>>(queryKey)?.pages ?? [];
  const ids = pages.flatMap(({ rows }) => rows.map((row) => row.event_id));
  const at = ids.indexOf(eventId);
  return at < 0 ? {} : { previous: ids[at - 1], next: ids[at + 1] };
}
