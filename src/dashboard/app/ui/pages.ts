import {
  type InfiniteData,
  keepPreviousData,
  type QueryClient,
  useInfiniteQuery,
  type UseInfiniteQueryResult,
  useQueryClient,
} from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef } from "react";

import { evictDistant, type KeptPage, pagesOf, slotsOf } from "./kept-pages.ts";

type Cursor = string | undefined;
type Pages<Row> = InfiniteData<KeptPage<Row>, Cursor>;
const FIRST: Cursor = undefined;

export interface ReadPage<Row> {
  readonly rows: readonly Row[];
  readonly next: string | null;
}

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
}

/**
 * Query options that prevent automatic refetches of lists with more than one page, because TanStack Query would
 * read every page again.
 */
const READ_ONCE = {
  staleTime: Number.POSITIVE_INFINITY,
  refetchOnMount: ({ state: { data } }: { state: { data: Pages<unknown> | undefined } }) =>
    data?.pages.length === 1 ? "always" : false,
  refetchOnWindowFocus: false,
  refetchOnReconnect: false,
} as const;

interface PagesOptions {
  /** True if an event stream reports changes of the list, so that automatic refetches are not needed. */
  readonly isReadOnce?: boolean;
  readonly refetchInterval?: number;
}

/**
 * Reads a list page by page, and keeps only the rows near the view in memory. While rows for changed filters
 * load, the previous rows stay visible.
 */
export function usePages<Row>(
  queryKey: readonly unknown[],
  read: (cursor: Cursor) => Promise<ReadPage<Row>>,
  { isReadOnce = false, ...options }: PagesOptions = {},
): PagedList<Row> {
  const queries = useQueryClient();
  const load = async (cursor: Cursor): Promise<KeptPage<Row>> => {
    const { rows, next } = await read(cursor);
    return { rows, count: rows.length, next };
  };
  const pages = useInfiniteQuery<KeptPage<Row>, Error, Pages<Row>, readonly unknown[], Cursor>({
    queryKey,
    queryFn: ({ pageParam }) => load(pageParam),
    initialPageParam: FIRST,
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
    ...(isReadOnce && READ_ONCE),
    ...options,
  });
  const slots = useMemo(() => slotsOf(pages.data?.pages ?? []), [pages.data]);
  const latest = useRef({ load, queryKey });
  useEffect(() => {
    latest.current = { load, queryKey };
  });
  const loading = useRef(new Set<number>());
  const inView = useRef<readonly [first: number, last: number]>(undefined);
  const onView = useCallback(
    (first: number, last: number) => {
      inView.current = [first, last];
      const { queryKey: key, load: again } = latest.current;
      const held = queries.getQueryData<Pages<Row>>(key);
      if (held === undefined) return;
      const near = pagesOf(held.pages, first, last);
      keep(queries, key, near);
      for (const index of near) {
        if (held.pages[index]?.rows !== undefined || loading.current.has(index)) continue;
        loading.current.add(index);
        void again(held.pageParams[index])
          .then((page) => put(queries, key, { index, cursor: held.pageParams[index], page }))
          .catch(() => {})
          .finally(() => loading.current.delete(index));
      }
    },
    [queries],
  );
  // Evicts distant rows again after a refetch, because a refetch loads the rows of all pages.
  useEffect(() => {
    const [first, last] = inView.current ?? [];
    if (first !== undefined && last !== undefined && first in slots) onView(first, last);
  }, [slots, onView]);
  const readNewest = () => refetchFirst(queries, queryKey);
  return { pages, slots, onView, readNewest };
}

function keep(queries: QueryClient, key: readonly unknown[], near: readonly number[]): void {
  queries.setQueryData<Pages<unknown>>(key, (old) => {
    if (old === undefined) return old;
    const pages = evictDistant(old.pages, near);
    return pages === old.pages ? old : { ...old, pages: [...pages] };
  });
}

/**
 * Stores the rows of an evicted page that was read again. Drops the rows if the list has changed meanwhile, so
 * that the page no longer exists or has another cursor.
 */
function put<Row>(
  queries: QueryClient,
  key: readonly unknown[],
  { index, cursor, page }: { index: number; cursor: Cursor; page: KeptPage<Row> },
): void {
  queries.setQueryData<Pages<Row>>(key, (old) => {
    if (old === undefined || old.pageParams[index] !== cursor || old.pages[index] === undefined)
      return old;
    const next = old.pages[index].next;
    return { ...old, pages: old.pages.with(index, { ...page, next }) };
  });
}

async function refetchFirst(queries: QueryClient, queryKey: readonly unknown[]): Promise<void> {
  queries.setQueryData<Pages<unknown>>(
    queryKey,
    (old) => old && { pages: old.pages.slice(0, 1), pageParams: old.pageParams.slice(0, 1) },
  );
  await queries.refetchQueries({ queryKey });
}
