import { join } from "../http/join.ts";
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
  return join(
    readingRoutes(deps, watched, PARTNERS),
    creationRoute(deps),
    changeRoutes(deps),
    secretRoutes(deps),
    testRoutes(deps),
    stateRoutes(deps),
    redeliveryRoutes(deps),
    readingRoutes(deps, watched, OPERATORS),
    operatorStateRoutes(deps),
  );
}

/** Serves the routes that only read, to one audience: partners or operators. */
function readingRoutes<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  watched: WatchedSubscriptions,
  audience: Audience<L, O>,
) {
  return join(
    subscriptionReadRoutes(deps, audience),
    deliveryReadRoutes(deps, audience),
    messageReadRoutes(deps, audience),
    statsRoutes(deps, audience),
    streamRoutes(deps, watched, audience),
  );
}
