// Compares the requests that the receivers got with the offered load.
import { encodeTime } from "ulid";

import { judgeArrivals } from "../../../tests/invariants/arrivals.ts";
import { quantile, round } from "../figures.ts";
import type { Arrival } from "../sink.ts";
import type { Offered } from "../offer.ts";
import { placeOf, type Requests } from "../requests.ts";
import type { LiveRig } from "./rig.ts";

/**
 * Counts missing and duplicate deliveries, and inversions: events that arrived after a later event of the same
 * subscription from the same client. The delays are measured from the first byte of the request, and from its response.
 */
export function evaluate(requests: Requests, offered: Offered, arrivals: readonly Arrival[]) {
  const placed = arrivals.flatMap(([, , host, at, key]) => {
    const place = placeOf(requests, key);
    if (place === undefined) return [];
    const { n, i } = place;
    // A client sends a request after the previous one was answered, so its later events were accepted later.
    return [{ lane: `${host} ${offered.client[n]}`, place: n * requests.perRequest + i, n, at }];
  });
  const { first, overtaken, repeated } = judgeArrivals(placed);
  return {
    missing: offered.count * requests.perRequest - first.length,
    repeated,
    inversions: overtaken.length,
    lastAt: first.reduce((last, { at }) => Math.max(last, at), 0),
    fromPublishMs: first.map(({ n, at }) => at - (offered.sentAt[n] ?? at)),
    fromAnswerMs: first.map(({ n, at }) => at - (offered.answeredAt[n] ?? at)),
  };
}

/**
 * Counts events that arrived after an event with a higher sequence number. The sequence numbers come from the attempts.
 */
export async function sequenceInversions(
  { db, tenants }: LiveRig,
  arrivals: readonly Arrival[],
  sinceMs: number,
): Promise<number> {
  const rows = await db.sql<{ id: string; sequence: number }[]>`
    select event_id as id, sequence from delivery_attempts
     where subscription_id = any(${tenants.map(({ subscriptionId }) => subscriptionId)}::text[])
       and id >= ${encodeTime(Math.floor(sinceMs), 10)} and attempt = 1`;
  const sequences = new Map(rows.map(({ id, sequence }) => [id, sequence]));
  const placed = arrivals.flatMap(([id, , lane]) => {
    const place = sequences.get(id);
    return place === undefined ? [] : [{ lane, place }];
  });
  return judgeArrivals(placed).overtaken.length;
}

export function latencies(waits: readonly number[]) {
  return {
    p50Ms: round(quantile(waits, 0.5), 1),
    p95Ms: round(quantile(waits, 0.95), 1),
    p99Ms: round(quantile(waits, 0.99), 1),
  };
}
