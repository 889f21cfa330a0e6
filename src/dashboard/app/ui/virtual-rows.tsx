import { useWindowVirtualizer } from "@tanstack/react-virtual";
import {
  type ReactNode,
  type RefObject,
  useEffect,
  useEffectEvent,
  useLayoutEffect,
  useRef,
  useState,
} from "react";

import type { PagedList } from "./pages.ts";

/**
 * Measures the distance in px between an element and the top of the page, and measures again when the content
 * above changes its height.
 */
function useOffset<E extends HTMLElement>(): {
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

interface RowsOptions {
  /** Returns the estimated height of a row in px, used until the real height is measured. */
  readonly heightOf: (index: number) => number;
  readonly gap?: number;
  readonly getItemKey?: (index: number) => string | number;
  /** Number of rows below the view at which the next page is loaded. */
  readonly prefetch?: number;
}

/**
 * Chooses the rows of a list that are in view, and loads the next page when the user scrolls near the end. `above` and
 * `below` are the heights in px of the rows that are not rendered.
 */
export function useVisibleRows<E extends HTMLElement>(
  { pages, slots, onView }: PagedList<unknown>,
  { heightOf, prefetch = 5, ...options }: RowsOptions,
) {
  const { anchor, offset } = useOffset<E>();
  // The rule warns because the virtualizer is a mutable object. It is not passed to memoized components here.
  // oxlint-disable-next-line react/incompatible-library
  const virtualizer = useWindowVirtualizer({
    count: slots.length,
    estimateSize: heightOf,
    overscan: OVERSCAN,
    // Renders rows that scroll into view in a separate task, so that scrolling itself stays smooth.
    useFlushSync: false,
    scrollMargin: offset,
    ...options,
  });
  const items = virtualizer.getVirtualItems();
  const first = items.at(0)?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = pages;
  const isNearEnd =
    last >= slots.length - prefetch && hasNextPage && !isFetchingNextPage && !isFetchNextPageError;
  useEffect(() => {
    if (isNearEnd) void fetchNextPage();
  }, [isNearEnd, fetchNextPage]);
  const view = useEffectEvent(onView);
  useEffect(() => view(first, last), [first, last]);
  const above = (items.at(0)?.start ?? offset) - offset;
  const below = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? offset) - offset);
  return { anchor, virtualizer, items, above, below };
}

const OVERSCAN = 10;

/** Properties that each row must set on its `<li>` element, so that the row can be measured. */
export interface RowProps {
  readonly ref: (element: HTMLElement | null) => void;
  readonly "data-index": number;
  readonly "aria-posinset": number;
  readonly "aria-setsize": number;
}

interface VirtualRowsProps<Row> {
  readonly label?: string;
  readonly className: string;
  /** Estimated height of a row in px, used until the real height is measured. */
  readonly height: number;
  /** List to show. Its next page is loaded when the user scrolls near the end. */
  readonly list: PagedList<Row>;
  readonly children: (row: Row, rowProps: RowProps) => ReactNode;
}

/** List with rows of different heights that renders only the rows in view. The page scrolls, not the list. */
export function VirtualRows<Row>(props: VirtualRowsProps<Row>) {
  const { label, className, list, height, children } = props;
  const { slots, pages } = list;
  const { anchor, virtualizer, items, above, below } = useVisibleRows<HTMLUListElement>(list, {
    heightOf: () => height,
  });
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
          "aria-setsize": pages.hasNextPage ? -1 : slots.length,
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
