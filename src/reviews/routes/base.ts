import { Elysia } from "elysia";

import { accountUser } from "../../auth/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { loads } from "../../http/request-state.ts";
import { findReview, type ReviewDeps } from "../actions/reviews.ts";

export interface ReviewRouteDeps extends ReviewDeps {
  readonly checks: Checks;
}

export const reading = accountUser("reviews:read");
export const writing = accountUser("reviews:write");

/**
 * Creates an Elysia instance at `/account/reviews`. The macro `review: true` loads the review of `:id`, if the caller
 * may see it.
 */
export function reviewRoutesBase(deps: ReviewRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/account/reviews`, tags: ["Reviews"] })
    .use(deps.checks)
    .macro(
      loads("review", ({ principal, requestContext, params }) =>
        findReview(deps, { principal, requestContext }, params["id"] ?? ""),
      ),
    );
}
