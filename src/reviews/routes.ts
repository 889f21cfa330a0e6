import { join } from "../http/join.ts";
import { partnerReviewRoutes } from "./routes/partner.ts";
import type { ReviewRouteDeps } from "./routes/base.ts";
import { accountRoutes, readingRoutes } from "./routes/reading.ts";

/** Serves reviews to accounts and partners (contract 9). */
export function reviewRoutes(deps: ReviewRouteDeps) {
  return join(readingRoutes(deps), accountRoutes(deps), partnerReviewRoutes(deps));
}
