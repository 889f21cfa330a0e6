import type { webhookRoutes } from "../webhooks/routes.ts";
import { createClient, type Client, type ClientOptions, type OperationsOf } from "./client.ts";

/** All operations that our pages use, by the declarations of their routes. */
type Operations = OperationsOf<ReturnType<typeof webhookRoutes>[number]>;

export function createApiClient(options: ClientOptions): Client<Operations> {
  return createClient<Operations>(options);
}
