import { answerOf, type ApiClient } from "../../../api/api-client.ts";
import { STATS_RANGES, type StatsRange } from "./stats-range.ts";

/**
 * One subscription. Its id stands in the address of the page, and may be anything there; the client puts it into a path as
 * it is.
 */
export function subscriptionAt(api: ApiClient, id: string) {
  return api.partner.webhooks({ id: encodeURIComponent(id) });
}

/** One delivery of it; of its id the same is true. */
export function deliveryAt(api: ApiClient, id: string, eventId: string) {
  return subscriptionAt(api, id).deliveries({ eventId: encodeURIComponent(eventId) });
}

export function readSubscriptions(api: ApiClient) {
  return answerOf(api.partner.webhooks.get({ query: { limit: 100 } }));
}

export function readSubscription(api: ApiClient, id: string) {
  return answerOf(subscriptionAt(api, id).get());
}

export function readCatalog(api: ApiClient) {
  return answerOf(api.partner.webhooks.events.get());
}

export function readHealth(api: ApiClient, id: string) {
  return answerOf(subscriptionAt(api, id).health.get());
}

export function readStats(api: ApiClient, id: string, range: StatsRange) {
  const { spanMs, stepS } = STATS_RANGES[range];
  const query = { since: new Date(Date.now() - spanMs).toISOString(), step: stepS };
  return answerOf(subscriptionAt(api, id).stats.get({ query }));
}

export function readDelivery(api: ApiClient, id: string, eventId: string) {
  return answerOf(deliveryAt(api, id, eventId).get());
}

function readMessages(api: ApiClient, id: string) {
  return answerOf(subscriptionAt(api, id).messages.get({ query: {} }));
}

type Answer<Read extends (...args: never) => unknown> = Awaited<ReturnType<Read>>;

export type Subscription = Answer<typeof readSubscription>;
export type DeliveryKind = Subscription["delivery_kind"];
export type CatalogEvent = Answer<typeof readCatalog>["events"][number];
export type Health = Answer<typeof readHealth>;
export type Stats = Answer<typeof readStats>;
export type Delivery = Answer<typeof readDelivery>;
export type Attempt = Delivery["attempts"][number];
export type Message = Answer<typeof readMessages>["data"][number];
