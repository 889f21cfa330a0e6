import type { Spans } from "../src/lib/spans.ts";
import type { Deliver } from "./delivery/deliver.ts";
import type { DispatchStore } from "./store/store.ts";

// The part of a trace that a dispatcher has: the load of an entry, its POST and the record of that.

export function tracedDeliver(spans: Spans, deliver: Deliver): Deliver {
  return async (request, leave) => {
    const end = spans.begin();
    const outcome = await deliver(request, leave);
    const statusCode = "statusCode" in outcome ? outcome.statusCode : undefined;
    end({
      eventId: request.headers["X-SVC-Delivery"] ?? "",
      name: "POST",
      kind: "client",
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

export function tracedStore(spans: Spans, store: DispatchStore): DispatchStore {
  return {
    ...store,
    load: async (requests) => {
      const end = spans.begin();
      const loaded = await store.load(requests);
      for (const { request, found } of loaded) {
        const attributes = { "reviewrelay.subscription_id": request.id };
        for (const { eventId } of [...(found?.entries ?? []), ...(found?.tests ?? [])])
          end({ eventId, name: "load", attributes });
      }
      return loaded;
    },
    commit: async (dispatcherId, records) => {
      const end = spans.begin();
      const result = await store.commit(dispatcherId, records);
      for (const { eventId, subscriptionId, decision } of records) {
        const subscription = { "reviewrelay.subscription_id": subscriptionId };
        const attributes = { ...subscription, "reviewrelay.outcome": decision.kind };
        end({ eventId, name: "record", attributes });
      }
      return result;
    },
  };
}
