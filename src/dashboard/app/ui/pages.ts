import {
  type InfiniteData,
  infiniteQueryOptions,
  keepPreviousData,
  type QueryKey,
  useInfiniteQuery,
  type UseInfiniteQueryResult,
  useQueryClient,
} from "@tanstack/react-query";
import { useMemo } from "react";

import type { CursorPage } from "../api/client.ts";

/** Position of a page in its list. */
interface Position {
  /** Cursor of the page in the API; undefined for the first page. */
  readonly cursor: string | undefined;
  /** Number of rows before the page. */
  readonly from: number;
  /** Position of the page before, because the cursors of the API lead forward only. */
  readonly before: Position | undefined;
}

const FIRST: Position = { cursor: undefined, from: 0, before: undefined };

interface LoadedPage<Row> {
  readonly rows: readonly Row[];
  readonly next: string | null;
}

export type Pages<Row> = InfiniteData<LoadedPage<Row>, Position>;

export interface PagedList<Row> {
  readonly pages: UseInfiniteQueryResult<Pages<Row>>;
  /** Rows of the list up to the last loaded page, with undefined in place of rows that are no longer in memory. */
  readonly slots: readonly (Row | undefined)[];
  /** Number of rows before the first row in memory. */
  readonly from: number;
  /**
   * Reads the first page again and drops the other pages. The previous rows stay visible until the new rows have
   * loaded.
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

/** Maximum number of pages in memory. With 100 rows per page, a list keeps at most 1,500 rows. */
export const PAGES_KEPT = 15;
/** Keeps all pages in memory, for a list that renders all of its rows. */
export const ALL_PAGES = 0;

/**
 * Options of a list that `read` reads page by page. While rows for changed filters load, the previous rows stay
 * visible.
 */
export function listOptions<Row>(
  queryKey: QueryKey,
  read: (cursor: string | undefined) => Promise<CursorPage<Row>>,
  maxPages: number = PAGES_KEPT,
) {
  const load = async (cursor?: string): Promise<LoadedPage<Row>> => {
    const { data: rows, next_cursor: next } = await read(cursor);
    return { rows, next };
  };
  const options = infiniteQueryOptions<LoadedPage<Row>, Error, Pages<Row>, QueryKey, Position>({
    queryKey,
    queryFn: ({ pageParam }) => load(pageParam.cursor),
    initialPageParam: FIRST,
    getNextPageParam: ({ next, rows }, _, at) =>
      next === null ? undefined : { cursor: next, from: at.from + rows.length, before: at },
    getPreviousPageParam: (_page, _pages, { before }) => before,
    maxPages,
    placeholderData: keepPreviousData,
  });
  return { ...options, load };
}

export type ListOptions<Row> = ReturnType<typeof listOptions<Row>>;

/** Type of the rows of a list, given the function that returns the options of the list. */
export type RowOf<
  Options extends (...args: never) => { readonly load: () => Promise<LoadedPage<unknown>> },
> = Awaited<ReturnType<ReturnType<Options>["load"]>>["rows"][number];

/** Reads a list page by page. */
export function useList<Row>(options: ListOptions<Row>): PagedList<Row> {
  const queries = useQueryClient();
  const pages = useInfiniteQuery(options);
  const { data } = pages;
  const slots = useMemo(() => slotsOf(data), [data]);
  const readNewest = async () => {
    const { queryKey } = options;
    queries.setQueryData<Pages<unknown>>(
      queryKey,
      (old) => old && { pages: old.pages.slice(0, 1), pageParams: [FIRST] },
    );
    await queries.refetchQueries({ queryKey });
  };
  const cancelRead = () => queries.cancelQueries({ queryKey: options.queryKey });
  return { pages, slots, from: data?.pageParams[0]?.from ?? 0, readNewest, cancelRead };
}

/** Returns the rows of a list in order, with undefined in place of rows that are no longer in memory. */
export function slotsOf<Row>(data: Pages<Row> | undefined): readonly (Row | undefined)[] {
  const evicted = Array.from<undefined>({ length: data?.pageParams[0]?.from ?? 0 });
  return [...evicted, ...(data?.pages ?? []).flatMap(({ rows }) => rows)];
}

const AUDIT_KEY = ["audit-log"];

/**
 * Returns functions that wait for a request and then read the cached data with `queryKey` and the audit log again.
 * `inBackground` resolves before the data have been read, `andRead` afterwards.
 */
export function useRefresh(queryKey: QueryKey) {
  const queries = useQueryClient();
  // What a request changes is recorded in the audit log, too.
  const refresh = () =>
    Promise.all([queryKey, AUDIT_KEY].map((key) => queries.invalidateQueries({ queryKey: key })));
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
