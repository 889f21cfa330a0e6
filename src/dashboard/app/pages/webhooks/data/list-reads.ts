import { queryOptions } from "@tanstack/react-query";

import { answerOf, atCursor, type DataOf, type QueryOf } from "../../../api/client.ts";
import { type DeliveryFilter, deliveryQuery } from "./filters.ts";
import { readableAt, type Reader, subscriptionKey } from "./reads.ts";

const PAGE = 100;

export function readDeliveries(
  reader: Reader,
  id: string,
  filter: DeliveryFilter,
  { limit = PAGE, cursor }: { readonly limit?: number; readonly cursor?: string | undefined },
) {
  const { messages } = readableAt(reader, id);
  const given = { limit, ...deliveryQuery(filter, Date.now()), ...atCursor(cursor) };
  // The assertion is needed because the filter values are plain strings from the address. They were checked
  // against the values that this version knows, and the API validates them again.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return answerOf(messages.get({ query: given as unknown as QueryOf<typeof messages.get> }));
}

/** Reads one event in the form in which the event list returns it, which includes the review. */
export const listedDeliveryOptions = (reader: Reader, id: string, eventId: string) =>
  queryOptions({
    queryKey: subscriptionKey(id, "listed-delivery", eventId),
    queryFn: async () => {
      const { data } = await readDeliveries(reader, id, { event_id: eventId }, { limit: 1 });
      return data[0] ?? null;
    },
  });

export type ListedDelivery = NonNullable<DataOf<typeof listedDeliveryOptions>>;
