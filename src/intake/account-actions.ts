import type { Db } from "../../db/client.ts";
import type { Principal } from "../http/principal.ts";
import type { RuleErrors } from "../http/rules.ts";
import type { Clock } from "../lib/clock.ts";
import { Problem } from "../lib/problem.ts";
import type { FlagMove } from "../reviews/events.ts";
import type { Review } from "../reviews/model.ts";
import { maySee } from "../reviews/queries/reviews.ts";
import * as rules from "./account-rules.ts";
import { type AccountRequest, refusalOf } from "./change.ts";
import type { Intake } from "./group-commit.ts";
import { planFlagNotice } from "./notices.ts";

export interface AccountDeps {
  readonly clock: Clock;
  readonly intake: Intake;
}

/** The action of a user on a review that it has loaded. */
interface Acting {
  readonly principal: Principal;
  readonly review: Review;
}

export function respond(deps: AccountDeps, acting: Acting, body: string): Promise<Review> {
  return act(deps, acting, {
    chars: body.length,
    read: async () => (review, doing) => rules.decideResponse(review, body, doing),
  });
}

export function deleteResponse(deps: AccountDeps, acting: Acting): Promise<Review> {
  return act(deps, acting, { chars: 0, read: async () => rules.decideResponseDeletion });
}

export function flag(deps: AccountDeps, acting: Acting, reason: string): Promise<Review> {
  return act(deps, acting, {
    chars: reason.length,
    read: async () => (review, doing) => rules.decideFlag(review, reason, doing),
  });
}

/** Moves the flag and mails the account owner, unless the partner suppresses our mails (contract 9.5). */
export function moveFlag(deps: AccountDeps, acting: Acting, to: FlagMove): Promise<Review> {
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

export async function assigneeErrors(
  { db }: { readonly db: Db },
  review: Review,
  userId: number | undefined,
): Promise<RuleErrors> {
  const isFit = userId === undefined || (await maySee(db, review, userId));
  return { user_id: isFit ? undefined : CANNOT_SEE_STORE };
}

/**
 * Assigns the review to a user. Reads again under the lock whether the user may see the store of the review, because the
 * rule was checked before the transaction.
 */
export function assign(deps: AccountDeps, acting: Acting, userId: number): Promise<Review> {
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

export function addNote(deps: AccountDeps, acting: Acting, body: string): Promise<Review> {
  return act(deps, acting, {
    chars: body.length,
    read: async () => (review, doing) => rules.decideNote(review, body, doing),
  });
}

/** Submits the action, and returns the review as it is afterwards. */
async function act(
  { clock, intake }: AccountDeps,
  { principal, review }: Acting,
  command: Pick<AccountRequest, "read" | "chars">,
): Promise<Review> {
  const { id: reviewId, partnerId } = review;
  // Under impersonation the principal is the account owner (contract 8.5).
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
