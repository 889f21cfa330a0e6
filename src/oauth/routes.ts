import { Elysia } from "elysia";

import type { ClientDeps } from "./actions/clients.ts";
import { authorizeRoutes, type AuthorizeDeps } from "./routes/authorize.ts";
import { clientRoutes } from "./routes/clients.ts";
import { tokenEndpoints } from "./routes/tokens.ts";

/** Contract 3.3 and 5: the endpoints at `{server_root}`, without a version, and the clients that use them. */
export function oauthRoutes(deps: AuthorizeDeps & ClientDeps) {
  return new Elysia({ name: "oauth" })
    .use(tokenEndpoints(deps))
    .use(authorizeRoutes(deps))
    .use(clientRoutes(deps));
}
