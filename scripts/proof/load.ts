// Load for the proofs of docs/operations: signed provider events, and a receiver that records its requests.
import { createHmac } from "node:crypto";

import { ulid } from "ulid";

import { PROVIDER, type Tenants } from "../chaos/tenants.ts";
import type { Client } from "../chaos/client.ts";

interface Arrival {
  /** The event id of the delivery. */
  readonly id: string;
  /** The external id of the review; clients number their reviews in order. */
  readonly review: string;
  readonly attempt: number;
  readonly atMs: number;
}

export interface Receiver {
  readonly url: string;
  readonly arrivals: readonly Arrival[];
  stop(): void;
}

/** Starts a receiver. `answer` returns the status for the nth request; `afterMs` delays the response. */
export function startReceiver(answer: (nth: number) => number = () => 200, afterMs = 0): Receiver {
  const arrivals: Arrival[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const text = await request.text();
      const [, review = ""] = /"external_review_id":"([^"]+)"/.exec(text) ?? [];
      arrivals.push({
        id: request.headers.get("x-svc-delivery") ?? "",
        review,
        attempt: Number(request.headers.get("x-svc-attempt")),
        atMs: performance.now(),
      });
      const status = answer(arrivals.length);
      if (afterMs > 0) await Bun.sleep(afterMs);
      return new Response(null, { status });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/hook`,
    arrivals,
    stop: () => void server.stop(true),
  };
}

/** Builds an event about a new review, as a provider's puller sends it. */
export function reviewEvent(name: string, site: number) {
  const at = new Date().toISOString();
  return {
    id: ulid(),
    type: "review.created",
    occurred_at: at,
    store_review_site_id: site,
    review: {
      external_review_id: name,
      rate: 5,
      reviewer: name,
      content: "Friendly people, clean work.",
      reviewed_at: at,
    },
  };
}

/** Sends one event; returns the status, or the kind of failure that the client saw. */
export async function report(
  client: Client,
  { providerSecret }: Pick<Tenants, "providerSecret">,
  event: object,
): Promise<string> {
  const body = JSON.stringify({ events: [event] });
  const digest = createHmac("sha256", providerSecret).update(body).digest("hex");
  const headers = { "X-Provider-Signature": `sha256=${digest}` };
  return (await client.call("POST", `/providers/${PROVIDER}/events`, { body, headers })).told;
}
