import { Type } from "@sinclair/typebox";

import { accountUser } from "../auth/guard.ts";
import type { Principal } from "../http/principal.ts";
import { isRowId, listOf, listSchema, pageOf, pageQuery } from "../http/list.ts";
import { route, type Call } from "../http/route.ts";
import * as actions from "./actions.ts";
import {
  AssignBody,
  ColleagueObject,
  colleagueQuery,
  FlagBody,
  FlagStatusBody,
  NoteBody,
  ResponseBody,
  ReviewObject,
  ReviewWithHistory,
  reviewQuery,
  showColleague,
  showHistory,
  showReview,
  showStoreReviewSite,
  StoreReviewSiteObject,
  type Review,
} from "./model.ts";

const BASE = "/account/reviews";
const reading = accountUser("reviews:read");
const writing = accountUser("reviews:write");

/** decisions.md 6; every action answers the review as it is afterwards. */
export function reviewRoutes(deps: actions.ReviewDeps) {
  return [
    ...readingRoutes(deps),
    ...responseRoutes(deps),
    ...flagRoutes(deps),
    ...teamRoutes(deps),
  ];
}

interface Asked {
  readonly principal: Principal;
  readonly call: Call;
  readonly params: Readonly<Record<string, string>>;
}

const findWith =
  (deps: actions.ReviewDeps) =>
  ({ params, ...caller }: Asked): Promise<Review> =>
    actions.findReview(deps, caller, params["id"] ?? "");

function readingRoutes(deps: actions.ReviewDeps) {
  return [
    route({
      method: "GET",
      path: BASE,
      summary: "List reviews",
      access: reading,
      query: reviewQuery,
      answers: { 200: listSchema(ReviewObject) },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const rows = await actions.listReviews(deps, principal, query, page);
        return listOf(rows, page, { key: (one) => String(one.id), show: showReview });
      },
    }),
    route({
      method: "GET",
      path: `${BASE}/:id`,
      summary: "Get a review with its history",
      access: reading,
      answers: { 200: ReviewWithHistory },
      find: findWith(deps),
      async handle({ found }) {
        const history = await actions.reviewHistory(deps, found);
        return { ...showReview(found), history: history.map(showHistory) };
      },
    }),
    route({
      method: "GET",
      path: "/account/review-sites",
      summary: "List the stores' review sites and the state of their connections",
      access: reading,
      query: Type.Object(pageQuery(isRowId)),
      answers: { 200: listSchema(StoreReviewSiteObject) },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const rows = await actions.listStoreReviewSites(deps, principal, page);
        return listOf(rows, page, { key: (one) => String(one.id), show: showStoreReviewSite });
      },
    }),
  ];
}

function responseRoutes(deps: actions.ReviewDeps) {
  return [
    route({
      method: "POST",
      path: `${BASE}/:id/response`,
      summary: "Submit or change the response to a review",
      access: writing,
      body: ResponseBody,
      answers: { 200: ReviewObject },
      problems: ["review_removed"],
      find: findWith(deps),
      handle: async ({ principal, found, body }) =>
        showReview(await actions.respond(deps, principal, found, body.body)),
    }),
    route({
      method: "DELETE",
      path: `${BASE}/:id/response`,
      summary: "Delete the response to a review",
      access: writing,
      answers: { 200: ReviewObject },
      problems: ["no_response"],
      find: findWith(deps),
      handle: async ({ principal, found }) =>
        showReview(await actions.deleteResponse(deps, principal, found)),
    }),
  ];
}

function flagRoutes(deps: actions.ReviewDeps) {
  return [
    route({
      method: "POST",
      path: `${BASE}/:id/flag`,
      summary: "Flag a review for a check",
      access: writing,
      body: FlagBody,
      answers: { 200: ReviewObject },
      problems: ["flag_open", "review_removed"],
      find: findWith(deps),
      handle: async ({ principal, found, body }) =>
        showReview(await actions.flag(deps, principal, found, body.reason)),
    }),
    route({
      method: "POST",
      path: `${BASE}/:id/flag-status`,
      summary: "Move the flag of a review to another status",
      access: writing,
      body: FlagStatusBody,
      answers: { 200: ReviewObject },
      problems: ["no_open_flag"],
      find: findWith(deps),
      handle: async ({ principal, found, body }) =>
        showReview(await actions.moveFlag(deps, principal, found, body.status)),
    }),
  ];
}

function teamRoutes(deps: actions.ReviewDeps) {
  return [
    route({
      method: "POST",
      path: `${BASE}/:id/assign`,
      summary: "Assign a review to a user",
      description:
        "To an active user of the account who sees the review's store. Whoever has it already gets it no second time.",
      access: writing,
      body: AssignBody,
      answers: { 200: ReviewObject },
      find: findWith(deps),
      rules: ({ found, body }) => actions.assigneeFaults(deps, found, body.user_id),
      handle: async ({ principal, found, body }) =>
        showReview(await actions.assign(deps, principal, found, body.user_id)),
    }),
    route({
      method: "POST",
      path: `${BASE}/:id/notes`,
      summary: "Add an internal note to a review",
      description:
        "The note is part of the review's history, and of nothing that the reviewer sees.",
      access: writing,
      body: NoteBody,
      answers: { 200: ReviewObject },
      find: findWith(deps),
      handle: async ({ principal, found, body }) =>
        showReview(await actions.addNote(deps, principal, found, body.body)),
    }),
    route({
      method: "GET",
      path: "/account/users",
      summary: "List the account's active users",
      access: reading,
      query: colleagueQuery,
      answers: { 200: listSchema(ColleagueObject) },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const rows = await actions.listColleagues(deps, principal, query, page);
        return listOf(rows, page, { key: (one) => String(one.id), show: showColleague });
      },
    }),
  ];
}
