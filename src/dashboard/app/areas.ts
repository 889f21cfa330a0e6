import { page } from "./page.tsx";
import { ROLES, type Role } from "./session/roles.ts";
import type { Area } from "./shell/area.ts";

const PARTNERS: readonly Role[] = ["partner_owner", "partner_admin"];
const ACCOUNTS: readonly Role[] = ["account_owner", "account_user", "location_user"];
const OPERATORS: readonly Role[] = ["super_admin"];

/** They are in the order of the navigation; a role arrives at the first that it has. */
export const AREAS: readonly Area[] = [
  {
    path: "/webhooks",
    title: "Webhooks",
    icon: "webhook",
    roles: PARTNERS,
    pages: {
      "/webhooks": page(() => import("./pages/webhooks/webhooks.tsx")),
      "/webhooks/new": page(() => import("./pages/webhooks/create.tsx")),
      "/webhooks/alerts": page(() => import("./pages/webhooks/alerts.tsx")),
      "/webhooks/:id": page(() => import("./pages/webhooks/subscription.tsx")),
      "/webhooks/:id/deliveries/:eventId": page(() => import("./pages/webhooks/delivery.tsx")),
    },
  },
  {
    path: "/reviews",
    title: "Reviews",
    icon: "star",
    roles: ACCOUNTS,
    pages: {
      "/reviews": page(() => import("./pages/reviews/reviews.tsx")),
      "/reviews/:id": page(() => import("./pages/reviews/review.tsx")),
    },
  },
  {
    path: "/sites",
    title: "Review sites",
    icon: "plug",
    roles: ACCOUNTS,
    pages: { "/sites": page(() => import("./pages/sites/sites.tsx")) },
  },
  {
    path: "/dispatcher",
    title: "Dispatcher",
    icon: "activity",
    roles: OPERATORS,
    pages: { "/dispatcher": page(() => import("./pages/dispatcher/dispatcher.tsx")) },
  },
  {
    path: "/companies",
    title: "Companies",
    icon: "building",
    roles: OPERATORS,
    pages: { "/companies": page(() => import("./pages/companies/companies.tsx")) },
  },
  {
    path: "/users",
    title: "Users",
    icon: "users",
    roles: OPERATORS,
    pages: { "/users": page(() => import("./pages/users/users.tsx")) },
  },
  {
    path: "/connections",
    title: "Connections",
    icon: "link",
    roles: OPERATORS,
    pages: { "/connections": page(() => import("./pages/connections/connections.tsx")) },
  },
  {
    path: "/audit",
    title: "Audit log",
    icon: "list",
    roles: OPERATORS,
    pages: { "/audit": page(() => import("./pages/audit/audit.tsx")) },
  },
  {
    path: "/keys",
    title: "API keys",
    icon: "key",
    roles: ROLES,
    pages: { "/keys": page(() => import("./pages/keys/keys.tsx")) },
  },
  {
    path: "/security",
    title: "Security",
    icon: "shield",
    roles: ROLES,
    pages: { "/security": page(() => import("./pages/security/security.tsx")) },
  },
];
