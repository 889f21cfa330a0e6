import { page } from "../../shell/page.tsx";

/**
 * Webhook pages that partners, operators and portal visitors can open, because they also work without
 * permission to change anything.
 */
export const READING_PAGES = {
  "/webhooks": page(() => import("./webhooks.tsx")),
  "/webhooks/:id": page(() => import("./subscription.tsx")),
  "/webhooks/:id/deliveries/:eventId": page(() => import("./delivery.tsx")),
} as const;
