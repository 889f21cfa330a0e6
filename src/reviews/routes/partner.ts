import { Elysia } from "elysia";

import { partnerAdmin } from "../../auth/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import { errorResponse } from "../../http/errors.ts";
import { foundOf, listSchema, pageOf } from "../../http/list.ts";
import { tenantOf } from "../../http/principal.ts";
import { loads } from "../../http/request-state.ts";
import { shownAs } from "../../http/shown.ts";
import { parseInstant } from "../../lib/clock.ts";
import { listHistory } from "../actions/history.ts";
import { findPartnerReview, reviewHistory } from "../actions/reviews.ts";
import * as model from "../model.ts";
import { partnerReviewsOf } from "../queries/reviews.ts";
import type { ReviewRouteDeps } from "./base.ts";

const reading = partnerAdmin("reviews:read");

/**
 * Serves the reviews of a partner's accounts and the history of their events, with which a partner fetches what a
 * webhook names and finds what its endpoint has missed (contract 9.6).
 */
export function partnerReviewRoutes(deps: ReviewRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/partner`, tags: ["Reviews"] })
    .use(deps.checks)
    .macro(
      loads("review", ({ principal, requestContext, params }) =>
        findPartnerReview(deps, { principal, requestContext }, params["id"] ?? ""),
      ),
    )
    .get(
      "/reviews",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const since = parseInstant(query.updated_since);
        const found = await partnerReviewsOf(deps.db, tenantOf(principal), since, page);
        return foundOf(found, page, { key: model.changeKeyOf, show: model.showPartnerReview });
      },
      {
        access: reading,
        query: model.partnerReviewQuery,
        response: { 200: listSchema(model.PartnerReviewObject) },
        detail: {
          operationId: "listPartnerReviews",
          summary: "List the reviews of all accounts",
          description:
            "In the order of `updated_at`, so that a review which changes during the listing comes again later.",
        },
      },
    )
    .get(
      "/reviews/:id",
      async ({ review }) => {
        const rows = await reviewHistory(deps, review);
        const entries = rows.map(shownAs(model.HistoryObject));
        return { ...model.showPartnerReview(review), history: entries };
      },
      {
        access: reading,
        review: true,
        response: { 200: model.PartnerReviewWithHistory },
        detail: {
          operationId: "getPartnerReview",
          summary: "Get a review of one of the accounts, with its history",
          description: "This is the review whose id a webhook names. The history is oldest first.",
        },
      },
    )
    .get(
      "/review-history",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const found = await listHistory(deps, tenantOf(principal), query, page);
        const show = shownAs(model.PartnerHistoryObject);
        return foundOf(found, page, { key: ({ id }) => String(id), show });
      },
      {
        access: reading,
        query: model.partnerHistoryQuery,
        response: {
          200: listSchema(model.PartnerHistoryObject),
          503: errorResponse("unavailable"),
        },
        detail: {
          operationId: "listPartnerHistory",
          summary: "List the history of all accounts, oldest first",
          description:
            "In the order of `id`. A row never appears before one that was listed, so a caller that keeps the last `id` and later continues `after` it misses no event.",
        },
      },
    );
}
