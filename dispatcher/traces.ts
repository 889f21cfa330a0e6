import type { Clock } from "../src/lib/clock.ts";
import type { Spans } from "../src/lib/spans.ts";
import type { Deliver } from "./delivery/deliver.ts";
import type { DispatchStore } from "./store/store.ts";

// The part of a trace that a dispatcher has: the load of an entry, its POST and the record of that.

interface TraceDeps {
  readonly clock: Clock;
  readonly spans: Spans;
}

export function tracedDeliver({ clock, spans }: TraceDeps, deliver: Deliver): Deliver {
  return async (request, leave) => {
    const startMs = clock.monotonicMs();
    const outcome = await deliver(request, leave);
    const statusCode = "statusCode" in outcome ? outcome.statusCode : undefined;
    spans.add({
      eventId: request.headers["X-SVC-Delivery"] ?? "",
      name: "POST",
      kind: "client",
      startMs,
      endMs: clock.monotonicMs(),
      failed: outcome.kind !== "accepted",
      attributes: {
        "server.address": URL.parse(request.url)?.host ?? "",
        "reviewrelay.attempt": Number(request.headers["X-SVC-Attempt"]),
        "reviewrelay.result": outcome.kind,
        ...(statusCode !== undefined && { "http.response.status_code": statusCode }),
      },
    });
    return outcome;
  };
}

export function tracedStore(deps: TraceDeps, store: DispatchStore): DispatchStore {
  return {
    ...store,
    load: async (requests) => {
      const add = timed(deps, "load");
      const loaded = await store.load(requests);
      for (const { request, found } of loaded)
        for (const { eventId } of [...(found?.entries ?? []), ...(found?.tests ?? [])])
          add(eventId, request.id);
      return loaded;
    },
    commit: async (dispatcherId, records) => {
      const add = timed(deps, "record");
      const result = await store.commit(dispatcherId, records);
      for (const { eventId, subscriptionId, decision } of records)
        add(eventId, subscriptionId, { "reviewrelay.outcome": decision.kind });
      return result;
    },
  };
}

/** Begins now; what it answers ends it, for each event that it was about. */
function timed({ clock, spans }: TraceDeps, name: string) {
  const startMs = clock.monotonicMs();
  return (eventId: string, subscriptionId: string, more: Readonly<Record<string, string>> = {}) =>
    spans.add({
      eventId,
      name,
      kind: "internal",
      startMs,
      endMs: clock.monotonicMs(),
      attributes: { "reviewrelay.subscription_id": subscriptionId, ...more },
    });
}
