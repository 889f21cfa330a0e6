import { Elysia } from "elysia";

import { accountRoutes } from "./routes/accounts.ts";
import { companyRoutes } from "./routes/companies.ts";
import { dispatcherRoutes, type DispatcherRouteDeps } from "./routes/dispatcher.ts";
import { partnerRoutes } from "./routes/partners.ts";
import { providerAdminRoutes } from "./routes/providers.ts";
import { userRoutes } from "./routes/users.ts";

/** decisions.md 7, for super-admins; the audit log and the identity providers have folders of their own. */
export function adminRoutes(deps: DispatcherRouteDeps) {
  return new Elysia({ name: "admin" })
    .use(partnerRoutes(deps))
    .use(accountRoutes(deps))
    .use(companyRoutes(deps))
    .use(userRoutes(deps))
    .use(providerAdminRoutes(deps))
    .use(dispatcherRoutes(deps));
}
