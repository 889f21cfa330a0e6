import { Elysia } from "elysia";

import type { WebhookRouteDeps } from "./routes/base.ts";
import { deliveryRoutes, queueingRoutes } from "./routes/deliveries.ts";
import { messageRoutes } from "./routes/messages.ts";
import { secretRoutes, stateRoutes } from "./routes/operations.ts";
import { statsRoutes, streamRoute } from "./routes/stats.ts";
import { collectionRoutes, subscriptionRoutes } from "./routes/subscriptions.ts";

/** See contract 6. */
export function webhookRoutes(deps: WebhookRouteDeps) {
  return new Elysia({ name: "webhooks" })
    .use(collectionRoutes(deps))
    .use(subscriptionRoutes(deps))
    .use(secretRoutes(deps))
    .use(stateRoutes(deps))
    .use(deliveryRoutes(deps))
    .use(queueingRoutes(deps))
    .use(messageRoutes(deps))
    .use(statsRoutes(deps))
    .use(streamRoute(deps));
}
