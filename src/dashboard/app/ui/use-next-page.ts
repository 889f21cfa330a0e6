import type { VirtualItem } from "@tanstack/react-virtual";
import { useEffect } from "react";

import type { PagedList } from "./pages.ts";

/** The next page is asked for so many rows before the end. */
const AHEAD = 5;

/** Has a list go on by itself where somebody comes near its end; answers whether there is more. */
export function useNextPage(
  { pages, slots, onView }: PagedList<unknown>,
  items: readonly VirtualItem[],
): boolean {
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = pages;
  const first = items.at(0)?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  const isWanted =
    last >= slots.length - AHEAD && hasNextPage && !isFetchingNextPage && !isFetchNextPageError;
  useEffect(() => {
    if (isWanted) void fetchNextPage();
  }, [isWanted, fetchNextPage]);
  useEffect(() => onView(first, last), [onView, first, last]);
  return hasNextPage;
}
