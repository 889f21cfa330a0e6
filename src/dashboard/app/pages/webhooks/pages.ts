import { page } from "../../shell/page.tsx";

/** What a partner sees of its subscriptions, and an operator of a partner's. */
export const READING_PAGES = {
  "/webhooks": page(() => import("./webhooks.tsx")),
  "/webhooks/:id": page(() => import("./subscription.tsx")),
  "/webhooks/:id/deliveries/:eventId": page(() => import("./delivery.tsx")),
} as const;
