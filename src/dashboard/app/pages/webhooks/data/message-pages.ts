import { useQuery } from "@tanstack/react-query";

import { answerOf } from "../../../api/api-client.ts";
import { atCursor } from "../../../api/cursor.ts";
import { keys } from "./data.ts";
import { messageQuery, type MessageFilter } from "./message-filter.ts";
import { usePages, type ReadPage } from "../../../ui/pages.ts";
import { readableAt, type Message, type Reader } from "./reads.ts";
import { useReader } from "./use-reader.ts";

const PAGE = 100;
/** A page that found nothing goes on by itself so many times; then somebody has to want it. */
const EMPTY_PAGES = 10;

async function readPage(
  reader: Reader,
  id: string,
  filter: MessageFilter,
  cursor: string | undefined,
): Promise<ReadPage<Message>> {
  let page = await readMessages(reader, id, filter, { limit: PAGE, cursor });
  for (let i = 0; i < EMPTY_PAGES && page.data.length === 0 && page.next_cursor !== null; i++)
    page = await readMessages(reader, id, filter, { limit: PAGE, cursor: page.next_cursor });
  return { rows: page.data, next: page.next_cursor };
}

export function readMessages(
  reader: Reader,
  id: string,
  filter: MessageFilter,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
) {
  const { messages } = readableAt(reader, id);
  type Query = NonNullable<Parameters<typeof messages.get>[0]>["query"];
  const given = { limit, ...messageQuery(filter, Date.now()), ...atCursor(cursor) };
  // A filter of the address was checked as far as we know; the server has the last word.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return answerOf(messages.get({ query: given as unknown as NonNullable<Query> }));
}

export function useMessagePages(id: string, filter: MessageFilter) {
  const reader = useReader();
  return usePages(keys.messages(id, filter), (cursor) => readPage(reader, id, filter, cursor), {
    isReadOnce: true,
  });
}

/** One event as the list of them has it: with its review. */
export function useMessage(id: string, eventId: string) {
  const reader = useReader();
  const filter = { event_id: eventId };
  return useQuery({
    queryKey: keys.messages(id, { ...filter, limit: 1 }),
    queryFn: async () => {
      const page = await readMessages(reader, id, filter, { limit: 1, cursor: undefined });
      return page.data[0] ?? null;
    },
  });
}
