import { lazy } from "react";

import { type Area, page } from "./shell/page.tsx";
import { READING_PAGES } from "./pages/webhooks/pages.ts";
import type { Session } from "./session/identity.ts";
import { type Role, ROLES } from "./session/roles.ts";

const PARTNERS: readonly Role[] = ["partner_owner", "partner_admin"];
const ACCOUNTS: readonly Role[] = ["account_owner", "account_user", "location_user"];
const OPERATORS: readonly Role[] = ["super_admin"];

const InboxCount = lazy(() =>
  import("./pages/inbox/inbox-count.tsx").then(({ InboxCount: one }) => ({ default: one })),
);

/** Builds an area that has a page at its own path, and possibly further pages below this path. */
const area = (
  path: string,
  { pages, ...named }: Omit<Area, "path" | "pages"> & Partial<Pick<Area, "pages">>,
  load: Parameters<typeof page>[0],
): Area => ({ path, ...named, pages: { ...pages, [path]: page(load) } });

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
  area(
    "/events",
    {
      title: "Event catalog",
      icon: "catalog",
      roles: PARTNERS,
      pages: { "/events/:event": page(() => import("./pages/events/event.tsx")) },
    },
    () => import("./pages/events/events.tsx"),
  ),
  area(
    "/reviews",
    {
      title: "Reviews",
      icon: "star",
      roles: ACCOUNTS,
      pages: { "/reviews/:id": page(() => import("./pages/reviews/review.tsx")) },
    },
    () => import("./pages/reviews/reviews.tsx"),
  ),
  area(
    "/sites",
    { title: "Review sites", icon: "plug", roles: ACCOUNTS },
    () => import("./pages/reviews/sites.tsx"),
  ),
  area(
    "/dispatcher",
    { title: "Dispatcher", icon: "activity", roles: OPERATORS, group: "Delivery" },
    () => import("./pages/dispatcher/dispatcher.tsx"),
  ),
  area(
    "/inbox",
    { title: "Inbox", icon: "inbox", roles: OPERATORS, group: "Delivery", Count: InboxCount },
    () => import("./pages/inbox/inbox.tsx"),
  ),
  area(
    "/companies",
    {
      title: "Companies",
      icon: "building",
      roles: OPERATORS,
      group: "Customers",
      pages: { "/companies/:id": page(() => import("./pages/directory/company.tsx")) },
      nested: { "/companies/:partner": page(() => import("./pages/companies/partner.tsx")) },
    },
    () => import("./pages/companies/companies.tsx"),
  ),
  area(
    "/stores",
    {
      title: "Stores",
      icon: "store",
      roles: OPERATORS,
      group: "Customers",
      pages: { "/stores/:id": page(() => import("./pages/stores/store.tsx")) },
    },
    () => import("./pages/stores/stores.tsx"),
  ),
  area(
    "/users",
    {
      title: "Users",
      icon: "users",
      roles: OPERATORS,
      group: "Customers",
      pages: { "/users/:id": page(() => import("./pages/directory/user.tsx")) },
    },
    () => import("./pages/users/users.tsx"),
  ),
  area(
    "/plans",
    { title: "Plans", icon: "catalog", roles: OPERATORS, group: "Customers" },
    () => import("./pages/plans/plans.tsx"),
  ),
  area(
    "/sso",
    {
      title: "Single sign-on",
      icon: "link",
      roles: OPERATORS,
      group: "Access",
      pages: { "/sso/:id": page(() => import("./pages/sso/connection.tsx")) },
    },
    () => import("./pages/sso/sso.tsx"),
  ),
  area(
    "/services",
    {
      title: "Services",
      icon: "server",
      roles: OPERATORS,
      group: "Access",
      pages: { "/services/:id": page(() => import("./pages/services/service.tsx")) },
    },
    () => import("./pages/services/services.tsx"),
  ),
  area(
    "/providers",
    { title: "Providers", icon: "plug", roles: OPERATORS, group: "Access" },
    () => import("./pages/providers/providers.tsx"),
  ),
  area(
    "/audit",
    { title: "Audit log", icon: "list", roles: OPERATORS, group: "Platform" },
    () => import("./pages/audit/audit.tsx"),
  ),
  area(
    "/audit-webhook",
    { title: "Audit webhook", icon: "webhook", roles: OPERATORS, group: "Platform" },
    () => import("./pages/audit-webhook/audit-webhook.tsx"),
  ),
  area(
    "/erasures",
    { title: "Erasures", icon: "trash", roles: OPERATORS, group: "Platform" },
    () => import("./pages/erasures/erasures.tsx"),
  ),
  area(
    "/accounts",
    {
      title: "Accounts",
      icon: "building",
      roles: PARTNERS,
      pages: { "/accounts/:id": page(() => import("./pages/directory/account.tsx")) },
    },
    () => import("./pages/partner/accounts.tsx"),
  ),
  area(
    "/team",
    {
      title: "Team",
      icon: "users",
      roles: PARTNERS,
      pages: { "/team/:id": page(() => import("./pages/directory/teammate.tsx")) },
    },
    () => import("./pages/partner/team.tsx"),
  ),
  area(
    "/access",
    { title: "Team access", icon: "lock", roles: [...PARTNERS, "account_owner"], isInPerson: true },
    () => import("./pages/access/access.tsx"),
  ),
  area(
    "/embedding",
    { title: "Embedding", icon: "window", roles: PARTNERS },
    () => import("./pages/partner/embedding.tsx"),
  ),
  area(
    "/audit",
    { title: "Audit log", icon: "list", roles: PARTNERS },
    () => import("./pages/audit/audit.tsx"),
  ),
  area(
    "/keys",
    { title: "API Keys", icon: "key", roles: ROLES, isPersonal: true },
    () => import("./pages/keys/keys.tsx"),
  ),
  area(
    "/security",
    { title: "Security", icon: "shield", roles: ROLES, isPersonal: true },
    () => import("./pages/security/security.tsx"),
  ),
];

/**
 * Returns the areas that the user's role may open. During impersonation (`origin` is set), areas that only the
 * impersonated user in person may open are left out, such as API Keys.
 */
export function areasOf({ user, origin }: Session): readonly Area[] {
  return AREAS.filter(
    ({ roles, isPersonal = false, isInPerson = isPersonal }) =>
      roles.some((role) => role === user.role) && !(isInPerson && origin !== undefined),
  );
}
