import { type Area, page } from "./shell/page.tsx";
import { READING_PAGES } from "./pages/webhooks/pages.ts";
import { type Role, ROLES, type Session } from "./session/identity.ts";

const PARTNERS: readonly Role[] = ["partner_owner", "partner_admin"];
const ACCOUNTS: readonly Role[] = ["account_owner", "account_user", "location_user"];
const OPERATORS: readonly Role[] = ["super_admin"];

/**
 * Areas in the order of the navigation menu. After the sign-in, a user lands on the first area that their role
 * may open.
 */
const AREAS: readonly Area[] = [
  {
    path: "/webhooks",
    title: "Webhooks",
    icon: "webhook",
    roles: PARTNERS,
    pages: {
      "/webhooks/new": page(() => import("./pages/webhooks/create.tsx")),
      "/webhooks/alerts": page(() => import("./pages/webhooks/alerts.tsx")),
      ...READING_PAGES,
    },
  },
  {
    path: "/events",
    title: "Event catalog",
    icon: "catalog",
    roles: PARTNERS,
    pages: {
      "/events": page(() => import("./pages/events/events.tsx")),
      "/events/:event": page(() => import("./pages/events/event.tsx")),
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
    pages: { "/sites": page(() => import("./pages/reviews/sites.tsx")) },
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
    nested: { "/companies/:partner": page(() => import("./pages/companies/partner.tsx")) },
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
    path: "/accounts",
    title: "Accounts",
    icon: "building",
    roles: PARTNERS,
    pages: { "/accounts": page(() => import("./pages/partner/accounts.tsx")) },
  },
  {
    path: "/team",
    title: "Team",
    icon: "users",
    roles: PARTNERS,
    pages: { "/team": page(() => import("./pages/partner/team.tsx")) },
  },
  {
    path: "/access",
    title: "Team access",
    icon: "lock",
    roles: [...PARTNERS, "account_owner"],
    isInPerson: true,
    pages: { "/access": page(() => import("./pages/access/access.tsx")) },
  },
  {
    path: "/embedding",
    title: "Embedding",
    icon: "window",
    roles: PARTNERS,
    pages: { "/embedding": page(() => import("./pages/partner/embedding.tsx")) },
  },
  {
    path: "/audit",
    title: "Audit log",
    icon: "list",
    roles: [...OPERATORS, ...PARTNERS],
    pages: { "/audit": page(() => import("./pages/audit/audit.tsx")) },
  },
  {
    path: "/keys",
    title: "API keys",
    icon: "key",
    roles: ROLES,
    isPersonal: true,
    pages: { "/keys": page(() => import("./pages/keys/keys.tsx")) },
  },
  {
    path: "/security",
    title: "Security",
    icon: "shield",
    roles: ROLES,
    isPersonal: true,
    pages: { "/security": page(() => import("./pages/security/security.tsx")) },
  },
];

/**
 * Returns the areas that the user's role may open. During impersonation (`origin` is set), areas that the API
 * serves to the person alone are left out, such as API keys.
 */
export function areasOf({ user, origin }: Session): readonly Area[] {
  return AREAS.filter(
    ({ roles, isPersonal = false, isInPerson = isPersonal }) =>
      roles.some((role) => role === user.role) && !(isInPerson && origin !== undefined),
  );
}
