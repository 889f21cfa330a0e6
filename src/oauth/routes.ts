import { join } from "../http/join.ts";
import type { ClientDeps } from "./actions/clients.ts";
import { authorizeRoutes, type AuthorizeDeps } from "./routes/authorize.ts";
import { clientRoutes } from "./routes/clients.ts";
import { tokenEndpoints } from "./routes/tokens.ts";

/**
 * Defines the OAuth endpoints, which are at `{server_root}` without a version, and the routes that manage clients
 * (contract 3.3 and 5).
 */
export function oauthRoutes(deps: AuthorizeDeps & ClientDeps) {
  return join(tokenEndpoints(deps), authorizeRoutes(deps), clientRoutes(deps));
}
