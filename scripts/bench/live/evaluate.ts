// Compares the receivers' requests with the offered load.
import { encodeTime } from "ulid";

import { quantile, round } from "../figures.ts";
import type { Arrival } from "../sink.ts";
import type { Offered } from "../offer.ts";
import { placeOf, type Requests } from "../requests.ts";
import type { LiveRig } from "./rig.ts";

/**
 * Counts missing and duplicate deliveries, and inversions: events that arrived after a later one of their
 * subscription that the same client sent. The delays are from the first byte of the request and from its response.
 */
export function evaluate(requests: Requests, offered: Offered, arrivals: readonly Arrival[]) {
  const seen = new Set<string>();
  const newest = new Map<string, number>();
  const fromPublishMs: number[] = [];
  const fromAnswerMs: number[] = [];
  let [repeated, inversions, lastAt] = [0, 0, 0];
  for (const [, , host, at, key = ""] of arrivals) {
    const place = placeOf(requests, key);
    if (place === undefined) continue;
    if (seen.has(key)) {
      repeated += 1;
      continue;
    }
    seen.add(key);
    const { n, i } = place;
    // A client sends a request after the previous one was answered, so its later events were accepted later.
    const chain = `${host} ${offered.client[n]}`;
    const order = n * requests.perRequest + i;
    if (order < (newest.get(chain) ?? -1)) inversions += 1;
    else newest.set(chain, order);
    fromPublishMs.push(at - (offered.sentAt[n] ?? at));
    fromAnswerMs.push(at - (offered.answeredAt[n] ?? at));
    lastAt = Math.max(lastAt, at);
  }
  const expected = offered.count * requests.perRequest;
  return {
    missing: expected - seen.size,
    repeated,
    inversions,
    lastAt,
    fromPublishMs,
    fromAnswerMs,
  };
}

/** Counts events that arrived after one with a higher sequence; the sequences come from the attempts. */
export async function sequenceInversions(
  { db, tenants }: LiveRig,
  arrivals: readonly Arrival[],
  sinceMs: number,
): Promise<number> {
  const rows = await db.sql<{ id: string; host: string; sequence: number }[]>`
    select event_id as id, subscription_id as host, sequence from delivery_attempts
     where subscription_id = any(${tenants.map(({ subscriptionId }) => subscriptionId)}::text[])
       and id >= ${encodeTime(Math.floor(sinceMs), 10)} and attempt = 1`;
  const sequences = new Map(rows.map(({ id, sequence }) => [id, sequence]));
  const newest = new Map<string, number>();
  const seen = new Set<string>();
  let inversions = 0;
  for (const [id, , host] of arrivals) {
    const sequence = sequences.get(id);
    if (sequence === undefined || seen.has(id)) continue;
    seen.add(id);
    if (sequence < (newest.get(host) ?? 0)) inversions += 1;
    else newest.set(host, sequence);
  }
  return inversions;
}

export function latencies(waits: readonly number[]) {
  return {
    p50Ms: round(quantile(waits, 0.5), 1),
    p95Ms: round(quantile(waits, 0.95), 1),
    p99Ms: round(quantile(waits, 0.99), 1),
  };
}
