import { Elysia } from "elysia";

import { flagRoutes, responseRoutes, teamRoutes } from "./routes/actions.ts";
import { partnerReviewRoutes } from "./routes/partner.ts";
import type { ReviewRouteDeps } from "./routes/base.ts";
import { accountRoutes, readingRoutes } from "./routes/reading.ts";

/** Serves reviews, to accounts and partners, and the actions of accounts on them (contract 9). */
export function reviewRoutes(deps: ReviewRouteDeps) {
  return new Elysia({ name: "reviews" })
    .use(readingRoutes(deps))
    .use(responseRoutes(deps))
    .use(flagRoutes(deps))
    .use(teamRoutes(deps))
    .use(accountRoutes(deps))
    .use(partnerReviewRoutes(deps));
}
