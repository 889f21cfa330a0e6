import type { ApiClient } from "../../../api/api-client.ts";
import { STATS_RANGES, type StatsRange } from "./stats-range.ts";

export function readSubscriptions(api: ApiClient) {
  return api.call("GET", "/partner/webhooks", { query: { limit: 100 } });
}

export function readSubscription(api: ApiClient, id: string) {
  return api.call("GET", "/partner/webhooks/:id", { params: { id } });
}

export function readCatalog(api: ApiClient) {
  return api.call("GET", "/partner/webhooks/events", {});
}

export function readHealth(api: ApiClient, id: string) {
  return api.call("GET", "/partner/webhooks/:id/health", { params: { id } });
}

export function readStats(api: ApiClient, id: string, range: StatsRange) {
  const { spanMs, stepS } = STATS_RANGES[range];
  const query = { since: new Date(Date.now() - spanMs).toISOString(), step: stepS };
  return api.call("GET", "/partner/webhooks/:id/stats", { params: { id }, query });
}

export function readDelivery(api: ApiClient, id: string, eventId: string) {
  const params = { id, eventId };
  return api.call("GET", "/partner/webhooks/:id/deliveries/:eventId", { params });
}

type Answer<Read extends (...args: never) => unknown> = Awaited<ReturnType<Read>>;

export type Subscription = Answer<typeof readSubscription>;
export type DeliveryKind = Subscription["delivery_kind"];
export type CatalogEvent = Answer<typeof readCatalog>["events"][number];
export type Health = Answer<typeof readHealth>;
export type Stats = Answer<typeof readStats>;
export type Delivery = Answer<typeof readDelivery>;
export type Attempt = Delivery["attempts"][number];
