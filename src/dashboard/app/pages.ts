import { lazy, type ComponentType } from "react";

import type { IconName } from "./ui/icon.tsx";
import type { Role } from "./session.tsx";

/** One entry of the navigation with all paths below it. */
interface Area {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly roles: readonly Role[];
  /** Path below `/dashboard` → page; loaded when it is first shown. */
  readonly pages: Readonly<Record<string, ComponentType>>;
}

const EVERYBODY: readonly Role[] = [
  "super_admin",
  "partner_owner",
  "partner_admin",
  "account_owner",
  "account_user",
  "location_user",
];
const PARTNERS: readonly Role[] = ["partner_owner", "partner_admin"];
const ACCOUNTS: readonly Role[] = ["account_owner", "account_user", "location_user"];
const OPERATORS: readonly Role[] = ["super_admin"];

/** A page is a chunk of its own, with a component named `Page`. */
function page(load: () => Promise<{ readonly Page: ComponentType }>) {
  return lazy(async () => ({ default: (await load()).Page }));
}

/** In the order of the navigation; the first that a role has is where it arrives. */
export const AREAS: readonly Area[] = [
  {
    path: "/webhooks",
    title: "Webhooks",
    icon: "webhook",
    roles: PARTNERS,
    pages: {
      "/webhooks": page(() => import("./pages/webhooks/list.tsx")),
      "/webhooks/new": page(() => import("./pages/webhooks/create.tsx")),
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
      "/reviews": page(() => import("./pages/reviews/list.tsx")),
      "/reviews/:id": page(() => import("./pages/reviews/review.tsx")),
    },
  },
  {
    path: "/sites",
    title: "Review sites",
    icon: "plug",
    roles: ACCOUNTS,
    pages: { "/sites": page(() => import("./pages/reviews/sites.tsx")) },
  },
  {
    path: "/dispatcher",
    title: "Dispatcher",
    icon: "activity",
    roles: OPERATORS,
    pages: { "/dispatcher": page(() => import("./pages/operator/dispatcher.tsx")) },
  },
  {
    path: "/companies",
    title: "Companies",
    icon: "building",
    roles: OPERATORS,
    pages: { "/companies": page(() => import("./pages/operator/companies.tsx")) },
  },
  {
    path: "/users",
    title: "Users",
    icon: "users",
    roles: OPERATORS,
    pages: { "/users": page(() => import("./pages/operator/users.tsx")) },
  },
  {
    path: "/connections",
    title: "Connections",
    icon: "link",
    roles: OPERATORS,
    pages: { "/connections": page(() => import("./pages/operator/connections.tsx")) },
  },
  {
    path: "/audit",
    title: "Audit log",
    icon: "list",
    roles: OPERATORS,
    pages: { "/audit": page(() => import("./pages/operator/audit.tsx")) },
  },
  {
    path: "/keys",
    title: "API keys",
    icon: "key",
    roles: EVERYBODY,
    pages: { "/keys": page(() => import("./pages/keys/keys.tsx")) },
  },
  {
    path: "/security",
    title: "Security",
    icon: "shield",
    roles: EVERYBODY,
    pages: { "/security": page(() => import("./pages/security/security.tsx")) },
  },
];
