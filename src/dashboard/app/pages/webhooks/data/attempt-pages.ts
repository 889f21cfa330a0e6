import {
  useInfiniteQuery,
  useQueryClient,
  type InfiniteData,
  type QueryClient,
} from "@tanstack/react-query";

import { answerOf } from "../../../api/api-client.ts";
import { atCursor } from "../../../api/cursor.ts";
import { rowOf, type AttemptFilter } from "./attempt-rows.ts";
import { keys } from "./data.ts";
import { readableAt, type Reader } from "./reads.ts";
import { useReader } from "./use-reader.ts";

type Cursor = string | undefined;
type Pages = InfiniteData<Awaited<ReturnType<typeof readPage>>, Cursor>;

const PAGE = 100;
const FIRST: Cursor = undefined;

async function readPage(reader: Reader, id: string, filter: AttemptFilter, cursor: Cursor) {
  const { deliveries } = readableAt(reader, id);
  type Query = NonNullable<Parameters<typeof deliveries.get>[0]>["query"];
  // A filter of the address was checked as far as we know; the server has the last word.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const query = { limit: PAGE, ...filter, ...atCursor(cursor) } as NonNullable<Query>;
  const page = await answerOf(deliveries.get({ query }));
  // The bodies are left behind: of thousands of rows they would fill the memory.
  return { rows: page.data.map(rowOf), next: page.next_cursor };
}

/**
 * Reads attempts page by page; more pages than one are not read again by themselves, because that reads each of them.
 */
export function useAttemptPages(id: string, filter: AttemptFilter) {
  const reader = useReader();
  const queries = useQueryClient();
  const pages = useInfiniteQuery({
    queryKey: keys.attempts(id, filter),
    queryFn: ({ pageParam }) => readPage(reader, id, filter, pageParam),
    initialPageParam: FIRST,
    getNextPageParam: ({ next }) => next ?? undefined,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnMount: ({ state: { data } }) => (data?.pages.length === 1 ? "always" : false),
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
  /** Reads the newest page and drops the others; what is shown stays until it is there. */
  const readNewest = () => refetchFirst(queries, keys.attempts(id, filter));
  return { pages, readNewest };
}

async function refetchFirst(queries: QueryClient, queryKey: readonly unknown[]): Promise<void> {
  queries.setQueryData<Pages>(
    queryKey,
    (old) => old && { pages: old.pages.slice(0, 1), pageParams: old.pageParams.slice(0, 1) },
  );
  await queries.refetchQueries({ queryKey });
}
