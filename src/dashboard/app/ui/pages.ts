import {
  type InfiniteData,
  infiniteQueryOptions,
  keepPreviousData,
  type QueryClient,
  type QueryKey,
  useInfiniteQuery,
  type UseInfiniteQueryResult,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect, useEffectEvent, useMemo, useRef } from "react";

import type { CursorPage } from "../api/client.ts";

type Cursor = string | undefined;
type Pages<Row> = InfiniteData<KeptPage<Row>, Cursor>;
const FIRST_CURSOR: Cursor = undefined;

export interface PagedList<Row> {
  readonly pages: UseInfiniteQueryResult<Pages<Row>>;
  /** Rows of all loaded pages, with undefined in place of evicted rows. */
  readonly slots: readonly (Row | undefined)[];
  /** Called with the indexes of the first and the last row in view. Reads evicted rows in this range again. */
  readonly onView: (first: number, last: number) => void;
  /**
   * Reads the first page again and drops the other pages. The previous rows of the first page stay visible
   * until the new rows have loaded.
   */
  readonly readNewest: () => Promise<void>;
  /** Ends a read of the rows that is under way; the list keeps the previous rows. */
  readonly cancelRead: () => Promise<void>;
}

/**
 * Query options of a list that an event stream keeps up to date. They prevent automatic refetches if the list has
 * more than one page, because TanStack Query would read every page again.
 */
export const READ_ONCE = {
  staleTime: Number.POSITIVE_INFINITY,
  refetchOnMount: ({ state: { data } }: { state: { data?: InfiniteData<unknown> | undefined } }) =>
    data?.pages.length === 1 ? ("always" as const) : false,
  refetchOnWindowFocus: false,
  refetchOnReconnect: false,
} as const;

/**
 * Options of a list that `read` reads page by page. While rows for changed filters load, the previous rows stay
 * visible.
 */
export function listOptions<Row>(
  queryKey: QueryKey,
  read: (cursor: Cursor) => Promise<CursorPage<Row>>,
) {
  const load = async (cursor?: Cursor): Promise<KeptPage<Row>> => {
    const { data: rows, next_cursor: next } = await read(cursor);
    return { rows, count: rows.length, next };
  };
  const options = infiniteQueryOptions<KeptPage<Row>, Error, Pages<Row>, QueryKey, Cursor>({
    queryKey,
    queryFn: ({ pageParam }) => load(pageParam),
    initialPageParam: FIRST_CURSOR,
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
  });
  return { ...options, load };
}

export type ListOptions<Row> = ReturnType<typeof listOptions<Row>>;

/** Type of the rows of a list, given the function that returns the options of the list. */
export type RowOf<
  Options extends (...args: never) => { readonly load: () => Promise<KeptPage<unknown>> },
> = NonNullable<Awaited<ReturnType<ReturnType<Options>["load"]>>["rows"]>[number];

/**
 * Reads a list page by page, and keeps only the rows near the view in memory. `maxPages` of TanStack Query would
 * drop pages at the ends of the list, and read them again one after the other when the user jumps through the list.
 */
export function useList<Row>(options: ListOptions<Row>): PagedList<Row> {
  const queries = useQueryClient();
  const { queryKey: key, load } = options;
  const pages = useInfiniteQuery(options);
  const slots = useMemo(() => slotsOf(pages.data?.pages ?? []), [pages.data]);
  const loading = useRef(new Set<number>());
  const inView = useRef<readonly [first: number, last: number]>(undefined);
  const onView = (first: number, last: number) => {
    inView.current = [first, last];
    const held = queries.getQueryData<Pages<Row>>(key);
    if (held === undefined) return;
    const near = pagesOf(held.pages, first, last);
    keep(queries, key, near);
    for (const index of near) {
      if (held.pages[index]?.rows !== undefined || loading.current.has(index)) continue;
      loading.current.add(index);
      void load(held.pageParams[index])
        .then((page) => put(queries, key, { index, cursor: held.pageParams[index], page }))
        .catch(() => {})
        .finally(() => loading.current.delete(index));
    }
  };
  // Evicts the rows far from the view again after a refetch, because a refetch loads the rows of all pages.
  const evict = useEffectEvent(({ length }: typeof slots) => {
    const [first, last] = inView.current ?? [];
    if (first !== undefined && last !== undefined && first < length) onView(first, last);
  });
  useEffect(() => evict(slots), [slots]);
  const readNewest = () => refetchFirst(queries, key);
  const cancelRead = () => queries.cancelQueries({ queryKey: key });
  return { pages, slots, onView, readNewest, cancelRead };
}

function keep(queries: QueryClient, key: QueryKey, near: readonly number[]): void {
  queries.setQueryData<Pages<unknown>>(key, (old) => {
    if (old === undefined) return old;
    const pages = evictDistant(old.pages, near);
    return pages === old.pages ? old : { ...old, pages: [...pages] };
  });
}

/**
 * Stores the rows of an evicted page that was read again. Drops the rows if the page no longer exists or has another
 * cursor, because the list has changed since the request.
 */
function put<Row>(
  queries: QueryClient,
  key: QueryKey,
  { index, cursor, page }: { index: number; cursor: Cursor; page: KeptPage<Row> },
): void {
  queries.setQueryData<Pages<Row>>(key, (old) => {
    if (old === undefined || old.pageParams[index] !== cursor || old.pages[index] === undefined)
      return old;
    const next = old.pages[index].next;
    return { ...old, pages: old.pages.with(index, { ...page, next }) };
  });
}

async function refetchFirst(queries: QueryClient, queryKey: QueryKey): Promise<void> {
  queries.setQueryData<Pages<unknown>>(
    queryKey,
    (old) => old && { pages: old.pages.slice(0, 1), pageParams: old.pageParams.slice(0, 1) },
  );
  await queries.refetchQueries({ queryKey });
}

/**
 * Returns functions that wait for a request and then read the cached data with `queryKey` again. `inBackground`
 * resolves before the data have been read, `andRead` afterwards.
 */
export function useRefresh(queryKey: QueryKey) {
  const queries = useQueryClient();
  const refresh = () => queries.invalidateQueries({ queryKey });
  return {
    refresh,
    inBackground: async <Answer>(request: Promise<Answer>): Promise<Answer> => {
      const answer = await request;
      void refresh();
      return answer;
    },
    andRead: async <Answer>(request: Promise<Answer>): Promise<Answer> => {
      const answer = await request;
      await refresh();
      return answer;
    },
  };
}

/**
 * Loaded page of a list. Its rows are evicted from memory when the page is far out of view, and read again when
 * the page comes near the view.
 */
export interface KeptPage<Row> {
  readonly rows: readonly Row[] | undefined;
  readonly count: number;
  readonly next: string | null;
}

/** Maximum number of pages whose rows stay in memory. With 100 rows per page, a list keeps at most 1,500 rows. */
export const PAGES_KEPT = 15;

/** Returns the rows of all pages in order, with undefined in place of evicted rows. */
export function slotsOf<Row>(pages: readonly KeptPage<Row>[]): readonly (Row | undefined)[] {
  return pages.flatMap(
    ({ rows, count }): readonly (Row | undefined)[] =>
      rows ?? Array.from<undefined>({ length: count }),
  );
}

/** Returns the indexes of the pages that contain the rows `first` to `last`. */
export function pagesOf(
  pages: readonly KeptPage<unknown>[],
  first: number,
  last: number,
): number[] {
  let from = 0;
  return pages.flatMap(({ count }, index) => {
    const begin = from;
    from += count;
    return begin <= last && from > first ? [index] : [];
  });
}

/** Evicts the rows of the pages farthest from the pages `near`, until at most `PAGES_KEPT` pages have rows. */
export function evictDistant<Row, P extends KeptPage<Row>>(
  pages: readonly P[],
  near: readonly number[],
): readonly P[] {
  const held = pages.flatMap(({ rows }, index) => (rows === undefined ? [] : [index]));
  if (held.length <= PAGES_KEPT) return pages;
  const middle = near[Math.floor(near.length / 2)] ?? 0;
  const kept = new Set(
    held.toSorted((a, b) => Math.abs(a - middle) - Math.abs(b - middle)).slice(0, PAGES_KEPT),
  );
  return pages.map((page, index) => (kept.has(index) ? page : { ...page, rows: undefined }));
}
