import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, type ReactNode } from "react";

import { useOffset } from "./use-offset.ts";

const OVERSCAN = 10;
/** The next page is asked for so many rows before the end. */
const AHEAD = 5;

/** What a row of such a list takes over on its `<li>`: by it the height is measured. */
export interface Place {
  readonly ref: (element: HTMLElement | null) => void;
  readonly "data-index": number;
  readonly "aria-posinset": number;
  readonly "aria-setsize": number;
}

interface VirtualRowsProps<Row> {
  readonly label?: string;
  readonly className: string;
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  /** About how high a row is, in px, until it was seen. */
  readonly height: number;
  /** The list that the rows are of: it goes on by itself where somebody comes near its end. */
  readonly query: Pick<
    UseInfiniteQueryResult,
    "hasNextPage" | "isFetchingNextPage" | "isFetchNextPageError" | "fetchNextPage"
  >;
  readonly children: (row: Row, place: Place) => ReactNode;
}

/** A list of rows of any height, of which only those in view are in the document; the page itself scrolls. */
export function VirtualRows<Row>(props: VirtualRowsProps<Row>) {
  const { label, className, rows, keyOf, height, children } = props;
  const {
    hasNextPage: hasMore,
    isFetchingNextPage,
    isFetchNextPageError,
    fetchNextPage,
  } = props.query;
  const { place: list, offset } = useOffset<HTMLUListElement>();
  // No memorised component gets anything of the virtualizer.
  // oxlint-disable-next-line react/incompatible-library
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => height,
    overscan: OVERSCAN,
    scrollMargin: offset,
    getItemKey: (index) => {
      const row = rows[index];
      return row === undefined ? index : keyOf(row);
    },
  });
  const items = virtualizer.getVirtualItems();
  const isNearEnd = (items.at(-1)?.index ?? 0) >= rows.length - AHEAD;
  const isWanted = isNearEnd && hasMore && !isFetchingNextPage && !isFetchNextPageError;
  useEffect(() => {
    if (isWanted) void fetchNextPage();
  }, [isWanted, fetchNextPage]);
  const above = (items.at(0)?.start ?? offset) - offset;
  const below = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? offset) - offset);
  return (
    <ul
      ref={list}
      className={className}
      style={{ paddingTop: above, paddingBottom: below }}
      {...(label !== undefined && { "aria-label": label })}
    >
      {items.map(({ index }) => {
        const row = rows[index];
        if (row === undefined) return null;
        return children(row, {
          ref: virtualizer.measureElement,
          "data-index": index,
          "aria-posinset": index + 1,
          "aria-setsize": hasMore ? -1 : rows.length,
        });
      })}
    </ul>
  );
}
