import type { ApiClient } from "../../ui/api-client.ts";

/* What the API answers, by the declarations of its routes. */

declare const api: ApiClient;
type Answer<F extends (...args: never) => unknown> = Awaited<ReturnType<F>>;

export type Subscription = Answer<typeof api.call<"GET", "/partner/webhooks/:id">>;
export type DeliveryKind = Subscription["delivery_kind"];
export type Catalog = Answer<typeof api.call<"GET", "/partner/webhooks/events">>;
export type CatalogEvent = Catalog["events"][number];
export type Health = Answer<typeof api.call<"GET", "/partner/webhooks/:id/health">>;
export type Stats = Answer<typeof api.call<"GET", "/partner/webhooks/:id/stats">>;
export type Delivery = Answer<typeof api.call<"GET", "/partner/webhooks/:id/deliveries/:eventId">>;
export type Attempt = Delivery["attempts"][number];
