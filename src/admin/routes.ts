import { companyRoutes } from "./routes/companies.ts";
import { dispatcherRoutes, type StreamDeps } from "./routes/dispatcher.ts";
import { providerAdminRoutes } from "./routes/providers.ts";
import { userRoutes } from "./routes/users.ts";

/** decisions.md 7, for super-admins; the audit log and the identity providers have folders of their own. */
export function adminRoutes(deps: StreamDeps) {
  return [
    ...companyRoutes(deps),
    ...userRoutes(deps),
    ...providerAdminRoutes(deps),
    ...dispatcherRoutes(deps),
  ];
}
