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

/** Measures how far down the page an element begins; what is above may grow and shrink. */
export function useOffset<E extends HTMLElement>(): {
  readonly place: RefObject<E | null>;
  readonly offset: number;
} {
  const place = useRef<E>(null);
  const [offset, setOffset] = useState(0);
  useLayoutEffect(() => {
    const measure = () => {
      const { top } = place.current?.getBoundingClientRect() ?? { top: 0 };
      setOffset(Math.round(top + window.scrollY));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  return { place, offset };
}

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

const OVERSCAN = 10;

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
  /** About how high a row is, in px, until it was seen. */
  readonly height: number;
  /** It goes on by itself where somebody comes near its end. */
  readonly list: PagedList<Row>;
  readonly children: (row: Row, place: Place) => ReactNode;
}

/** A list of rows of any height, of which only those in view are in the document; the page itself scrolls. */
export function VirtualRows<Row>(props: VirtualRowsProps<Row>) {
  const { label, className, list, height, children } = props;
  const { slots } = list;
  const { place, offset } = useOffset<HTMLUListElement>();
  // No memorised component gets anything of the virtualizer.
  // oxlint-disable-next-line react/incompatible-library
  const virtualizer = useWindowVirtualizer({
    count: slots.length,
    estimateSize: () => height,
    overscan: OVERSCAN,
    // What comes into view is made by a task of its own, not by that of the scrolling as well.
    useFlushSync: false,
    scrollMargin: offset,
  });
  const items = virtualizer.getVirtualItems();
  const hasMore = useNextPage(list, items);
  const above = (items.at(0)?.start ?? offset) - offset;
  const below = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? offset) - offset);
  return (
    <ul
      ref={place}
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
