import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { BASE_PATH } from "../../http/access.ts";
import { foundOf, isRowId, listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import { shownAs } from "../../http/shown.ts";
import {
  listColleagues,
  listReviews,
  listStoreReviewSites,
  reviewHistory,
} from "../actions/reviews.ts";
import * as model from "../model.ts";
import { reading, reviewRoutesBase, type ReviewRouteDeps } from "./base.ts";

/** Serves the routes that read reviews (contract 9). */
export function readingRoutes(deps: ReviewRouteDeps) {
  return reviewRoutesBase(deps)
    .get(
      "",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const found = await listReviews(deps, principal, query, page);
        return foundOf(found, page, { key: ({ id }) => String(id), show: model.showReview });
      },
      {
        access: reading,
        query: model.reviewQuery,
        response: { 200: listSchema(model.ReviewObject) },
        detail: {
          operationId: "listReviews",
          summary: "List reviews",
          description:
            "Newest first, from the stores of the user. `q` searches review, reviewer and response.",
        },
      },
    )
    .get(
      "/:id",
      async ({ review }) => {
        const history = await reviewHistory(deps, review);
        return { ...model.showReview(review), history: history.map(shownAs(model.HistoryObject)) };
      },
      {
        access: reading,
        review: true,
        response: { 200: model.ReviewWithHistory },
        detail: {
          operationId: "getReview",
          summary: "Get a review with its history",
          description: "The history is oldest first.",
        },
      },
    );
}

/** Serves the routes that read an account's review sites and users (contract 9). */
export function accountRoutes(deps: ReviewRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/account`, tags: ["Reviews"] })
    .use(deps.checks)
    .get(
      "/review-sites",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const rows = await listStoreReviewSites(deps, principal, page);
        return listOf(rows, page, {
          key: ({ id }) => String(id),
          show: shownAs(model.StoreReviewSiteObject),
        });
      },
      {
        access: reading,
        query: Type.Object(pageQuery(isRowId)),
        response: { 200: listSchema(model.StoreReviewSiteObject) },
        detail: {
          operationId: "listReviewSites",
          summary: "List the stores' review sites and the state of their connections",
          description: "Covers the stores of the user.",
        },
      },
    )
    .get(
      "/users",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const rows = await listColleagues(deps, principal, query, page);
        return listOf(rows, page, {
          key: ({ id }) => String(id),
          show: shownAs(model.ColleagueObject),
        });
      },
      {
        access: reading,
        query: model.colleagueQuery,
        response: { 200: listSchema(model.ColleagueObject) },
        detail: {
          operationId: "listColleagues",
          summary: "List the account's active users",
          description: "Users to whom a review can be assigned.",
        },
      },
    );
}
