import type { RawDb } from "../../db/client.ts";
import type { Receiver } from "./load.ts";

export interface Verdict {
  readonly facts: Readonly<Record<string, number>>;
  /** Whether nothing is lost and nothing is out of order. */
  readonly isValid: boolean;
}

/** Whether every entry is settled; the verdict is meaningful only then. */
export async function isSettled(db: RawDb): Promise<boolean> {
  const [row] = await db.sql<{ count: number }[]>`select count(*) from queued_entries`;
  return row?.count === 0;
}

/**
 * Compares the accepted events, by the external ids of their reviews, with the history and with the requests that the
 * receivers got.
 */
export async function compare(
  db: RawDb,
  { receivers, accepted }: { receivers: readonly Receiver[]; accepted: readonly string[] },
): Promise<Verdict> {
  const order = await db.sql<{ event_id: string; name: string }[]>`
    select h.event_id, r.external_review_id as name
      from review_history h join reviews r on r.id = h.review_id order by h.id`;
  const arrivals = receivers.flatMap((one) => one.arrivals);
  const recorded = new Set(order.map(({ name }) => name));
  const arrived = new Set(arrivals.map(({ id }) => id));
  const place = new Map(order.map(({ event_id: id }, at) => [id, at]));
  let inversions = 0;
  for (const one of receivers) {
    const firsts = [...new Set(one.arrivals.map(({ id }) => id))].map((id) => place.get(id) ?? -1);
    inversions += firsts.filter((at, i) => i > 0 && at < (firsts[i - 1] ?? 0)).length;
  }
  const [twice] = await db.sql<{ count: number }[]>`
    select count(*) from (select from delivery_attempts
     group by subscription_id, event_id, round, attempt having count(*) > 1) repeated`;
  const unrecorded = accepted.filter((name) => !recorded.has(name)).length;
  const undelivered = order.filter(({ event_id: id }) => !arrived.has(id)).length;
  const facts = {
    accepted: accepted.length,
    "accepted, and not recorded": unrecorded,
    recorded: order.length,
    "recorded, and not delivered": undelivered,
    inversions,
    requests: arrivals.length,
    "attempts recorded twice": twice?.count ?? 0,
  };
  return { facts, isValid: unrecorded + undelivered + inversions === 0 };
}
