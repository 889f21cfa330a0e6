import type { adminRoutes } from "../admin/routes.ts";
import type { auditRoutes } from "../audit/routes.ts";
import type { authRoutes } from "../auth/routes.ts";
import type { oauthClientRoutes } from "../oauth/routes.ts";
import type { reviewRoutes } from "../reviews/routes.ts";
import type { ssoRoutes } from "../sso/routes.ts";
import type { webhookRoutes } from "../webhooks/routes.ts";
import { createClient, type Client, type ClientOptions, type OperationsOf } from "./client.ts";

type Declarations = ReturnType<
  | typeof adminRoutes
  | typeof auditRoutes
  | typeof authRoutes
  | typeof oauthClientRoutes
  | typeof reviewRoutes
  | typeof ssoRoutes
  | typeof webhookRoutes
>[number];

/** All operations that our pages use, by the declarations of their routes. */
type Operations = OperationsOf<Declarations>;
export type ApiClient = Client<Operations>;

export function createApiClient(options: ClientOptions): ApiClient {
  return createClient<Operations>(options);
}
