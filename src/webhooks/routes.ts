import { Elysia } from "elysia";

import { WatchedSubscriptions } from "./actions/watch.ts";
import { OPERATORS, PARTNERS, type Audience, type WebhookRouteDeps } from "./routes/base.ts";
import { deliveryReadRoutes, messageReadRoutes, redeliveryRoutes } from "./routes/deliveries.ts";
import { operatorStateRoutes, secretRoutes, stateRoutes, testRoutes } from "./routes/operations.ts";
import { statsRoutes, streamRoutes } from "./routes/stats.ts";
import { changeRoutes, creationRoute, subscriptionReadRoutes } from "./routes/subscriptions.ts";

/**
 * Serves the subscriptions of a partner (contract 6). Operators read the same, and disable, enable and delete
 * (contract 10.3).
 */
export function webhookRoutes(deps: WebhookRouteDeps) {
  const watched = new WatchedSubscriptions(deps);
  return new Elysia({ name: "webhooks" })
    .use(readingRoutes(deps, watched, PARTNERS))
    .use(creationRoute(deps))
    .use(changeRoutes(deps))
    .use(secretRoutes(deps))
    .use(testRoutes(deps))
    .use(stateRoutes(deps))
    .use(redeliveryRoutes(deps))
    .use(readingRoutes(deps, watched, OPERATORS))
    .use(operatorStateRoutes(deps));
}

/** Serves the routes that only read, to one audience: partners or operators. */
function readingRoutes<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  watched: WatchedSubscriptions,
  audience: Audience<L, O>,
) {
  return new Elysia()
    .use(subscriptionReadRoutes(deps, audience))
    .use(deliveryReadRoutes(deps, audience))
    .use(messageReadRoutes(deps, audience))
    .use(statsRoutes(deps, audience))
    .use(streamRoutes(deps, watched, audience));
}
