import type { Tx } from "../../../db/client.ts";
import type { Page } from "../../http/list.ts";
import {
  attemptConditionOf,
  type DeliveryFilter,
  type DeliveryPage,
  deliveryCursorText,
  FIRST_CURSOR,
  readDeliveryCursor,
  WAITING_FOR_BATCH,
} from "../delivery-list-model.ts";
import type { Subscription } from "../model.ts";
import { eventsForBatch } from "../queries/delivery-walks.ts";

/** A page with filters reads at most this many events, and then ends even if it is not full. */
const MAX_ROWS_READ = 1_000;

type WaitingEvent = Awaited<ReturnType<typeof eventsForBatch>>[number];

/**
 * Lists the events that wait for the next batch, the newest first (contract 6.19). They have no number and no attempt
 * yet, so a filter by either matches none.
 */
export async function listForBatch(
  tx: Tx,
  { id }: Subscription,
  filter: DeliveryFilter,
  page: Page,
): Promise<DeliveryPage> {
  if (filter.numbers !== undefined || attemptConditionOf(filter) !== undefined)
    return { rows: [], next: undefined };
  const { entry: below } = readDeliveryCursor(page.after ?? "") ?? FIRST_CURSOR;
  const { state: _state, ...others } = filter;
  const isFiltered = Object.values(others).some((value) => value !== undefined);
  const limit = isFiltered ? MAX_ROWS_READ : page.limit + 1;
  const read = await eventsForBatch(tx, { id, below, limit });
  const matching = read.filter((one) => passesFilter(filter, one));
  const shown = matching.slice(0, page.limit);
  const isEnd = (read[0]?.walked ?? 0) < limit && matching.length <= page.limit;
  const last = matching.length > page.limit ? shown.at(-1) : read.at(-1);
  return {
    rows: shown.map(({ walked: _walked, position: _position, recordedAt, ...event }) => ({
      ...event,
      sequence: 0,
      state: WAITING_FOR_BATCH,
      createdAt: recordedAt,
      listedAt: recordedAt,
      settledAt: null,
      waitingBehind: null,
      attempts: [],
    })),
    next:
      isEnd || last === undefined
        ? undefined
        : deliveryCursorText({ ...FIRST_CURSOR, entry: last.position }),
  };
}

function passesFilter(filter: DeliveryFilter, event: WaitingEvent): boolean {
  const { since, until } = filter;
  return (
    (filter.event ?? event.event) === event.event &&
    (filter.eventId ?? event.eventId) === event.eventId &&
    (filter.reviewId ?? event.reviewId) === event.reviewId &&
    (filter.externalReviewId ?? event.externalReviewId) === event.externalReviewId &&
    (since === undefined || event.recordedAt >= since) &&
    (until === undefined || event.recordedAt < until)
  );
}
