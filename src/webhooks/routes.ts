import { Elysia } from "elysia";

import { WatchedSubscriptions } from "./actions/watch.ts";
import { OPERATORS, THE_PARTNER, type Readers, type WebhookRouteDeps } from "./routes/base.ts";
import { deliveryReading, messageReading, queueingRoutes } from "./routes/deliveries.ts";
import { secretRoutes, stateRoutes, testRoutes } from "./routes/operations.ts";
import { statsReading, streamReading } from "./routes/stats.ts";
import { changeRoutes, creationRoute, subscriptionReading } from "./routes/subscriptions.ts";

/** See contract 6 and 10.3. */
export function webhookRoutes(deps: WebhookRouteDeps) {
  const watched = new WatchedSubscriptions(deps);
  return new Elysia({ name: "webhooks" })
    .use(readingRoutes(deps, watched, THE_PARTNER))
    .use(creationRoute(deps))
    .use(changeRoutes(deps))
    .use(secretRoutes(deps))
    .use(testRoutes(deps))
    .use(stateRoutes(deps))
    .use(queueingRoutes(deps))
    .use(readingRoutes(deps, watched, OPERATORS));
}

/** All that only reads. */
function readingRoutes<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  watched: WatchedSubscriptions,
  readers: Readers<L, O>,
) {
  return new Elysia()
    .use(subscriptionReading(deps, readers))
    .use(deliveryReading(deps, readers))
    .use(messageReading(deps, readers))
    .use(statsReading(deps, readers))
    .use(streamReading(deps, watched, readers));
}
