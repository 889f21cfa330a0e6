import { Button, Group, Stack, Text } from "@mantine/core";
import {
  keepPreviousData,
  useInfiniteQuery,
  type InfiniteData,
  type UseInfiniteQueryResult,
} from "@tanstack/react-query";
import type { ReactNode } from "react";

import type { CursorPage } from "../api/cursor.ts";
import { DataTable, type DataTableProps } from "./data-table.tsx";
import { counted } from "./format.ts";
import { ErrorNotice, Loading } from "./states.tsx";

type ListQuery<Row> = UseInfiniteQueryResult<InfiniteData<CursorPage<Row>>>;

/** Reads a list of the API page by page. While other filters load, the rows of before stay. */
export function useList<Row>(
  key: readonly unknown[],
  load: (cursor: string | undefined) => Promise<CursorPage<Row>>,
  options: { readonly refetchInterval?: number } = {},
): ListQuery<Row> {
  return useInfiniteQuery<
    CursorPage<Row>,
    Error,
    InfiniteData<CursorPage<Row>>,
    readonly unknown[],
    string | undefined
  >({
    queryKey: key,
    queryFn: ({ pageParam }) => load(pageParam),
    initialPageParam: undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    ...options,
  });
}

/** Answers the rows that were read so far. */
export function rowsOf<Row>({ data }: ListQuery<Row>): readonly Row[] {
  return data?.pages.flatMap((page) => page.data) ?? [];
}

interface ListProps<Row> {
  readonly query: ListQuery<Row>;
  /** It is shown where there are no rows. */
  readonly empty?: ReactNode;
  /**
   * The words for one row and for many, such as `["review", "reviews"]`; with them the number of rows is said below.
   */
  readonly noun?: readonly [one: string, many: string];
  /** The words on the button that loads the next page. */
  readonly more?: string;
  readonly children: (rows: readonly Row[]) => ReactNode;
}

/** Shows the rows of a list, or that it loads, failed or is empty, and the button for more of them. */
export function List<Row>({ query, empty, noun, more = "Show more", children }: ListProps<Row>) {
  const { data, error, isPlaceholderData, refetch } = query;
  if (data === undefined)
    return error === null ? (
      <Loading />
    ) : (
      <ErrorNotice error={error} retry={() => void refetch()} />
    );
  const rows = rowsOf(query);
  return (
    <Stack gap="md" aria-busy={isPlaceholderData} className={isPlaceholderData ? "stale" : ""}>
      {rows.length === 0 ? empty : children(rows)}
      <ListEnd query={query} more={more} {...(noun && { noun })} />
    </Stack>
  );
}

/** Shows what failed after the first page, the number of rows, and the button for more. */
function ListEnd<Row>({ query, more, noun }: Pick<ListProps<Row>, "query" | "more" | "noun">) {
  const { error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = query;
  const next = () => void fetchNextPage();
  const retry = () => (query.isFetchNextPageError ? next() : void refetch());
  if (error === null && !hasNextPage && noun === undefined) return null;
  return (
    <>
      {error !== null && <ErrorNotice error={error} retry={retry} />}
      <Group justify="center" gap="md">
        {noun && <RowCount count={rowsOf(query).length} noun={noun} isPart={hasNextPage} />}
        {hasNextPage && (
          <Button variant="default" onClick={next} loading={isFetchingNextPage}>
            {more}
          </Button>
        )}
      </Group>
    </>
  );
}

interface RowCountProps {
  readonly count: number;
  readonly noun: readonly [one: string, many: string];
  /** Whether there are more rows. */
  readonly isPart: boolean;
}

/** Says the number of rows. That there are none is said to screen readers only: the empty state says it to the eyes. */
function RowCount({ count, noun, isPart }: RowCountProps) {
  const isEmpty = count === 0;
  return (
    <Text
      size="sm"
      c="dimmed"
      component="output"
      aria-live="polite"
      className={isEmpty ? "unseen" : ""}
    >
      {isEmpty ? `No ${noun[1]}` : counted(count, ...noun)}
      {isPart ? " so far" : ""}
    </Text>
  );
}

interface TableListProps<Row> extends Omit<ListProps<Row>, "children"> {
  readonly table: Omit<DataTableProps<Row>, "rows" | "rowKey">;
}

/** A list whose rows stand in a table. */
export function TableList<Row extends { readonly id: number | string }>({
  table,
  ...list
}: TableListProps<Row>) {
  return (
    <List {...list}>{(rows) => <DataTable rows={rows} rowKey={({ id }) => id} {...table} />}</List>
  );
}
