import { queryOptions } from "@tanstack/react-query";

import { answerOf, atCursor, type DataOf } from "../../../api/client.ts";
import { type AttemptFilter, type MessageFilter, messageQuery, rowOf } from "./filters.ts";
import { readableAt, type Reader, subscriptionKey } from "./reads.ts";

const PAGE = 100;

export async function readAttempts(
  reader: Reader,
  id: string,
  filter: AttemptFilter,
  cursor: string | undefined,
) {
  const { deliveries } = readableAt(reader, id);
  type Query = NonNullable<Parameters<typeof deliveries.get>[0]>["query"];
  // The assertion is needed because the filter values are plain strings from the address. They were checked
  // against the values that this version knows, and the API validates them again.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const query = { limit: PAGE, ...filter, ...atCursor(cursor) } as NonNullable<Query>;
  const page = await answerOf(deliveries.get({ query }));
  // Drops request and response bodies, because the bodies of thousands of attempts would fill the memory.
  return { ...page, data: page.data.map(rowOf) };
}

export function readMessages(
  reader: Reader,
  id: string,
  filter: MessageFilter,
  { limit = PAGE, cursor }: { readonly limit?: number; readonly cursor?: string | undefined },
) {
  const { messages } = readableAt(reader, id);
  type Query = NonNullable<Parameters<typeof messages.get>[0]>["query"];
  const given = { limit, ...messageQuery(filter, Date.now()), ...atCursor(cursor) };
  // The assertion is needed because the filter values are plain strings from the address. They were checked
  // against the values that this version knows, and the API validates them again.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return answerOf(messages.get({ query: given as unknown as NonNullable<Query> }));
}

/** Reads one event in the form in which the event list returns it, which includes the review. */
export const messageOptions = (reader: Reader, id: string, eventId: string) =>
  queryOptions({
    queryKey: subscriptionKey(id, "message", eventId),
    queryFn: async () => {
      const { data } = await readMessages(reader, id, { event_id: eventId }, { limit: 1 });
      return data[0] ?? null;
    },
  });

export type Message = NonNullable<DataOf<typeof messageOptions>>;
