import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import {
  answerOf,
  type ApiClient,
  atCursor,
  type DataOf,
  type QueryOf,
} from "../../../api/client.ts";
import { listOptions, READ_ONCE } from "../../../ui/pages.ts";
import { type DeliveryFilter, deliveryQuery } from "./filters.ts";
import { statsQuery, type Span } from "./stats-range.ts";

/**
 * API client, and the partner whose subscriptions it reads. Without `partnerId` a partner reads its own
 * subscriptions; with `partnerId` an operator reads those of this partner.
 */
export interface Reader {
  readonly api: ApiClient;
  readonly partnerId: number | undefined;
}

/**
 * Returns the API routes of one subscription. Encodes the id, because the address may contain any text as id
 * and the API client does not encode path segments.
 */
export function subscriptionAt(api: ApiClient, id: string) {
  return api.partner.webhooks({ id: encodeURIComponent(id) });
}

/** Returns the API routes of one delivery. Encodes the event id, because the address may contain any text as id. */
export function deliveryAt(api: ApiClient, id: string, eventId: string) {
  return subscriptionAt(api, id).deliveries({ eventId: encodeURIComponent(eventId) });
}

/** Returns the routes that read a subscription: the partner's own routes, or the operator's routes for this partner. */
function readableAt({ api, partnerId }: Reader, id: string) {
  const given = encodeURIComponent(id);
  return partnerId === undefined
    ? api.partner.webhooks({ id: given })
    : api.admin.partners({ id: partnerId }).webhooks({ subscriptionId: given });
}

/** Returns the path of a subscription's event stream below `{base_url}`. */
export function streamPath({ partnerId }: Reader, id: string): string {
  const list =
    partnerId === undefined ? "/partner/webhooks" : `/admin/partners/${partnerId}/webhooks`;
  return `${list}/${encodeURIComponent(id)}/stream`;
}

function listOf({ api, partnerId }: Reader) {
  return partnerId === undefined
    ? api.partner.webhooks
    : api.admin.partners({ id: partnerId }).webhooks;
}

/** Key with which the keys of all cached webhook data begin. */
export const WEBHOOKS = ["webhooks"] as const;

/** Builds the cache key of data of a subscription. It begins with the key of the subscription itself. */
export const subscriptionKey = (id: string, ...rest: readonly unknown[]) =>
  [...WEBHOOKS, "one", id, ...rest] as const;

export const STATS = "stats";
/** Part of the keys of all counts of a resend. */
export const RESENT = "resent";

const LIST_MS = 10_000;
const STATS_MS = 30_000;
/**
 * Polling interval in ms before the first delivery attempt. It is short because the user is waiting for the
 * result of a test.
 */
const WAITING_FOR_ATTEMPT_MS = 500;
const WAITING_FOR_RETRY_MS = 2_000;

export const subscriptionsOptions = (reader: Reader) =>
  queryOptions({
    queryKey: [...WEBHOOKS, "list", reader.partnerId],
    queryFn: () => answerOf(listOf(reader).get({ query: { limit: 100 } })),
    refetchInterval: LIST_MS,
  });

export const subscriptionOptions = (reader: Reader, id: string) =>
  queryOptions({
    queryKey: subscriptionKey(id),
    queryFn: () => answerOf(readableAt(reader, id).get()),
    // Polls while a test is pending, because its answer changes the state of the subscription and the event stream
    // may report the change later.
    refetchInterval: ({ state: { data } }) =>
      data?.pending_test_event_id ? WAITING_FOR_ATTEMPT_MS : false,
  });

export const catalogOptions = (reader: Reader) =>
  queryOptions({
    queryKey: [...WEBHOOKS, "catalog"],
    queryFn: () => answerOf(listOf(reader).events.get()),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const healthOptions = (reader: Reader, id: string) =>
  queryOptions({
    queryKey: subscriptionKey(id, "health"),
    queryFn: () => answerOf(readableAt(reader, id).health.get()),
    refetchInterval: LIST_MS,
  });

export const incidentOptions = (reader: Reader, id: string) =>
  queryOptions({
    // Begins like the key of the charts, so that a new attempt updates both.
    queryKey: subscriptionKey(id, STATS, "incident"),
    queryFn: () => answerOf(readableAt(reader, id).incident.get()),
    refetchInterval: LIST_MS,
  });

export const pastIncidentsOptions = (reader: Reader, id: string) =>
  queryOptions({
    queryKey: subscriptionKey(id, "incidents"),
    queryFn: () => answerOf(readableAt(reader, id).incidents.get()),
    refetchInterval: STATS_MS,
  });

/**
 * Reads the statistics of a subscription. When the time span changes, the previous statistics stay visible
 * until the new ones have loaded.
 */
export const statsOptions = (reader: Reader, id: string, span: Span, isByEvent = false) =>
  queryOptions({
    queryKey: subscriptionKey(id, STATS, span, isByEvent),
    queryFn: () => {
      const query = { ...statsQuery(span, Date.now()), ...(isByEvent && { by: "event" as const }) };
      return answerOf(readableAt(reader, id).stats.get({ query }));
    },
    refetchInterval: STATS_MS,
    placeholderData: keepPreviousData,
  });

/** Polls a delivery until it is settled, which means that no further attempt will follow. */
export const deliveryOptions = (reader: Reader, id: string, eventId: string) =>
  queryOptions({
    queryKey: subscriptionKey(id, "delivery", eventId),
    queryFn: () => {
      const { deliveries } = readableAt(reader, id);
      return answerOf(deliveries({ eventId: encodeURIComponent(eventId) }).get());
    },
    refetchInterval: ({ state: { data } }) => {
      const isSent = data?.attempts.length !== 0 || data.event !== "webhook.test";
      if (data === undefined || data.state === "pending" || !isSent) return WAITING_FOR_ATTEMPT_MS;
      return data.settled_at === null ? WAITING_FOR_RETRY_MS : false;
    },
  });

const CHECK_MS = 1_000;

/** Reads the report of a check of the endpoint, and polls it until the check has ended. */
export const checkOptions = (reader: Reader, id: string, checkId: string) =>
  queryOptions({
    queryKey: subscriptionKey(id, "check", checkId),
    queryFn: () => answerOf(readableAt(reader, id).check({ checkId }).get()),
    refetchInterval: ({ state: { data } }) =>
      data === undefined || data.finished_at === null ? CHECK_MS : false,
  });

/** Id of the newest check that this page has requested; null before the first one. */
export const newestCheckOptions = (id: string) => {
  const queryKey = subscriptionKey(id, "newest-check");
  return queryOptions<string | null>({
    queryKey,
    queryFn: ({ client }) => client.getQueryData<string>(queryKey) ?? null,
    staleTime: Number.POSITIVE_INFINITY,
  });
};

/** Whether the user has asked for a retry of an event at once that has no outcome yet. */
export const retryingOptions = (id: string, eventId: string) => {
  const queryKey = subscriptionKey(id, "retrying", eventId);
  return queryOptions<boolean>({
    queryKey,
    queryFn: ({ client }) => client.getQueryData<boolean>(queryKey) ?? false,
    staleTime: Number.POSITIVE_INFINITY,
  });
};

/** Number of events that the page lists of those that wait for a batch. */
const WAITING_LISTED = 10;

/** Reads the newest events that wait for the next batch of a subscription. */
export const waitingOptions = (reader: Reader, id: string) =>
  queryOptions({
    queryKey: subscriptionKey(id, "waiting-for-batch"),
    queryFn: async () => {
      const filter = { state: "waiting_for_batch" };
      return (await readDeliveries(reader, id, filter, { limit: WAITING_LISTED })).data;
    },
    refetchInterval: LIST_MS,
  });

const DELIVERIES_PER_PAGE = 100;

export function readDeliveries(
  reader: Reader,
  id: string,
  filter: DeliveryFilter,
  {
    limit = DELIVERIES_PER_PAGE,
    cursor,
  }: { readonly limit?: number; readonly cursor?: string | undefined },
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

/**
 * Maximum number of empty pages in a row that are skipped automatically. A filtered page may be empty although later
 * pages contain matches. After this number of pages the user must ask for more.
 */
const MAX_EMPTY_PAGES = 10;

/** Lists the events of a subscription that match the filter, with their deliveries. */
export const deliveriesOptions = (reader: Reader, id: string, filter: DeliveryFilter) => ({
  ...listOptions(subscriptionKey(id, "deliveries", filter), async (cursor) => {
    let page = await readDeliveries(reader, id, filter, { cursor });
    for (let i = 0; i < MAX_EMPTY_PAGES && page.data.length === 0 && page.next_cursor !== null; i++)
      page = await readDeliveries(reader, id, filter, { cursor: page.next_cursor });
    return page;
  }),
  ...READ_ONCE,
});

/** Maximum number of events that one "recover" request queues, and that a search for the events of a filter finds. */
export const MAX_RESENT_EVENTS = 10_000;

interface EventSearch {
  readonly reader: Reader;
  readonly id: string;
  readonly filter: DeliveryFilter;
  /** States of the events that may be resent. */
  readonly states: readonly Delivery["state"][];
  readonly onProgress: (count: number) => void;
}

/** Reads the events of a filter that can be resent, in the order in which they were recorded, without tests. */
export const resendableOptions = ({ reader, id, filter, states, onProgress }: EventSearch) =>
  queryOptions({
    queryKey: ["resend", id, filter, states],
    queryFn: async ({ signal }) => {
      const events = new Map<string, number>();
      let isCut = false;
      for (const state of states.filter((one) => (filter.state ?? one) === one)) {
        let cursor: string | undefined;
        do {
          const page = await readDeliveries(reader, id, { ...filter, state }, { cursor });
          signal.throwIfAborted();
          for (const one of page.data) if (!isTest(one)) events.set(one.event_id, one.sequence);
          cursor = page.next_cursor ?? undefined;
          onProgress(events.size);
        } while (cursor !== undefined && events.size < MAX_RESENT_EVENTS);
        isCut ||= cursor !== undefined;
      }
      // The id of an event begins with its time.
      const sorted = [...events].toSorted(([one], [other]) => (one < other ? -1 : 1));
      return { events: sorted.slice(-MAX_RESENT_EVENTS), isCut };
    },
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Returns whether a delivery is a test: every other event is about a store. */
export const isTest = ({ store_id: storeId }: Pick<ListedDelivery, "store_id">): boolean =>
  storeId === null;

export type ListedDelivery = NonNullable<DataOf<typeof listedDeliveryOptions>>;
export type Subscription = DataOf<typeof subscriptionOptions>;
/** Properties of a component that shows a subscription. */
export interface SubscriptionProps {
  readonly subscription: Subscription;
}

export type DeliveryKind = Subscription["delivery_kind"];
export type CatalogEvent = DataOf<typeof catalogOptions>["events"][number];
export type Health = DataOf<typeof healthOptions>;
export type Incident = DataOf<typeof incidentOptions>;
export type PastIncident = DataOf<typeof pastIncidentsOptions>["incidents"][number];
export type Stats = DataOf<typeof statsOptions>;
export type Delivery = DataOf<typeof deliveryOptions>;
export type CheckReport = DataOf<typeof checkOptions>;
export type CheckFinding = CheckReport["findings"][number];
export type Attempt = Delivery["attempts"][number];
