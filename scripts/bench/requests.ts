// Builds signed requests of a provider before the measurement starts.
import { BASE_PATH } from "../../src/http/access.ts";
import { EVENTS_PATH, type Sign, type Tenant } from "./tenants.ts";
import { bytesOf } from "./wire.ts";

export interface Requests {
  readonly name: string;
  readonly bytes: readonly Uint8Array[];
  readonly perRequest: number;
  readonly tenants: readonly Pick<Tenant, "siteId">[];
}

const REQUEST = /-(\d+)-(\d+)$/;

/** Builds reports of new reviews for the tenants in turn. Each report is an event for one subscription. */
export function prepare(
  sign: Sign,
  tenants: readonly Pick<Tenant, "siteId">[],
  { name, count, perRequest }: { name: string; count: number; perRequest: number },
): Requests {
  const at = new Date().toISOString();
  const event = (n: number, i: number) => {
    const key = `${name}-${n}-${i}`;
    return {
      id: key,
      type: "review.created",
      occurred_at: at,
      store_review_site_id: tenants[(n * perRequest + i) % tenants.length]?.siteId,
      review: {
        external_review_id: key,
        rate: (i % 5) + 1,
        reviewer: "Ada Reviewer",
        reviewer_email: "ada@homeowner.example",
        content: `Friendly people, clean work, and on time. Number ${n} of many, and ${i} of its own kind.`,
        reviewed_at: at,
      },
    };
  };
  const events = (n: number) => Array.from({ length: perRequest }, (_, i) => event(n, i));
  const bytes = Array.from({ length: count }, (_, n) => {
    const body = JSON.stringify({ events: events(n) });
    const headers = { "Content-Type": "application/json", "X-Provider-Signature": sign(body) };
    return bytesOf("POST", EVENTS_PATH, { headers, body });
  });
  return { name, bytes, perRequest, tenants };
}

/** Builds actions of a service on reviews, one per review. */
export function prepareActions(
  token: string,
  reviewIds: readonly number[],
  { name, perRequest }: { name: string; perRequest: number },
): Requests {
  const at = new Date().toISOString();
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
  const actions = reviewIds.map((id) => ({
    id: `${name}-${id}`,
    event: "response_submitted",
    review_id: id,
    actor: { type: "system" },
    metadata: { body: `Thank you for your visit number ${id}; we are glad that you liked it.` },
    occurred_at: at,
  }));
  const bytes: Uint8Array[] = [];
  for (let from = 0; from < actions.length; from += perRequest) {
    const body = JSON.stringify({ actions: actions.slice(from, from + perRequest) });
    bytes.push(bytesOf("POST", `${BASE_PATH}/platform/actions`, { headers, body }));
  }
  return { name, bytes, perRequest, tenants: [] };
}

/**
 * Returns the request of an event and its position in the request, from the external review id that the receiver got.
 */
export function placeOf(
  { name }: Pick<Requests, "name">,
  key: string | undefined,
): { n: number; i: number } | undefined {
  if (key?.startsWith(`${name}-`) !== true) return undefined;
  const [, n, i] = REQUEST.exec(key) ?? [];
  return { n: Number(n), i: Number(i) };
}
