import { answerOf } from "../../../api/api-client.ts";
import { atCursor } from "../../../api/cursor.ts";
import { rowOf, type AttemptFilter, type AttemptRow } from "./attempt-rows.ts";
import { keys } from "./data.ts";
import { usePages, type ReadPage } from "../../../ui/pages.ts";
import { readableAt, type Reader } from "./reads.ts";
import { useReader } from "./use-reader.ts";

const PAGE = 100;

export async function readAttempts(
  reader: Reader,
  id: string,
  filter: AttemptFilter,
  cursor: string | undefined,
): Promise<ReadPage<AttemptRow>> {
  const { deliveries } = readableAt(reader, id);
  type Query = NonNullable<Parameters<typeof deliveries.get>[0]>["query"];
  // A filter of the address was checked as far as we know; the server has the last word.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const query = { limit: PAGE, ...filter, ...atCursor(cursor) } as NonNullable<Query>;
  const page = await answerOf(deliveries.get({ query }));
  // The bodies are left behind: of thousands of rows they would fill the memory.
  return { rows: page.data.map(rowOf), next: page.next_cursor };
}

export function useAttemptPages(id: string, filter: AttemptFilter) {
  const reader = useReader();
  return usePages(keys.attempts(id, filter), (cursor) => readAttempts(reader, id, filter, cursor), {
    isReadOnce: true,
  });
}
