import { join } from "../http/join.ts";
import { createIntake, type IntakeDeps } from "./group-commit.ts";
import { accountActionRoutes } from "./routes/accounts.ts";
import { inboxRoutes } from "./routes/inbox.ts";
import { providerRoutes } from "./routes/providers.ts";
import { serviceActionRoutes } from "./routes/services.ts";

type Deps = Omit<
  IntakeDeps &
    Parameters<typeof providerRoutes>[0] &
    Parameters<typeof accountActionRoutes>[0] &
    Parameters<typeof inboxRoutes>[0],
  "intake"
>;

/** Serves the routes through which review sites, services and accounts add to the history, with one group commit. */
export function intakeRoutes(given: Deps) {
  const deps = { ...given, intake: createIntake(given) };
  return join(
    providerRoutes(deps),
    accountActionRoutes(deps),
    serviceActionRoutes(deps),
    inboxRoutes(deps),
  );
}
