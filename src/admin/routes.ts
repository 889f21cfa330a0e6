import { Elysia } from "elysia";

import { accountRoutes } from "./routes/accounts.ts";
import { auditRoutes } from "./routes/audit.ts";
import { companyRoutes } from "./routes/companies.ts";
import { dispatcherRoutes, type DispatcherRouteDeps } from "./routes/dispatcher.ts";
import { partnerRoutes } from "./routes/partners.ts";
import { providerAdminRoutes } from "./routes/providers.ts";
import { storeRoutes } from "./routes/stores.ts";
import { userRoutes } from "./routes/users.ts";

/** Contract 10, for super-admins; the identity providers have a folder of their own. */
export function adminRoutes(deps: DispatcherRouteDeps) {
  return new Elysia({ name: "admin" })
    .use(partnerRoutes(deps))
    .use(accountRoutes(deps))
    .use(companyRoutes(deps))
    .use(storeRoutes(deps))
    .use(userRoutes(deps))
    .use(providerAdminRoutes(deps))
    .use(dispatcherRoutes(deps))
    .use(auditRoutes(deps));
}
