import { join } from "../http/join.ts";
import { createDeliveryList, type ListDeliveries } from "./actions/list-deliveries.ts";
import { WatchedSubscriptions } from "./actions/watch.ts";
import { OPERATORS, PARTNERS, type Audience, type WebhookRouteDeps } from "./routes/base.ts";
import { checkReadRoutes, checkRoutes } from "./routes/checks.ts";
import { deliveryReadRoutes, deliveryListRoutes, redeliveryRoutes } from "./routes/deliveries.ts";
import { operatorStateRoutes, secretRoutes, stateRoutes, testRoutes } from "./routes/operations.ts";
import { statsRoutes, streamRoutes } from "./routes/stats.ts";
import { changeRoutes, creationRoute, subscriptionReadRoutes } from "./routes/subscriptions.ts";

/**
 * Serves the subscriptions of a partner (contract 6). Operators may read the same data, and may disable, enable and
 * delete subscriptions (contract 10.3).
 */
export function webhookRoutes(given: WebhookRouteDeps) {
  const deps = {
    ...given,
    watched: new WatchedSubscriptions(given),
    listDeliveries: createDeliveryList(given),
  };
  return join(
    readingRoutes(deps, PARTNERS),
    creationRoute(deps),
    changeRoutes(deps),
    secretRoutes(deps),
    testRoutes(deps),
    checkRoutes(deps),
    stateRoutes(deps),
    redeliveryRoutes(deps),
    readingRoutes(deps, OPERATORS),
    operatorStateRoutes(deps),
  );
}

/** Serves the routes that only read, to one audience: partners or operators. */
function readingRoutes<const L extends string, const O extends string>(
  deps: WebhookRouteDeps & {
    readonly watched: WatchedSubscriptions;
    readonly listDeliveries: ListDeliveries;
  },
  audience: Audience<L, O>,
) {
  return join(
    subscriptionReadRoutes(deps, audience),
    deliveryReadRoutes(deps, audience),
    deliveryListRoutes(deps, audience),
    checkReadRoutes(deps, audience),
    statsRoutes(deps, audience),
    streamRoutes(deps, deps.watched, audience),
  );
}
