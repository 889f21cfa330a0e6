import { errorResponse } from "../../http/errors.ts";
import { join } from "../../http/join.ts";
import type { RuleInput } from "../../http/rules.ts";
import {
  AssignBody,
  FlagBody,
  FlagStatusBody,
  NoteBody,
  ResponseBody,
  ReviewObject,
  showReview,
  type Review,
} from "../../reviews/model.ts";
import { reviewRoutesBase, writing, type ReviewRouteDeps } from "../../reviews/routes/base.ts";
import * as actions from "../account-actions.ts";

type Deps = ReviewRouteDeps & actions.AccountDeps;

/** Serves the actions of accounts on reviews (contract 9.2). Each returns the review as it is afterwards. */
export function accountActionRoutes(deps: Deps) {
  return join(responseRoutes(deps), flagRoutes(deps), teamRoutes(deps));
}

function responseRoutes(deps: Deps) {
  return reviewRoutesBase(deps)
    .post(
      "/:id/response",
      async ({ principal, review, body }) =>
        showReview(await actions.respond(deps, { principal, review }, body.body)),
      {
        access: writing,
        review: true,
        body: ResponseBody,
        response: { 200: ReviewObject, 409: errorResponse("review_removed") },
        detail: {
          operationId: "respond",
          summary: "Submit or change the response to a review",
          description:
            "The first call submits the response, a later one changes it; the review site posts it.",
        },
      },
    )
    .delete(
      "/:id/response",
      async ({ principal, review }) =>
        showReview(await actions.deleteResponse(deps, { principal, review })),
      {
        access: writing,
        review: true,
        response: { 200: ReviewObject, 409: errorResponse("no_response") },
        detail: {
          operationId: "deleteResponse",
          summary: "Delete the response to a review",
          description: "A response that the review site has already posted is not withdrawn there.",
        },
      },
    );
}

function flagRoutes(deps: Deps) {
  return reviewRoutesBase(deps)
    .post(
      "/:id/flag",
      async ({ principal, review, body }) =>
        showReview(await actions.flag(deps, { principal, review }, body.reason)),
      {
        access: writing,
        review: true,
        body: FlagBody,
        response: { 200: ReviewObject, 409: errorResponse("flag_open", "review_removed") },
        detail: {
          operationId: "flagReview",
          summary: "Flag a review for a check",
          description: "A review has one open flag.",
        },
      },
    )
    .post(
      "/:id/flag-status",
      async ({ principal, review, body }) =>
        showReview(await actions.moveFlag(deps, { principal, review }, body.status)),
      {
        access: writing,
        review: true,
        body: FlagStatusBody,
        response: { 200: ReviewObject, 409: errorResponse("no_open_flag") },
        detail: {
          operationId: "moveFlag",
          summary: "Move the flag of a review to another status",
          description: "All but `under_review` close it; the present status again has no effect.",
        },
      },
    );
}

/** Serves internal teamwork on a review: assignments and notes. */
function teamRoutes(deps: Deps) {
  return reviewRoutesBase(deps)
    .post(
      "/:id/assign",
      async ({ principal, review, body }) =>
        showReview(await actions.assign(deps, { principal, review }, body.user_id)),
      {
        access: writing,
        review: true,
        body: AssignBody,
        rules: ({ body, review }: RuleInput<typeof AssignBody> & { readonly review: Review }) =>
          actions.assigneeErrors(deps, review, body.user_id),
        response: { 200: ReviewObject },
        detail: {
          operationId: "assignReview",
          summary: "Assign a review to a user",
          description:
            "The user must be active and see the review's store. Assigning it to the present assignee changes nothing.",
        },
      },
    )
    .post(
      "/:id/notes",
      async ({ principal, review, body }) =>
        showReview(await actions.addNote(deps, { principal, review }, body.body)),
      {
        access: writing,
        review: true,
        body: NoteBody,
        response: { 200: ReviewObject },
        detail: {
          operationId: "addNote",
          summary: "Add an internal note to a review",
          description:
            "The note is part of the review's history, and of nothing that the reviewer sees.",
        },
      },
    );
}
