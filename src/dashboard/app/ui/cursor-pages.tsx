import { Button, Group, Stack, Text } from "@mantine/core";
import {
  keepPreviousData,
  useInfiniteQuery,
  type InfiniteData,
  type UseInfiniteQueryResult,
} from "@tanstack/react-query";
import type { ReactNode } from "react";

import { ErrorNotice, Loading } from "./states.tsx";
import { counted } from "./words.ts";

interface KeysetPage<Row> {
  readonly data: readonly Row[];
  readonly next_cursor: string | null;
}
type CursorQuery<Row> = UseInfiniteQueryResult<InfiniteData<KeysetPage<Row>>>;

/** A list of the API, page by page. While other filters load, what was there stays. */
export function useCursorPages<Row>(
  key: readonly unknown[],
  load: (cursor: string | undefined) => Promise<KeysetPage<Row>>,
): CursorQuery<Row> {
  return useInfiniteQuery<
    KeysetPage<Row>,
    Error,
    InfiniteData<KeysetPage<Row>>,
    readonly unknown[],
    string | undefined
  >({
    queryKey: key,
    queryFn: ({ pageParam }) => load(pageParam),
    initialPageParam: undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
  });
}

/** The rows of a list, and the way to more of them. */
export function CursorPages<Row>({
  query,
  noun,
  empty,
  children,
}: {
  readonly query: CursorQuery<Row>;
  /** What the rows are, one and many: `["review", "reviews"]`. */
  readonly noun: readonly [one: string, many: string];
  readonly empty: ReactNode;
  readonly children: (rows: readonly Row[]) => ReactNode;
}) {
  const { data, error, isPlaceholderData, refetch } = query;
  if (data === undefined)
    return error === null ? (
      <Loading />
    ) : (
      <ErrorNotice error={error} retry={() => void refetch()} />
    );
  const rows = data.pages.flatMap((page) => page.data);
  return (
    <Stack gap="md" aria-busy={isPlaceholderData} className={isPlaceholderData ? "stale" : ""}>
      {rows.length === 0 ? empty : children(rows)}
      <More query={query} noun={noun} count={rows.length} />
    </Stack>
  );
}

interface MoreProps<Row> {
  readonly query: CursorQuery<Row>;
  readonly noun: readonly [one: string, many: string];
  readonly count: number;
}

function More<Row>({ query, noun, count }: MoreProps<Row>) {
  // The empty state says it to the eyes.
  const isEmpty = count === 0;
  const { error, hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const next = () => void fetchNextPage();
  return (
    <>
      {error !== null && <ErrorNotice error={error} retry={next} />}
      <Group justify="center" gap="md">
        <Text
          size="sm"
          c="dimmed"
          component="output"
          aria-live="polite"
          className={isEmpty ? "unseen" : ""}
        >
          {isEmpty ? `No ${noun[1]}` : counted(count, ...noun)}
          {hasNextPage ? " so far" : ""}
        </Text>
        {hasNextPage && (
          <Button variant="default" size="sm" onClick={next} loading={isFetchingNextPage}>
            Show more
          </Button>
        )}
      </Group>
    </>
  );
}
