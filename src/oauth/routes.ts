import { Elysia } from "elysia";

import type { ClientDeps } from "./actions/clients.ts";
import { authorizeRoutes, type AuthorizeDeps } from "./routes/authorize.ts";
import { clientRoutes } from "./routes/clients.ts";
import { tokenEndpoints } from "./routes/tokens.ts";

/**
 * Defines the OAuth endpoints, which are at `{server_root}` without a version, and the routes that manage clients
 * (contract 3.3 and 5).
 */
export function oauthRoutes(deps: AuthorizeDeps & ClientDeps) {
  return new Elysia({ name: "oauth" })
    .use(tokenEndpoints(deps))
    .use(authorizeRoutes(deps))
    .use(clientRoutes(deps));
}
