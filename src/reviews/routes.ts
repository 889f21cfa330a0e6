import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import type { Db } from "../../db/client.ts";
import { accountUser, partnerAdmin } from "../auth/access/guard.ts";
import { BASE_PATH } from "../http/access.ts";
import type { Checks } from "../http/checks.ts";
import { errorResponse } from "../http/errors.ts";
import { isRowId } from "../http/ids.ts";
import { join } from "../http/join.ts";
import {
  searchPageAnswer,
  listOf,
  listSchema,
  pageOf,
  pageQuery,
  type Found,
  type Page,
} from "../http/list.ts";
import { tenantOf } from "../http/principal.ts";
import { loads } from "../http/request-state.ts";
import { shownAs } from "../http/shown.ts";
import { parseInstant, type Clock } from "../lib/clock.ts";
import { settledThrough } from "../outbox/settled-ids.ts";
import {
  listColleagues,
  listReviews,
  listStoreReviewSites,
  reviewHistory,
  findReview,
  type ReviewDeps,
  findPartnerReview,
} from "./actions.ts";
import * as model from "./model.ts";
import type { PartnerHistoryQuery, PartnerHistoryRow } from "./model.ts";
import { partnerReviewsOf, partnerHistory } from "./queries.ts";

/** Serves reviews to accounts and partners (contract 9). */
export function reviewRoutes(deps: ReviewRouteDeps) {
  return join(readingRoutes(deps), accountRoutes(deps), partnerReviewRoutes(deps));
}

/** Serves the routes that read reviews (contract 9). */
function readingRoutes(deps: ReviewRouteDeps) {
  return reviewRoutesBase(deps)
    .get(
      "",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const found = await listReviews(deps, principal, query, page);
        return searchPageAnswer(found, page, {
          key: ({ id }) => String(id),
          show: model.showReview,
        });
      },
      {
        access: accountReading,
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
        access: accountReading,
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
function accountRoutes(deps: ReviewRouteDeps) {
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
        access: accountReading,
        query: Type.Object(pageQuery(isRowId)),
        response: { 200: listSchema(model.StoreReviewSiteObject) },
        detail: {
          operationId: "listReviewSites",
          summary: "List the stores' review sites and the state of their connections",
          description: "Lists only the stores of the user.",
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
        access: accountReading,
        query: model.colleagueQuery,
        response: { 200: listSchema(model.ColleagueObject) },
        detail: {
          operationId: "listColleagues",
          summary: "List the account's active users",
          description: "Reviews can be assigned to these users.",
        },
      },
    );
}

export interface ReviewRouteDeps extends ReviewDeps {
  readonly checks: Checks;
}

const accountReading = accountUser("reviews:read");
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

const partnerReading = partnerAdmin("reviews:read");

/**
 * Serves the reviews of a partner's accounts and the history of their events. A partner uses them to fetch the objects
 * that a webhook refers to, and to find events that its endpoint has missed (contract 9.6).
 */
function partnerReviewRoutes(deps: ReviewRouteDeps) {
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
        return searchPageAnswer(found, page, {
          key: model.changeKeyOf,
          show: model.showPartnerReview,
        });
      },
      {
        access: partnerReading,
        query: model.partnerReviewQuery,
        response: { 200: listSchema(model.PartnerReviewObject) },
        detail: {
          operationId: "listPartnerReviews",
          summary: "List the reviews of all accounts",
          description:
            "In the order of `updated_at`. A review that changes during the listing appears again later.",
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
        access: partnerReading,
        review: true,
        response: { 200: model.PartnerReviewWithHistory },
        detail: {
          operationId: "getPartnerReview",
          summary: "Get a review of one of the accounts, with its history",
          description: "`id` is the review id in webhooks. The history is oldest first.",
        },
      },
    )
    .get(
      "/review-history",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const found = await listHistory(deps, tenantOf(principal), query, page);
        const show = shownAs(model.PartnerHistoryObject);
        return searchPageAnswer(found, page, { key: ({ id }) => String(id), show });
      },
      {
        access: partnerReading,
        query: model.partnerHistoryQuery,
        response: {
          200: listSchema(model.PartnerHistoryObject),
          503: errorResponse("unavailable"),
        },
        detail: {
          operationId: "listPartnerHistory",
          summary: "List the history of all accounts, oldest first",
          description:
            "In the order of `id`. New rows always come after the rows that were already listed. Store the last `id` and continue with `after` to get every event.",
        },
      },
    );
}

interface HistoryDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * Reads the history of a partner in the order of ids, without missing a row that commits late (contract 9.6). Returns
 * one row more than the page if there are more rows. Throws `unavailable` like `settledThrough`.
 */
async function listHistory(
  deps: HistoryDeps,
  partnerId: number,
  query: PartnerHistoryQuery,
  page: Page,
): Promise<Found<PartnerHistoryRow>> {
  const through = await settledThrough(deps, "review_history");
  return partnerHistory(deps.db, {
    partnerId,
    after: page.after ?? query.after?.toString(),
    since: parseInstant(query.since),
    through,
    limit: page.limit + 1,
  });
}
