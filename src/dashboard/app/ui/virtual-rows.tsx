import { useWindowVirtualizer, type VirtualItem } from "@tanstack/react-virtual";
import {
  type ReactNode,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";

import type { PagedList } from "./pages.ts";

/** Measures the distance of an element from the top of the page. The content above may change its height. */
export function useOffset<E extends HTMLElement>(): {
  readonly anchor: RefObject<E | null>;
  readonly offset: number;
} {
  const anchor = useRef<E>(null);
  const [offset, setOffset] = useState(0);
  useLayoutEffect(() => {
    const measure = () => {
      const { top } = anchor.current?.getBoundingClientRect() ?? { top: 0 };
      setOffset(Math.round(top + window.scrollY));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  return { anchor, offset };
}

/** The next page is loaded when this many rows are left below the view. */
const PREFETCH_ROWS = 5;

/** Loads the next page when the user scrolls near the end of a list. Returns whether there are more rows. */
export function useNextPage(
  { pages, slots, onView }: PagedList<unknown>,
  items: readonly VirtualItem[],
): boolean {
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = pages;
  const first = items.at(0)?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  const isNearEnd =
    last >= slots.length - PREFETCH_ROWS &&
    hasNextPage &&
    !isFetchingNextPage &&
    !isFetchNextPageError;
  useEffect(() => {
    if (isNearEnd) void fetchNextPage();
  }, [isNearEnd, fetchNextPage]);
  useEffect(() => onView(first, last), [onView, first, last]);
  return hasNextPage;
}

const OVERSCAN = 10;

/** Props that a row must set on its `<li>`, which is measured by them. */
export interface RowProps {
  readonly ref: (element: HTMLElement | null) => void;
  readonly "data-index": number;
  readonly "aria-posinset": number;
  readonly "aria-setsize": number;
}

interface VirtualRowsProps<Row> {
  readonly label?: string;
  readonly className: string;
  /** The estimated height of a row in px, until it is measured. */
  readonly height: number;
  /** The list; its next page is loaded when the user scrolls near the end. */
  readonly list: PagedList<Row>;
  readonly children: (row: Row, rowProps: RowProps) => ReactNode;
}

/** A list of rows of different heights that renders only those in view. The page scrolls, not the list. */
export function VirtualRows<Row>(props: VirtualRowsProps<Row>) {
  const { label, className, list, height, children } = props;
  const { slots } = list;
  const { anchor, offset } = useOffset<HTMLUListElement>();
  // The virtualizer is a mutable object, so it must not be passed to memoized components.
  // oxlint-disable-next-line react/incompatible-library
  const virtualizer = useWindowVirtualizer({
    count: slots.length,
    estimateSize: () => height,
    overscan: OVERSCAN,
    // Rows that scroll into view are rendered in a separate task, which keeps the scrolling itself short.
    useFlushSync: false,
    scrollMargin: offset,
  });
  const items = virtualizer.getVirtualItems();
  const hasMore = useNextPage(list, items);
  const above = (items.at(0)?.start ?? offset) - offset;
  const below = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? offset) - offset);
  return (
    <ul
      ref={anchor}
      className={className}
      style={{ paddingTop: above, paddingBottom: below }}
      {...(label !== undefined && { "aria-label": label })}
    >
      {items.map(({ index }) => {
        const row = slots[index];
        const at = {
          ref: virtualizer.measureElement,
          "data-index": index,
          "aria-posinset": index + 1,
          "aria-setsize": hasMore ? -1 : slots.length,
        };
        if (row !== undefined) return children(row, at);
        return (
          <li key={index} style={{ height }} {...at}>
            …
          </li>
        );
      })}
    </ul>
  );
}
