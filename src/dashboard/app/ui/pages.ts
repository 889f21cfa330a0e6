import {
  type InfiniteData,
  keepPreviousData,
  type QueryClient,
  useInfiniteQuery,
  type UseInfiniteQueryResult,
  useQueryClient,
} from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef } from "react";

/** A page of a list. Its rows are evicted when it is far out of view, and read again when it comes near. */
export interface KeptPage<Row> {
  readonly rows: readonly Row[] | undefined;
  readonly count: number;
  readonly next: string | null;
}

/**
 * The number of pages whose rows are kept, with 100 rows each. With at most 500 live rows a list keeps 2,000
 * rows.
 */
export const PAGES_KEPT = 15;

/** Returns all rows in order; undefined for evicted ones. */
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

/** Evicts the rows of the pages that are farthest from `near`, until at most `PAGES_KEPT` pages have rows. */
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

type Cursor = string | undefined;
type Pages<Row> = InfiniteData<KeptPage<Row>, Cursor>;
const FIRST: Cursor = undefined;

export interface ReadPage<Row> {
  readonly rows: readonly Row[];
  readonly next: string | null;
}

export interface PagedList<Row> {
  readonly pages: UseInfiniteQueryResult<Pages<Row>>;
  /** All rows of the loaded pages; undefined for evicted ones. */
  readonly slots: readonly (Row | undefined)[];
  /** Called with the range of rows in view. Reads evicted rows of this range again. */
  readonly onView: (first: number, last: number) => void;
  /** Reads the first page again and drops the others. The old rows stay visible until it has loaded. */
  readonly readNewest: () => Promise<void>;
}

/**
 * Query options that prevent automatic refetches of more than one page: TanStack Query would read every page
 * again.
 */
const READ_ONCE = {
  staleTime: Number.POSITIVE_INFINITY,
  refetchOnMount: ({ state: { data } }: { state: { data: Pages<unknown> | undefined } }) =>
    data?.pages.length === 1 ? "always" : false,
  refetchOnWindowFocus: false,
  refetchOnReconnect: false,
} as const;

interface PagesOptions {
  /** Set if a stream reports changes, so that automatic refetches are not needed. */
  readonly isReadOnce?: boolean;
  readonly refetchInterval?: number;
}

/**
 * Reads a list page by page and keeps the rows near the view. While rows for changed filters load, the
 * previous rows stay visible.
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
  // A refetch loads all rows of its pages, so distant rows are evicted again.
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
 * Stores the rows of a page that was read again. If the list changed meanwhile, so that the page is gone or
 * has another cursor, the rows are dropped.
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
