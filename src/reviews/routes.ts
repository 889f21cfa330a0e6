import { join } from "../http/join.ts";
import { flagRoutes, responseRoutes, teamRoutes } from "./routes/actions.ts";
import { partnerReviewRoutes } from "./routes/partner.ts";
import type { ReviewRouteDeps } from "./routes/base.ts";
import { accountRoutes, readingRoutes } from "./routes/reading.ts";

/** Serves reviews, to accounts and partners, and the actions of accounts on them (contract 9). */
export function reviewRoutes(deps: ReviewRouteDeps) {
  return join(
    readingRoutes(deps),
    responseRoutes(deps),
    flagRoutes(deps),
    teamRoutes(deps),
    accountRoutes(deps),
    partnerReviewRoutes(deps),
  );
}
