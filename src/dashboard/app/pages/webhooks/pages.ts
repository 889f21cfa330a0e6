import { page } from "../../shell/page.tsx";

/** The pages of subscriptions that both a partner and an operator can read. */
export const READING_PAGES = {
  "/webhooks": page(() => import("./webhooks.tsx")),
  "/webhooks/:id": page(() => import("./subscription.tsx")),
  "/webhooks/:id/deliveries/:eventId": page(() => import("./delivery.tsx")),
} as const;
