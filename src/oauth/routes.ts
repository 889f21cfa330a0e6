import type { RootRoute } from "../http/root-route.ts";
import type { ClientDeps } from "./actions/clients.ts";
import { authorizeRoutes, type AuthorizeDeps } from "./routes/authorize.ts";
import { clientRoutes } from "./routes/clients.ts";
import { tokenEndpoints } from "./routes/tokens.ts";

/** `/sso/clients` and `/partner/oauth-clients` (interface.md 5.2). */
export function oauthClientRoutes(deps: ClientDeps) {
  return clientRoutes(deps);
}

/** interface.md 4.3: at `{server_root}`, without a version. */
export function oauthRootRoutes(deps: AuthorizeDeps): RootRoute[] {
  return [...tokenEndpoints(deps), ...authorizeRoutes(deps)];
}
