import { ulid } from "ulid";

import type { Db, Tx } from "../../../db/client.ts";
import { recordAccessDenied } from "../../auth/actions/access-denied.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import type { RuleErrors } from "../../http/rules.ts";
import { isRowId, type Found, type Page } from "../../http/list.ts";
import type { Clock } from "../../lib/clock.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { planFlagNotice, queueFlagNotice } from "./notices.ts";
import type { RecordedAction } from "../../outbox/event.ts";
import type { WriterPool } from "../../outbox/writer-pool.ts";
import { recordActions } from "../../outbox/queries.ts";
import type { Waker } from "../../outbox/schedule.ts";
import * as decide from "../decide.ts";
import type { Act, FlagMove, ReviewEvent } from "../events.ts";
import {
  reviewFacts,
  type Colleague,
  type ColleagueQuery,
  type HistoryEntry,
  type Review,
  type ReviewQuery,
  type StoreReviewSite,
} from "../model.ts";
import * as queries from "../queries/reviews.ts";

export interface ReviewDeps {
  readonly db: Db;
  readonly writerPool: WriterPool;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly schedule: Waker;
}

const MAX_ID = 2_147_483_647;

/**
 * Loads the review that a path names, for a caller with access to it. Throws 404 if the review does not exist. Throws
 * 403 and records AUTHZ_DENIED if the review belongs to another account or store (contract 2.6).
 */
export function findReview(
  deps: Pick<ReviewDeps, "db" | "clock">,
  caller: Caller,
  id: string,
): Promise<Review> {
  const { accountId, storeIds } = caller.principal;
  return findSeen(deps, caller, id, (review) => {
    const seesStore = storeIds === null || storeIds.includes(review.storeId);
    return review.accountId === accountId && seesStore;
  });
}

/** Loads the review that a path names, for a caller of its partner; otherwise like `findReview`. */
export function findPartnerReview(
  deps: Pick<ReviewDeps, "db" | "clock">,
  caller: Caller,
  id: string,
): Promise<Review> {
  return findSeen(deps, caller, id, ({ partnerId }) => partnerId === caller.principal.partnerId);
}

async function findSeen(
  deps: Pick<ReviewDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  id: string,
  isSeen: (review: Review) => boolean,
): Promise<Review> {
  const wellFormed = isRowId(id) && Number(id) <= MAX_ID;
  const review = wellFormed ? await queries.reviewById(deps.db, Number(id)) : undefined;
  if (review === undefined) throw new Problem("not_found");
  if (isSeen(review)) return review;
  const details = { review_id: review.id, reason: "foreign_record" };
  await recordAccessDenied(deps, principal, { requestContext, details });
  throw new Problem("forbidden");
}

export function respond(
  deps: ReviewDeps,
  principal: Principal,
  { id }: Pick<Review, "id">,
  body: string,
): Promise<Review> {
  return act(deps, principal, id, (review, doing) => decide.decideResponse(review, body, doing));
}

export function deleteResponse(
  deps: ReviewDeps,
  principal: Principal,
  { id }: Pick<Review, "id">,
): Promise<Review> {
  return act(deps, principal, id, decide.decideResponseDeletion);
}

export function flag(
  deps: ReviewDeps,
  principal: Principal,
  { id }: Pick<Review, "id">,
  reason: string,
): Promise<Review> {
  return act(deps, principal, id, (review, doing) => decide.decideFlag(review, reason, doing));
}

/** Moves the flag and mails the account owner, unless the partner suppresses our mails (contract 9.5). */
export function moveFlag(
  deps: ReviewDeps,
  principal: Principal,
  { id }: Pick<Review, "id">,
  to: FlagMove,
): Promise<Review> {
  return act(deps, principal, id, async (review, doing, tx) => {
    const notice = await planFlagNotice(tx, review);
    const move = { to, native_email: notice.nativeEmail };
    const decision = decide.decideFlagStatus(review, move, doing);
    if (decision.kind === "write" && notice.nativeEmail === "queued")
      await queueFlagNotice(tx, deps, { owner: notice.owner, reviewId: id, to }, doing.at);
    return decision;
  });
}

const CANNOT_SEE_STORE = "is not an active user who sees the store of the review";

export async function assigneeErrors(
  { db }: Pick<ReviewDeps, "db">,
  review: Review,
  userId: number | undefined,
): Promise<RuleErrors> {
  const isFit = userId === undefined || (await queries.maySee(db, review, userId));
  return { user_id: isFit ? undefined : CANNOT_SEE_STORE };
}

/**
 * Assigns the review to a user. Checks again under the lock that the user may see the store of the review, because
 * the rule was checked before the transaction; throws 422 otherwise.
 */
export function assign(
  deps: ReviewDeps,
  principal: Principal,
  { id }: Pick<Review, "id">,
  userId: number,
): Promise<Review> {
  return act(deps, principal, id, async (review, doing, tx) => {
    if (!(await queries.maySee(tx, review, userId))) throw invalid({ user_id: [CANNOT_SEE_STORE] });
    return decide.decideAssignment(review, userId, doing);
  });
}

export function addNote(
  deps: ReviewDeps,
  principal: Principal,
  { id }: Pick<Review, "id">,
  body: string,
): Promise<Review> {
  return act(deps, principal, id, (review, doing) => decide.decideNote(review, body, doing));
}

type Rule = (
  review: Review,
  doing: Act,
  tx: Tx,
) => decide.ReviewDecision | Promise<decide.ReviewDecision>;

/**
 * Runs one action on a review. A single transaction writes the change of the review, its history and its outbox
 * entries (contract 9); the dispatcher is woken afterwards.
 */
async function act(
  deps: ReviewDeps,
  principal: Principal,
  id: number,
  rule: Rule,
): Promise<Review> {
  const now = deps.clock.now();
  const partners = principal.partnerId === null ? [] : [principal.partnerId];
  const work = async (tx: Tx) => {
    const current = await queries.lockReview(tx, id);
    if (current === undefined) throw new Problem("not_found");
    const decision = await rule(current, { userId: principal.userId, at: now }, tx);
    if (decision.kind === "refuse") throw new Problem(decision.code);
    if (decision.kind === "nothing") return { review: current, wakes: [], isMailed: false };
    const { changes } = decision;
    await queries.updateReview(tx, id, changes, now);
    const changed = { ...current, ...changes, updatedAt: now };
    const action = actionOf(changed, decision.event, { principal, now });
    const wakes = await recordActions(tx, [action], now);
    return { review: changed, wakes, isMailed: isMailed(decision.event) };
  };
  const { review, wakes, ...done } = await deps.writerPool.transaction(partners, work, {
    readsFirst: true,
  });
  // Wakes the dispatcher after the commit, because an earlier wake could find the entries still invisible.
  deps.schedule.wake(wakes);
  if (done.isMailed) deps.schedule.wakeMailer();
  return review;
}

function isMailed({ metadata }: ReviewEvent): boolean {
  return "native_email" in metadata && metadata.native_email === "queued";
}

function actionOf(
  review: Review,
  event: ReviewEvent,
  { principal, now }: { principal: Principal; now: Date },
): RecordedAction {
  return {
    eventId: ulid(now.getTime()),
    event: event.name,
    partnerId: review.partnerId,
    accountId: review.accountId,
    storeId: review.storeId,
    storeReviewSiteId: review.storeReviewSiteId,
    reviewId: review.id,
    // Under impersonation the principal is the account owner (contract 8.5).
    actor: { type: "user", id: principal.userId, name: principal.userName },
    about: { review: reviewFacts(review) },
    metadata: event.metadata,
    occurredAt: now,
  };
}

export function listReviews(
  { db }: Pick<ReviewDeps, "db">,
  principal: Principal,
  query: ReviewQuery,
  page: Page,
): Promise<Found<Review>> {
  return queries.reviewsOf(db, viewOf(principal), query, page);
}

export function reviewHistory(
  { db }: Pick<ReviewDeps, "db">,
  { id }: Pick<Review, "id">,
): Promise<HistoryEntry[]> {
  return queries.historyOf(db, id);
}

export function listStoreReviewSites(
  { db }: Pick<ReviewDeps, "db">,
  principal: Principal,
  page: Page,
): Promise<StoreReviewSite[]> {
  return queries.storeReviewSitesOf(db, viewOf(principal), page);
}

/** Lists the users to whom reviews may be assigned (`GET /account/users`). */
export function listColleagues(
  { db }: Pick<ReviewDeps, "db">,
  principal: Principal,
  query: ColleagueQuery,
  page: Page,
): Promise<Colleague[]> {
  return queries.colleaguesOf(db, viewOf(principal), query, page);
}

/**
 * Returns the principal's view of its account. The access rule admits only users of an account, but the type allows
 * null.
 */
function viewOf({ accountId, storeIds }: Principal): queries.View {
  if (accountId === null) throw new Problem("forbidden");
  return { accountId, storeIds };
}
