import { deliveryRoutes } from "./routes/deliveries.ts";
import type { RouteDeps } from "./routes/deps.ts";
import { figureRoutes } from "./routes/figures.ts";
import { operationRoutes } from "./routes/operations.ts";
import { subscriptionRoutes } from "./routes/subscriptions.ts";

/** interface.md 4.5, decisions.md 3. */
export function webhookRoutes(deps: RouteDeps) {
  return [
    ...subscriptionRoutes(deps),
    ...operationRoutes(deps),
    ...deliveryRoutes(deps),
    ...figureRoutes(deps),
  ];
}
