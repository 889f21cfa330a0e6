import * as rules from "./account-rules.ts";
import type { Db } from "../../db/client.ts";
import { errorResponse } from "../http/errors.ts";
import { join } from "../http/join.ts";
import type { Principal } from "../http/principal.ts";
import type { RuleInput, RuleErrors } from "../http/rules.ts";
import type { Clock } from "../lib/clock.ts";
import { Problem } from "../lib/problem.ts";
import type { FlagMove } from "../reviews/events.ts";
import {
  AssignBody,
  FlagBody,
  FlagStatusBody,
  NoteBody,
  ResponseBody,
  ReviewObject,
  showReview,
  type Review,
} from "../reviews/model.ts";
import { maySee } from "../reviews/queries.ts";
import { reviewRoutesBase, writing, type ReviewRouteDeps } from "../reviews/routes.ts";
import { type AccountRequest, refusalOf } from "./change.ts";
import type { Intake } from "./group-commit.ts";
import { planFlagNotice } from "./notices.ts";

type Deps = ReviewRouteDeps & AccountDeps;

/** Serves the actions of accounts on reviews (contract 9.2). Each action returns the resulting state of the review. */
export function accountActionRoutes(deps: Deps) {
  return join(responseRoutes(deps), flagRoutes(deps), teamRoutes(deps));
}

function responseRoutes(deps: Deps) {
  return reviewRoutesBase(deps)
    .post(
      "/:id/response",
      async ({ principal, review, body }) =>
        showReview(await respond(deps, { principal, review }, body.body)),
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
        showReview(await deleteResponse(deps, { principal, review })),
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
        showReview(await flag(deps, { principal, review }, body.reason)),
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
        showReview(await moveFlag(deps, { principal, review }, body.status)),
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

/** Serves the internal work of a team on a review: assignments and notes. */
function teamRoutes(deps: Deps) {
  return reviewRoutesBase(deps)
    .post(
      "/:id/assign",
      async ({ principal, review, body }) =>
        showReview(await assign(deps, { principal, review }, body.user_id)),
      {
        access: writing,
        review: true,
        body: AssignBody,
        rules: ({ body, review }: RuleInput<typeof AssignBody> & { readonly review: Review }) =>
          assigneeErrors(deps, review, body.user_id),
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
        showReview(await addNote(deps, { principal, review }, body.body)),
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

interface AccountDeps {
  readonly clock: Clock;
  readonly intake: Intake;
}

/** The acting user, and the review that the request has loaded. */
interface ActingUser {
  readonly principal: Principal;
  readonly review: Review;
}

function respond(deps: AccountDeps, acting: ActingUser, body: string): Promise<Review> {
  return act(deps, acting, {
    chars: body.length,
    read: async () => (review, doing) => rules.decideResponse(review, body, doing),
  });
}

function deleteResponse(deps: AccountDeps, acting: ActingUser): Promise<Review> {
  return act(deps, acting, { chars: 0, read: async () => rules.decideResponseDeletion });
}

function flag(deps: AccountDeps, acting: ActingUser, reason: string): Promise<Review> {
  return act(deps, acting, {
    chars: reason.length,
    read: async () => (review, doing) => rules.decideFlag(review, reason, doing),
  });
}

/**
 * Moves the flag of a review. Mails the account owner about it, unless the partner suppresses the service's own mails
 * (contract 9.5).
 */
function moveFlag(deps: AccountDeps, acting: ActingUser, to: FlagMove): Promise<Review> {
  return act(deps, acting, {
    chars: 0,
    async read(tx) {
      const plan = await planFlagNotice(tx, acting.review);
      const native_email = plan.nativeEmail;
      return (review, doing) => {
        const decision = rules.decideFlagStatus(review, { to, native_email }, doing);
        if (decision.kind !== "write" || plan.nativeEmail !== "queued") return decision;
        return { ...decision, notice: { kind: "flag", owner: plan.owner, status: to } };
      };
    },
  });
}

const CANNOT_SEE_STORE = "is not an active user who sees the store of the review";

async function assigneeErrors(
  { db }: { readonly db: Db },
  review: Review,
  userId: number | undefined,
): Promise<RuleErrors> {
  const isFit = userId === undefined || (await maySee(db, review, userId));
  return { user_id: isFit ? undefined : CANNOT_SEE_STORE };
}

/**
 * Assigns the review to a user. The validation has checked before the transaction that the user may see the review's
 * store. The user's access may have changed since then, so it is checked again under the lock.
 */
function assign(deps: AccountDeps, acting: ActingUser, userId: number): Promise<Review> {
  return act(deps, acting, {
    chars: 0,
    async read(tx) {
      const isFit = await maySee(tx, acting.review, userId);
      return (review, doing) =>
        isFit
          ? rules.decideAssignment(review, userId, doing)
          : { kind: "refuse", code: "validation_failed", errors: { user_id: [CANNOT_SEE_STORE] } };
    },
  });
}

function addNote(deps: AccountDeps, acting: ActingUser, body: string): Promise<Review> {
  return act(deps, acting, {
    chars: body.length,
    read: async () => (review, doing) => rules.decideNote(review, body, doing),
  });
}

/** Submits the action and returns the resulting state of the review. */
async function act(
  { clock, intake }: AccountDeps,
  { principal, review }: ActingUser,
  command: Pick<AccountRequest, "read" | "chars">,
): Promise<Review> {
  const { id: reviewId, partnerId } = review;
  // The principal is the actor of the event: under impersonation, it is the account owner (contract 8.5).
  const actor = { type: "user", id: principal.userId, name: principal.userName } as const;
  const answer = await intake({
    sender: "account",
    partnerId,
    reviewId,
    actor,
    at: clock.now(),
    ...command,
  });
  if (answer.kind !== "accepted") throw refusalOf(answer);
  if (answer.review === undefined) throw new Problem("not_found");
  return { ...review, ...answer.review };
}
