import { answerOf, type ApiClient } from "../../../api/client.ts";
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
export function readableAt({ api, partnerId }: Reader, id: string) {
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

export function readSubscriptions(reader: Reader) {
  return answerOf(listOf(reader).get({ query: { limit: 100 } }));
}

export function readSubscription(reader: Reader, id: string) {
  return answerOf(readableAt(reader, id).get());
}

export function readCatalog(reader: Reader) {
  return answerOf(listOf(reader).events.get());
}

export function readHealth(reader: Reader, id: string) {
  return answerOf(readableAt(reader, id).health.get());
}

export function readIncident(reader: Reader, id: string) {
  return answerOf(readableAt(reader, id).incident.get());
}

export function readStats(reader: Reader, id: string, span: Span, isByEvent: boolean) {
  const query = { ...statsQuery(span, Date.now()), ...(isByEvent && { by: "event" as const }) };
  return answerOf(readableAt(reader, id).stats.get({ query }));
}

export function readDelivery(reader: Reader, id: string, eventId: string) {
  const { deliveries } = readableAt(reader, id);
  return answerOf(deliveries({ eventId: encodeURIComponent(eventId) }).get());
}

function readMessages(reader: Reader, id: string) {
  return answerOf(readableAt(reader, id).messages.get({ query: {} }));
}

type Answer<Read extends (...args: never) => unknown> = Awaited<ReturnType<Read>>;

export type Subscription = Answer<typeof readSubscription>;
export type DeliveryKind = Subscription["delivery_kind"];
export type CatalogEvent = Answer<typeof readCatalog>["events"][number];
export type Health = Answer<typeof readHealth>;
export type Incident = Answer<typeof readIncident>;
export type Stats = Answer<typeof readStats>;
export type Delivery = Answer<typeof readDelivery>;
export type Attempt = Delivery["attempts"][number];
export type Message = Answer<typeof readMessages>["data"][number];
